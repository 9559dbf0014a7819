"""The server side of HTTP/1.1: whole requests answered in their order, each answer written at once.

What is no sound request is answered last, and the connection closed so that its client reads that
answer first. Requests that come while one is answered wait; reading goes on meanwhile, since only
so is a client's leaving seen.
"""

import asyncio
import sys
from collections import deque
from typing import Final, Literal, Protocol, cast

from cheapgpu.wire.message import Lines, RequestHead, Response, response_head
from cheapgpu.wire.request_reader import RefusedError, RequestReader, ServerLimits

__all__ = ["Call", "CallClient", "Connections", "ServerConnection", "ServerLimits", "Service"]

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
#: Seconds for which a connection that is over is read on, so that its client reads the answer.
LINGER_SECONDS: Final = 2.0
#: Requests of a connection that wait for their turn: from the first number on no more is read, and
#: beyond the second, if one read brings so many, they are refused.
_WAITING: Final = 4
_WAITING_MOST: Final = 64
#: Connections beyond the limit that are told so; still others are cut.
_TOLD: Final = 100


class CallClient(Protocol):
    """Who is told what the client of a call does."""

    def gone(self) -> None:
        """The client has left before the answer's end."""

    def pause(self) -> None:
        """The client reads too slowly: write no more for now."""

    def resume(self) -> None:
        """The client has caught up."""


class Service(Protocol):
    """Who answers."""

    def admit(self, head: RequestHead) -> Response | None:
        """Refuse a request by its head, before its body is read, or return None."""

    def serve(self, call: "Call") -> None:
        """Answer a whole request, now or later, by its `respond`, or `start` … `end` or `abort`."""

    def refuse(self, status: int, reason: str) -> Response:
        """The answer to a message that cannot be served, for a reason of HTTP's."""


class Call:
    """One request that is being answered, and the way to answer it.

    All that it does is without effect once the client has left, or the answer is over.
    """

    __slots__ = (
        "_connection",
        "_head",
        "_state",
        "body",
        "client",
        "head",
        "http_1_1",
        "keep",
        "received",
        "refusal",
    )

    def __init__(
        self, connection: "ServerConnection", head: RequestHead, body: bytes, received: float
    ) -> None:
        self.head = head
        self.body = body
        #: The loop's time when the head was whole, in seconds.
        self.received = received
        #: Who is told what the client does.
        self.client: CallClient | None = None
        #: What answers it in place of the service.
        self.refusal: Response | None = None
        #: The version that is spoken, and whether the connection is kept afterwards.
        self.http_1_1 = self.keep = True
        self._connection: ServerConnection | None = connection
        self._head = b""
        self._state: Literal["waiting", "chunked", "close", "bare", "over"] = "waiting"

    @property
    def paused(self) -> bool:
        """Whether the client reads too slowly."""
        return self._connection is not None and self._connection.paused

    @property
    def peer(self) -> str:
        """The client's address; "" once it has left."""
        return self._connection.peer if self._connection is not None else ""

    def respond(self, response: Response) -> None:
        """Answer whole; if the head of an answer in pieces has left, cut that instead."""
        has_left = self._state != "waiting" and not self._head
        connection = self._over()
        if connection is None:
            return
        if has_left:
            connection.cut()
            return
        status, body = response.status, response.body
        framing = b"" if status in (204, 304) else b"content-length: %d\r\n" % len(body)
        keep = self.keep and not connection.draining
        head = response_head(status, response.lines, framing=framing, keep=keep)
        bare = self.head.method == "HEAD" or not framing
        connection.finish(head if bare else head + body, keep=keep)

    def start(self, status: int, lines: Lines) -> None:
        """Begin an answer in pieces; its head leaves with the first of them."""
        connection = self._connection
        if connection is None:
            return
        framing = _CHUNKED
        self._state = "chunked"
        if not self.http_1_1:
            self.keep = False
            framing = b""
            self._state = "close"
        if self.head.method == "HEAD":
            self._state = "bare"
        keep = self.keep and not connection.draining
        self._head = response_head(status, lines, framing=framing, keep=keep)

    def write(self, data: bytes) -> None:
        """Write a piece, in this turn of the loop."""
        connection = self._connection
        if connection is None or not data:
            return
        head = self._head
        if self._state == "chunked":
            connection.write(b"%b%x\r\n%b\r\n" % (head, len(data), data))
        elif self._state == "close":
            connection.write(head + data)
        else:
            return
        if head:
            self._head = b""

    def end(self, *, close: bool = False) -> None:
        """End an answer in pieces, and with `close` the connection."""
        state = self._state
        connection = self._over()
        if connection is None:
            return
        if state == "waiting":
            connection.cut()
            return
        last = _LAST_CHUNK if state == "chunked" else b""
        connection.finish(self._head + last, keep=self.keep and not close)

    def abort(self) -> None:
        """Cut the connection, so that its client sees that the answer is not whole."""
        connection = self._over()
        if connection is not None:
            connection.cut()

    def leave(self) -> None:
        """The client has left: tell who answers, unless the answer is over."""
        client, self.client = self.client, None
        if self._over() is not None and client is not None:
            client.gone()

    def _over(self) -> "ServerConnection | None":
        connection, self._connection = self._connection, None
        self._state = "over"
        return connection


class Connections:
    """What all connections of a listener share."""

    def __init__(self, service: Service, limits: ServerLimits) -> None:
        self.service = service
        self.limits = limits
        self.open: set[ServerConnection] = set()
        self.loop = asyncio.get_running_loop()
        #: How many requests are being answered.
        self.calls = 0
        self.draining = False
        #: While draining: done once nothing is answered any more, and once none is open.
        self.quiet: asyncio.Future[None] | None = None
        self.empty: asyncio.Future[None] | None = None

    def check_quiet(self) -> None:
        """Tell who waits, once there is nothing left to wait for."""
        if self.quiet is not None and not self.calls and not self.quiet.done():
            self.quiet.set_result(None)
        if self.empty is not None and not self.open and not self.empty.done():
            self.empty.set_result(None)

    def refuse(self, status: int, reason: str) -> Response:
        """The service's refusal; it does without one that fails."""
        try:
            return self.service.refuse(status, reason)
        except Exception as error:  # noqa: BLE001 -- a fault of ours must not leave a client waiting
            self.report("refuse", error)
            return Response(status)

    def fault(self, what: str, error: Exception) -> Response:
        """Report a fault of the service; the answer to who met it."""
        self.report(what, error)
        return self.refuse(500, "a fault of this server")

    def report(self, what: str, error: Exception) -> None:
        """Tell the loop of a fault of the service, and nothing of what was asked."""
        message = f"{type(self.service).__name__}.{what} failed"
        self.loop.call_exception_handler({"message": message, "exception": error})


class ServerConnection(asyncio.Protocol):
    """One client's connection: one call at a time, in the order of its requests."""

    __slots__ = (
        "_advancing",
        "_backlog",
        "_call",
        "_deadline",
        "_deaf",
        "_reader",
        "_shared",
        "_state",
        "_transport",
        "_unsent",
        "paused",
        "peer",
    )

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self._transport: asyncio.Transport | None = None
        self._reader = RequestReader(self, shared.limits, shared.loop.time)
        self._call: Call | None = None
        #: Whole requests that wait for their turn.
        self._backlog: deque[Call] = deque()
        #: open: requests are read · last: no more, but answers are due · closing: nothing is due.
        self._state: Literal["open", "last", "closing"] = "open"
        self._deadline = 0.0
        #: Whether requests are being taken from the backlog, and whether reading is paused.
        self._advancing = self._deaf = False
        #: Bytes that the client had not taken when they were last looked at.
        self._unsent = 0
        #: Whether the client reads too slowly.
        self.paused = False
        self.peer = ""

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._call is not None

    @property
    def draining(self) -> bool:
        """Whether nothing new is taken."""
        return self._shared.draining

    # What the transport does.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request, if there is room for one more connection."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) else ""
        shared = self._shared
        shared.open.add(self)
        limits = shared.limits
        self._deadline = shared.loop.time() + limits.head_seconds
        over = len(shared.open) - limits.connections
        if shared.draining or over > _TOLD:
            self.cut()
        elif over > 0:
            self._conclude(shared.refuse(503, "too many connections"))

    def data_received(self, data: bytes) -> None:
        """Read requests; what comes after the last of them is let go."""
        if self._state != "open":
            return
        reader = self._reader
        try:
            reader.feed(data)
        except RefusedError as refused:
            if self._state == "open":
                shared = self._shared
                answer = refused.response or shared.refuse(refused.status, refused.reason)
                self._conclude(answer)
        else:
            if reader.awaits_continue:
                self._continue()

    def eof_received(self) -> bool:
        """Take a client that has said its last for gone; what it was told before still leaves."""
        if self._call is not None:
            self.leave()
        else:
            self.close()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- as asyncio calls it
        """Tell who answers that the client has left."""
        self._transport = None
        self._state = "closing"
        self._backlog.clear()
        self._shared.open.discard(self)
        call = self._release()
        if call is not None:
            call.leave()

    def pause_writing(self) -> None:
        """Tell who answers that the client reads too slowly."""
        shared, transport = self._shared, self._transport
        self.paused = True
        self._unsent = transport.get_write_buffer_size() if transport is not None else 0
        self._deadline = shared.loop.time() + shared.limits.stall_seconds
        if self._call is not None and self._call.client is not None:
            self._call.client.pause()

    def resume_writing(self) -> None:
        """Go on: with the answer, with the next request, or with the end."""
        self.paused = False
        if self._call is not None:
            if self._call.client is not None:
                self._call.client.resume()
        elif self._state == "closing":
            self._linger()
        else:
            self._advance()

    # What the reader does.

    def begun(self) -> None:
        """Give the head its time."""
        if self._state != "open":
            raise RefusedError(400, "the connection is closed")
        self._start_clock(self._shared.limits.head_seconds)

    def admit(self, head: RequestHead, now: float) -> Response | None:
        """Ask the service, and give the body its time."""
        shared = self._shared
        if self._call is None and not self.paused:
            self._deadline = now + shared.limits.body_seconds
        try:
            return shared.service.admit(head)
        except Exception as error:  # noqa: BLE001 -- a fault of ours must not leave a client waiting
            response = shared.fault("admit", error)
        raise RefusedError(500, "a fault of this server", response)

    def whole(self, body: bytes, refusal: Response | None, *, keep: bool) -> None:
        """Serve a request, or let it wait for its turn."""
        reader = self._reader
        assert reader.head is not None  # noqa: S101 -- it comes before the body
        call = Call(self, reader.head, body, reader.received)
        call.refusal = refusal
        call.http_1_1 = reader.http_1_1
        call.keep = keep
        backlog = self._backlog
        if self._call is None and not backlog and not self.paused:
            self._serve(call)
            return
        backlog.append(call)
        if len(backlog) >= _WAITING_MOST:
            raise RefusedError(503, "too many requests wait on this connection")
        if len(backlog) >= _WAITING:
            self._pause_reading()

    # What a call does.

    def write(self, data: bytes) -> None:
        """Write bytes of an answer."""
        if self._transport is not None:
            self._transport.write(data)

    def finish(self, data: bytes, *, keep: bool) -> None:
        """Write the last bytes of an answer, and take the next request, or close."""
        self._release()
        self.write(data)
        if keep and not self._shared.draining:
            self._advance()
        else:
            self._hang_up()

    def cut(self) -> None:
        """Cut the connection."""
        self._release()
        self._state = "closing"
        self._backlog.clear()
        if self._transport is not None:
            self._transport.abort()

    # What the listener does.

    def sweep(self, now: float) -> None:
        """Look at the clock: who is too slow, or idle for too long, is closed."""
        if now < self._deadline or self._transport is None:
            return
        if self.paused or self._state == "closing":
            self._sweep_unsent(self._transport, now)
        elif self._call is not None:
            return
        elif self._reader.phase == "idle":
            self.close()
        else:
            reason = f"the {self._reader.phase} did not come in time"
            self._conclude(self._reader.refusal or self._shared.refuse(408, reason))

    def drain(self) -> None:
        """Close the connection now, if it answers nothing; otherwise after the answer."""
        if self._call is not None or self._state == "closing":
            return
        if self._reader.phase == "idle" or self._backlog:
            self.close()
        else:
            self._conclude(self._shared.refuse(503, "this server is being stopped"))

    def leave(self) -> None:
        """Cut the connection, and tell who answers."""
        call = self._call
        self.cut()
        if call is not None:
            call.leave()

    def close(self) -> None:
        """Close the connection; what was written still leaves."""
        self._state = "closing"
        self._backlog.clear()
        self._linger()
        if self._transport is not None:
            self._transport.close()

    # Its turns.

    def _serve(self, call: Call) -> None:
        shared = self._shared
        self._call = call
        shared.calls += 1
        if call.refusal is not None:
            call.respond(call.refusal)
            return
        try:
            shared.service.serve(call)
        except Exception as error:  # noqa: BLE001 -- a fault of ours must not leave a client waiting
            call.keep = False
            call.respond(shared.fault("serve", error))

    def _release(self) -> Call | None:
        """The call that was being answered is over."""
        call, self._call = self._call, None
        shared = self._shared
        if call is not None:
            shared.calls -= 1
        if shared.draining:
            shared.check_quiet()
        return call

    def _advance(self) -> None:
        """Take the next request, of those that wait or of those that will come."""
        if self._advancing:
            return
        backlog = self._backlog
        if backlog:
            self._advancing = True
            try:
                while backlog and self._call is None and not self.paused:
                    self._serve(backlog.popleft())
            finally:
                self._advancing = False
        if len(backlog) < _WAITING:
            self._resume_reading()
        if self._state != "open":
            return
        if self._call is None and not self.paused:
            phase, limits = self._reader.phase, self._shared.limits
            self._start_clock(
                limits.idle_seconds
                if phase == "idle"
                else limits.head_seconds
                if phase == "head"
                else limits.body_seconds
            )
            if self._reader.awaits_continue:
                self._continue()

    def _continue(self) -> None:
        """Ask for the body of a request whose turn has come."""
        if self._call is None and not self._backlog and not self.paused:
            self._reader.awaits_continue = False
            self.write(_CONTINUE)

    def _conclude(self, response: Response) -> None:
        """Read no more: answer for the last time, after what waits, and close."""
        self._state = "last"
        last = Call(self, RequestHead("HEAD" if self._reader.is_head else "", "", "", {}), b"", 0.0)
        last.refusal = response
        last.keep = False
        self._backlog.append(last)
        if self._call is None:
            self._advance()

    def _hang_up(self) -> None:
        """Say no more, but linger until the client has read it all (RFC 9112 section 9.6)."""
        self._state = "closing"
        self._backlog.clear()
        self._linger()
        self._resume_reading()
        transport = self._transport
        if transport is None:
            return
        if transport.can_write_eof():
            transport.write_eof()
        elif self._reader.phase == "idle":  # TLS: closed at once, unless a client is still sending
            transport.close()

    # Its clock.

    def _start_clock(self, seconds: float) -> None:
        """Give the client so long, unless it is the one that waits."""
        if self._call is None and not self.paused:
            self._deadline = self._shared.loop.time() + seconds

    def _linger(self) -> None:
        """Give the client its time to read the last answer."""
        self._unsent = sys.maxsize
        self._deadline = self._shared.loop.time() + LINGER_SECONDS

    def _sweep_unsent(self, transport: asyncio.Transport, now: float) -> None:
        """Cut a client that has taken nothing of what was written, and one that lingers."""
        unsent = transport.get_write_buffer_size()
        if 0 < unsent < self._unsent:
            self._unsent = unsent
            self._deadline = now + self._shared.limits.stall_seconds
        elif unsent or transport.is_closing():
            transport.abort()
        else:
            self.close()

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._deaf:
            self._deaf = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and self._deaf:
            self._deaf = False
            self._transport.resume_reading()
