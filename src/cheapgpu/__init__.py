"""The OpenAI Chat text profile: what may be believed of an answer, and why.

These names are the public ones; everything else may change. Each is imported when it is first used,
so that the command line starts quickly.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "RULES": "cheapgpu.core.rules",
    "ChatRequest": "cheapgpu.core.request",
    "Closed": "cheapgpu.core.exchange",
    "Exchange": "cheapgpu.core.exchange",
    "Finding": "cheapgpu.core.findings",
    "Head": "cheapgpu.core.exchange",
    "Judgement": "cheapgpu.core.findings",
    "Outcome": "cheapgpu.core.findings",
    "Read": "cheapgpu.core.exchange",
    "Recorder": "cheapgpu.core.recording",
    "Recording": "cheapgpu.core.recording",
    "Refusal": "cheapgpu.core.request",
    "Report": "cheapgpu.core.verify",
    "Request": "cheapgpu.core.exchange",
    "Rule": "cheapgpu.core.rules",
    "StreamEvent": "cheapgpu.core.stream_verifier",
    "StreamSummary": "cheapgpu.core.stream_verifier",
    "StreamVerifier": "cheapgpu.core.stream_verifier",
    "decode_request": "cheapgpu.core.request",
    "judge": "cheapgpu.core.verify",
    "read_recording": "cheapgpu.core.recording",
    "verify": "cheapgpu.core.verify",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- whatever the name stands for
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
