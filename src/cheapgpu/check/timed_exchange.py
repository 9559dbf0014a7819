"""One question to an endpoint, on a connection of its own, with the time of all that came."""

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from cheapgpu.check.connection import Arrival, Clock, ConnectError, Connection, connect
from cheapgpu.check.events import Sent, Step
from cheapgpu.check.framing import Framing
from cheapgpu.check.lag import LagMeter
from cheapgpu.check.limits import Limits
from cheapgpu.core.exchange import Closed, Head, Headers, How, Read, Request
from cheapgpu.core.sse import EventReader, essence
from cheapgpu.wire.target import Target

#: The data of the event that ends a stream (profile, "SSE streaming").
_DONE: Final = b"[DONE]"

#: A slow reader's rest between two reads (seconds), how often it rests, and the bytes that the
#: system may hold for it meanwhile.
_REST_SECONDS: Final = 0.05
_RESTS: Final = 20
_SLOW_BUFFER: Final = 8192

OUT_OF_TIME: Final = "the time of the run was over"
INTERRUPTED: Final = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request to send, and how its answer is to be read."""

    #: Its credentials are masked.
    request: Request
    #: The header fields as they are sent.
    headers: Headers = field(repr=False)
    #: How much time the run has left for it, in seconds.
    seconds: float
    #: After how many events of an answer of 200 we leave; 0: at its first bytes. None: never.
    leave_after: int | None = None
    #: Whether we rest between reads, as a slow client does.
    slow: bool = False


async def exchange(
    target: Target,
    question: Question,
    context: ssl.SSLContext | None,
    limits: Limits,
    tell: Callable[[Step], None],
) -> ConnectError | None:
    """Send a request once and tell what comes of it, step by step, Closed last.

    Nothing is followed, repeated or decoded. Returns why no connection came about, if none did.
    When cancelled, Closed is told before CancelledError is passed on.
    """
    began = time.perf_counter()

    def now() -> float:
        return round(time.perf_counter() - began, 6)

    with LagMeter(now) as meter:

        def tell_all(step: Step) -> None:
            tell(replace(step, lag=meter.longest) if isinstance(step, Closed) else step)

        return await _exchange(target, question, context, limits, tell_all, now)


async def _exchange(  # noqa: PLR0913, PLR0917 -- those of `exchange`, and its clock
    target: Target,
    question: Question,
    context: ssl.SSLContext | None,
    limits: Limits,
    tell: Callable[[Step], None],
    now: Clock,
) -> ConnectError | None:
    try:
        seconds = min(limits.connect_seconds, question.seconds)
        buffer = _SLOW_BUFFER if question.slow else None
        connection = await connect(target, context, now, seconds=seconds, buffer=buffer)
    except ConnectError as error:
        closed = Closed(t=now(), how=error.how, detail=str(error))
        if error.how == "timeout" and question.seconds < limits.connect_seconds:
            closed = Closed(t=closed.t, how="deadline", detail=OUT_OF_TIME)
        tell(closed)
        return error
    except asyncio.CancelledError:
        tell(Closed(t=now(), how="cancelled", detail=INTERRUPTED))
        raise
    try:
        framing = Framing()
        body = question.request.body
        connection.write(framing.request(target.path, question.headers, body))
        answer = _Answer(framing, limits, now(), tell, question.leave_after)
        closed = await _read(connection, answer, now, question)
    except BaseException as error:
        connection.abort()
        if isinstance(error, asyncio.CancelledError):
            tell(Closed(t=now(), how="cancelled", detail=INTERRUPTED))
        raise
    tell(closed)
    await connection.close()
    return None


async def _read(
    connection: Connection, answer: "_Answer", now: Clock, question: Question
) -> Closed:
    sent = False
    rests = _RESTS if question.slow else 0
    while True:
        if not sent and connection.drained is not None:
            sent = True
            answer.sent(connection.drained)
        arrival = connection.take()
        if arrival is not None:
            closed = answer.take(arrival)
            if closed is not None:
                return closed
            if rests:
                rests -= 1
                await connection.rest(min(_REST_SECONDS, max(0.0, question.seconds - now())))
            continue
        due = answer.due(question.seconds)
        left = due.t - now()
        if left <= 0:
            return Closed(t=now(), how=due.how, detail=due.detail)
        await connection.wait(left)


@dataclass(frozen=True, slots=True)
class _Due:
    """When we stop if nothing happens before, and how the exchange ends then."""

    t: float
    how: How
    detail: str = ""


class _Answer:
    """What has come of an answer so far, and how long the rest may take."""

    def __init__(
        self,
        framing: Framing,
        limits: Limits,
        asked: float,
        tell: Callable[[Step], None],
        leave_after: int | None = None,
    ) -> None:
        self._framing = framing
        self._limits = limits
        self._tell = tell
        self._asked = asked
        self._begun: float | None = None
        self._headed = False
        self._progress = asked
        self._done: float | None = None
        self._received = 0
        self._events: EventReader | None = None
        #: How many events are left until we leave; None: we stay.
        self._stay: int | None = None
        self._leave_after = leave_after
        #: Whether the answer declares itself an event stream: then comments are no progress.
        self._declared = False

    def sent(self, t: float) -> None:
        """The request has left."""
        if not self._headed:
            self._asked = t
            self._tell(Sent(t=t))

    def due(self, seconds: float) -> _Due:
        """The next moment at which we would stop; the run's time is over after `seconds`."""
        limits = self._limits
        if self._done is not None:
            # The grace is short, and decides whether anything follows: it may pass the run's end.
            return _Due(self._done + limits.grace_seconds, "closed-after-done")
        if self._headed:
            silence = f"{limits.silence_seconds:g} s without progress"
            due = _Due(self._progress + limits.silence_seconds, "timeout", silence)
        elif self._begun is not None:
            slow = f"a head not complete within {limits.head_seconds:g} s"
            due = _Due(self._begun + limits.head_seconds, "timeout", slow)
        else:
            silence = f"no answer within {limits.first_byte_seconds:g} s"
            due = _Due(self._asked + limits.first_byte_seconds, "timeout", silence)
        return due if due.t <= seconds else _Due(seconds, "deadline", OUT_OF_TIME)

    def take(self, arrival: Arrival) -> Closed | None:
        """Take what a read brought; return how the exchange ended, if it did."""
        t = arrival.t
        if arrival.broken:
            return Closed(t=t, how="reset", detail=arrival.broken)
        part = self._framing.receive(arrival.data)
        if part.head is not None:
            self._head(Head(t=t, status=part.head[0], headers=part.head[1]))
        elif not self._headed:
            self._begun = (self._begun or t) if self._framing.head_begun else None
        stopped = self._body(t, part.body) if part.body else None
        if stopped is not None:
            return stopped
        if part.end is not None:
            return Closed(t=t, how=part.end, detail=part.detail)
        enough = self._stay is not None and self._stay <= 0 and self._received > 0
        if enough and self._done is None:
            return Closed(t=t, how="left")
        return None

    def _head(self, head: Head) -> None:
        self._headed = True
        self._progress = head.t
        media_type = essence(head.header("content-type"))
        self._declared = media_type == "text/event-stream"
        if media_type != "application/json":
            self._events = EventReader()
        if 200 <= head.status < 300:
            self._stay = self._leave_after
        self._tell(head)

    def _body(self, t: float, data: bytes) -> Closed | None:
        left = self._limits.answer_bytes - self._received
        over = len(data) > left
        data = data[:left] if over else data
        if data:
            self._tell(Read(t=t, at=self._received, data=data))
            self._received += len(data)
        if over:
            return Closed(t=t, how="cancelled", detail=f"an answer over {_size(self._limits)}")
        return self._follow(t, data)

    def _follow(self, t: float, data: bytes) -> Closed | None:
        """See whether text, or only a comment, has come, and whether the stream says it is done."""
        events = self._events
        if events is None:
            self._progress = t
            return None
        found = events.feed(data)
        if self._stay is not None:
            self._stay -= len(found)
        if found or not self._declared:
            self._progress = t
        if self._done is None and any(event.data == _DONE for event in found):
            self._done = t
        if events.overrun is not None and self._declared:
            what = "an event too long" if events.overrun == "event-bytes" else "too many events"
            return Closed(t=t, how="cancelled", detail=f"{what} to be read")
        return None


def _size(limits: Limits) -> str:
    mebibytes = limits.answer_bytes >> 20
    return f"{mebibytes} MiB" if mebibytes else f"{limits.answer_bytes} bytes"
