"""The OpenAI Chat text profile: what may be believed of an answer, and why.

These names are the public ones; everything else may change.
"""

from cheapgpu.core.exchange import Closed, Exchange, Head, Read, Request
from cheapgpu.core.findings import Finding, Judgement, Outcome
from cheapgpu.core.recording import Recorder, Recording, read_recording
from cheapgpu.core.request import ChatRequest, Refusal, decode_request
from cheapgpu.core.rules import RULES, Rule
from cheapgpu.core.stream_verifier import StreamEvent, StreamSummary, StreamVerifier
from cheapgpu.core.verify import Report, judge, verify

__version__ = "0.1.0"

__all__ = (
    "RULES",
    "ChatRequest",
    "Closed",
    "Exchange",
    "Finding",
    "Head",
    "Judgement",
    "Outcome",
    "Read",
    "Recorder",
    "Recording",
    "Refusal",
    "Report",
    "Request",
    "Rule",
    "StreamEvent",
    "StreamSummary",
    "StreamVerifier",
    "__version__",
    "decode_request",
    "judge",
    "read_recording",
    "verify",
)
