"""One answer on its way: from the engine's socket through a bridge to the buyer's.

Callbacks only: what one read of the engine's socket brings leaves for the buyer in the same turn of
the loop, in one write. The buyer's head waits for the first event or the first heartbeat, so that
an early failure is still a status. Nothing is ever asked twice.
"""

import time
from collections.abc import Callable
from typing import Final, Literal, Protocol

from msgspec import Struct

from cheapgpu.core.limits import ANSWER_BYTES, GRACE_SECONDS
from cheapgpu.core.messages import FinishReason
from cheapgpu.core.request import ChatRequest
from cheapgpu.core.sse import essence
from cheapgpu.endpoint.canonical import HEARTBEAT, Identity, new_identity
from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.edits import EditCount
from cheapgpu.endpoint.engine import RETRY_SECONDS, ServedModel
from cheapgpu.endpoint.engine_refusals import REFUSAL_BYTES, read_refusal, retry_after
from cheapgpu.endpoint.engine_request import engine_body
from cheapgpu.endpoint.failures import Failure, Fault, Reason
from cheapgpu.endpoint.plain_bridge import PlainAnswer, bridge_plain, collect
from cheapgpu.endpoint.stream_bridge import StreamBridge
from cheapgpu.wire.client import Pool, Problem, Sending
from cheapgpu.wire.message import Lines, Response, request_bytes
from cheapgpu.wire.server import Call
from cheapgpu.wire.sweeper import Sweeper

JSON: Final[Lines] = b"content-type: application/json\r\n"
#: nginx and others are told not to hold events back.
_STREAM: Final[Lines] = (
    b"content-type: text/event-stream\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n"
)

#: Content-Type fields as engines send them, and the media types that they name.
_MEDIA_TYPES: Final = {
    b"application/json": "application/json",
    b"application/json; charset=utf-8": "application/json",
    b"text/event-stream": "text/event-stream",
    b"text/event-stream; charset=utf-8": "text/event-stream",
}

#: How an answer ended, for logs and metrics; anything else is a failure's reason.
Outcome = Literal["complete", "buyer-gone"] | Reason

#: What it means that no head came.
_PROBLEMS: Final[dict[str, Reason]] = {
    "connect": "engine-unreachable",
    "tls": "engine-unreachable",
    "closed": "engine-closed",
    "head": "malformed",
    "malformed": "malformed",
}


class Times(Struct, frozen=True):
    """How long a buyer and an engine may be kept waiting, in seconds."""

    heartbeat: float
    silence: float
    deadline: float


class Record(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of an answer once it has ended; nothing of what was asked or said."""

    #: When it ended, Unix time in seconds.
    at: float
    id: str
    #: The name of the buyer's key.
    key: str
    model: str
    upstream: str
    stream: bool
    status: int
    outcome: Outcome
    #: Why, for a failure; without any generated text.
    why: str
    finish_reason: FinishReason | None
    prompt_tokens: int | None
    completion_tokens: int | None
    edits: dict[str, int]
    #: Milliseconds from the buyer's request to the first byte of the answer, and to its end.
    first_ms: float | None
    total_ms: float


class Refused(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a request that reached no engine."""

    #: Unix time in seconds.
    at: float
    #: The name of the buyer's key; "" if there was no valid one.
    key: str
    status: int
    outcome: Literal["refused"] = "refused"
    #: The code of its error, or what was wrong with the message.
    why: str


class Ledger(Protocol):
    """Who is told of answers that have ended."""

    def ended(self, relay: "Relay", record: Record) -> None:
        """Take note of an answer that has ended."""


class Relay:
    """One admitted request: dispatched once, and answered once."""

    __slots__ = (
        "_body",
        "_bridge",
        "_call",
        "_clock",
        "_deadline",
        "_delimited",
        "_dialect",
        "_events",
        "_first",
        "_heard",
        "_identity",
        "_ledger",
        "_limit",
        "_over",
        "_over_at",
        "_refused",
        "_sending",
        "_size",
        "_spoken",
        "_started",
        "_sweeper",
        "_times",
        "model",
        "stream",
    )

    def __init__(  # noqa: PLR0913, PLR0917 -- the two sides, and what the answer is measured by
        self,
        call: Call,
        request: ChatRequest,
        model: ServedModel,
        times: Times,
        sweeper: Sweeper,
        ledger: Ledger,
        clock: Callable[[], float],
    ) -> None:
        now = clock()
        self.model = model
        self.stream = request.stream
        self._call = call
        # A ready engine has been recognised.
        self._dialect = model.upstream.dialect or DIALECTS["openai"]
        self._times = times
        self._sweeper = sweeper
        self._ledger = ledger
        self._clock = clock
        self._limit = request.max_completion_tokens
        self._identity: Identity = new_identity(model.id, time.time())
        self._sending: Sending | None = None
        self._bridge: StreamBridge | None = None
        # The pieces of a body that is not a stream, and their bytes.
        self._body: list[bytes] = []
        self._size = 0
        self._refused: tuple[int, int | None] | None = None
        self._delimited = False
        self._started = self._over = False
        self._over_at = 0.0
        self._deadline = call.received + times.deadline
        # When the engine last said something, when the buyer last heard something, and when first.
        self._heard = self._spoken = now
        self._first: float | None = None
        self._events = 0

    def begin(self, pool: Pool, request: ChatRequest) -> None:
        """Send the engine its request, once."""
        upstream = self.model.upstream
        body = engine_body(request, self.model.engine_id, self._dialect)
        message = request_bytes("POST", upstream.target, upstream.lines, body)
        self._call.client = self
        self._sweeper.add(self)
        self._call.forget_request()
        self._sending = pool.send(upstream.origin, message, self)

    @property
    def _streams(self) -> bool:
        return self.stream or self._dialect.collects

    # What the engine does.

    def head_received(self, status: int, fields: dict[bytes, bytes]) -> None:
        """Take the head of the engine's answer; ours does not leave yet."""
        self._heard = self._clock()
        self._delimited = b"content-length" in fields or b"transfer-encoding" in fields
        if status != 200:
            self._refused = (status, retry_after(fields.get(b"retry-after")))
            return
        coding = fields.get(b"content-encoding", b"identity")
        media_type = _media_type(fields.get(b"content-type", b""))
        if coding != b"identity" and coding.strip().lower() != b"identity":
            self._fail(Failure("media-type", "a content coding that was not asked for"))
        elif media_type == "text/event-stream":
            self._bridge = StreamBridge(
                self._dialect,
                self._identity,
                self._limit,
                self.model.is_pinned,
                collect=not self.stream,
            )
        elif self.stream or media_type != "application/json":
            self._fail(Failure("media-type", "no event stream" if self.stream else "no JSON"))

    def body_received(self, data: bytes) -> None:
        """Take what one read of the engine's socket brought."""
        if self._over:
            return
        bridge = self._bridge
        if bridge is None:
            self._keep(data)
            return
        out = bridge.feed(data)
        now = self._clock()
        if bridge.events != self._events:
            self._events = bridge.events
            self._heard = now
        if out:
            self._write(out, now)
        if bridge.over:
            self._stream_over(bridge)

    def ended(self, ending: Literal["whole", "cut"]) -> None:
        """Take the end of the engine's answer."""
        self._sending = None
        if self._over:
            self._sweeper.discard(self)
        elif self._refused is not None:
            self._fail(self._refusal())
        elif self._bridge is not None:
            out = self._bridge.finish(whole=ending == "whole" and self._delimited)
            if out:
                self._write(out, self._clock())
            self._stream_over(self._bridge)
        elif ending == "cut":
            self._fail(Failure("cut", f"the body broke off after {self._size} bytes"))
        else:
            self._plain_over()

    def failed(self, problem: Problem, detail: str) -> None:
        """Take note that no head came."""
        self._sending = None
        if self._over:
            self._sweeper.discard(self)
            return
        reason = _PROBLEMS[problem]
        if reason == "engine-unreachable":
            self.model.upstream.doubted.set()
        self._fail(Failure(reason, detail))

    # What the buyer does.

    def gone(self) -> None:
        """The buyer has left: the engine's connection is closed at once."""
        self._leave()
        self._close("buyer-gone", "the buyer left", 200 if self._started else 499)

    def pause(self) -> None:
        """The buyer reads too slowly: the engine is not read from meanwhile."""
        if self._sending is not None:
            self._sending.pause()

    def resume(self) -> None:
        """The buyer has caught up."""
        self._heard = self._clock()
        if self._sending is not None:
            self._sending.resume()

    # What time does.

    def sweep(self, now: float) -> None:
        """Look at the clock: heartbeats, silence, the deadline, and what outstays its end."""
        if self._over:
            if now - self._over_at > GRACE_SECONDS:
                self._leave()
            return
        times = self._times
        if now >= self._deadline:
            self._fail(Failure("deadline", f"not complete after {times.deadline:g} s"))
        elif self._call.paused:
            self._heard = now  # we are not reading: the engine cannot be blamed for its silence
        elif self._streams and now - self._heard > times.silence:
            self._fail(Failure("engine-silent", f"nothing for {times.silence:g} s"))
        elif self.stream and now - self._spoken >= times.heartbeat and self._refused is None:
            self._write(HEARTBEAT, now)

    def stop(self) -> None:
        """Give the answer up, because the endpoint is being stopped."""
        if not self._over:
            self._fail(Failure("stopping", "not complete when the endpoint was stopped"))

    # How it ends.

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._refused is not None:
            if self._size > REFUSAL_BYTES:
                self._fail(self._refusal())
                return
        elif self._size > ANSWER_BYTES:
            self._fail(Failure("too-large", f"more than {ANSWER_BYTES} bytes"))
            return
        self._body.append(data)

    def _refusal(self) -> Failure:
        status, _ = self._refused or (0, None)
        return read_refusal(status, b"".join(self._body))

    def _write(self, data: bytes, now: float) -> None:
        self._spoken = now
        if not self._started:
            self._started = True
            self._first = now
            self._call.start(200, self._lines(_STREAM))
        self._call.write(data)

    def _stream_over(self, bridge: StreamBridge) -> None:
        if bridge.failure is not None:
            self._fail(bridge.failure)
        elif self.stream:
            self._call.end()
            self._close("complete", "", 200)
        else:
            try:
                self._respond(collect(bridge, self._identity, self._limit))
            except Fault as fault:
                self._fail(fault.failure)

    def _plain_over(self) -> None:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        try:
            answer = bridge_plain(
                body, self._dialect, self._identity, self._limit, self.model.is_pinned
            )
        except Fault as fault:
            self._fail(fault.failure)
            return
        self._respond(answer)

    def _respond(self, answer: PlainAnswer) -> None:
        self._first = self._clock()
        edits = f"x-cheapgpu-edits: {answer.edits}\r\n".encode()
        self._call.respond(Response(200, answer.body, self._lines(JSON + edits)))
        self._close("complete", "", 200, answer)

    def _fail(self, failure: Failure) -> None:
        """Tell the buyer that there is no success, and leave the engine."""
        if self._started:
            self._call.write(b"data: %b\n\n" % failure.body)
            self._call.end(close=True)
        else:
            lines = self._lines(JSON)
            if failure.status in (429, 503):
                wait = self._refused[1] if self._refused and self._refused[1] else RETRY_SECONDS
                lines += b"retry-after: %d\r\n" % wait
            self._call.respond(Response(failure.status, failure.body, lines))
        self._leave()
        self._close(failure.reason, failure.what, 200 if self._started else failure.status)

    def _lines(self, lines: Lines) -> Lines:
        """Field lines, and the one with this answer's id."""
        return b"%bx-request-id: %b\r\n" % (lines, self._identity.id.encode())

    def _leave(self) -> None:
        """Close the engine's connection, if it still answers."""
        self._sweeper.discard(self)
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _close(
        self, outcome: Outcome, why: str, status: int, answer: PlainAnswer | None = None
    ) -> None:
        """Take note of the end, once; what the engine still sends is not looked at any more."""
        if self._over:
            return
        now = self._clock()
        self._over = True
        self._over_at = now
        self._call.client = None  # so that the two are freed at once, not by the garbage collector
        if self._sending is None:
            self._sweeper.discard(self)
        bridge = self._bridge
        report = answer.report if answer else bridge.report if bridge else None
        finish = answer.finish_reason if answer else bridge.finish_reason if bridge else None
        edits = answer.edits if answer else bridge.edits if bridge else EditCount()
        first = None if self._first is None else _ms(self._first - self._call.received)
        self._ledger.ended(
            self,
            Record(
                at=int(time.time() * 1000) / 1000,
                id=self._identity.id,
                key=self._call.head.principal,
                model=self.model.id,
                upstream=self.model.upstream.name,
                stream=self.stream,
                status=status,
                outcome=outcome,
                why=why,
                finish_reason=finish,
                prompt_tokens=report.usage.prompt_tokens if report else None,
                completion_tokens=report.usage.completion_tokens if report else None,
                edits=edits.as_dict(),
                first_ms=first,
                total_ms=_ms(now - self._call.received),
            ),
        )


def _media_type(content_type: bytes) -> str:
    """The media type that a Content-Type field names; what engines send is known already."""
    return _MEDIA_TYPES.get(content_type) or essence(content_type.decode("latin-1"))


def _ms(seconds: float) -> float:
    return int(seconds * 1e4) / 10
