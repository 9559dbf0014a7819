"""One client's connection: requests read within limits and time, served in order, one at a time.

Requests that come while one is answered are not looked at before their turn; a few bytes of them
are held, then reading stops. (Until then it goes on: only so is a client's leaving seen.) Callbacks
only; what is written leaves in the turn of the loop in which it was written.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from math import inf
from typing import Final, Literal, cast

from cheapgpu.wire.connections import Connections
from cheapgpu.wire.faults import report_fault
from cheapgpu.wire.message import RequestHead, Response, response_bytes
from cheapgpu.wire.request_reader import RefusedError, RequestReader
from cheapgpu.wire.server import Call

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
#: Bytes of later requests that are held during an answer.
_AHEAD_BYTES: Final = 64 << 10
#: Seconds for which a connection is read on after our last word, so that its client reads that.
LINGER_SECONDS: Final = 2.0
#: Connections beyond the limit that are told so; still others are cut.
_TOLD: Final = 100
#: SO_LINGER with no time: closing resets the connection.
_RESET: Final = struct.pack("ii", 1, 0)


class ServerConnection(asyncio.Protocol):
    """Reads requests, has them served, and looks at the clock for its client."""

    __slots__ = (
        "_advancing",
        "_call",
        "_deadline",
        "_deaf",
        "_head",
        "_reader",
        "_received",
        "_refusal",
        "_shared",
        "_stage",
        "_stall_at",
        "_transport",
        "_unsent",
        "keep",
        "paused",
        "peer",
    )

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self._transport: asyncio.Transport
        self._reader = RequestReader(shared.limits)
        # No request · a head, its body is coming · a call is being answered · the end was said.
        self._stage: Literal["idle", "head", "body", "call", "closing"] = "idle"
        self._head: RequestHead | None = None
        self._refusal: Response | None = None
        self._received = 0.0
        self._call: Call | None = None
        # When the stage has lasted too long; when the client has taken nothing for too long, and
        # the bytes that were unsent when it last took some.
        self._deadline = inf
        self._stall_at = inf
        self._unsent = 0
        self._advancing = self._deaf = False
        #: Whether the client reads too slowly.
        self.paused = False
        #: Whether the connection is to be kept after this answer.
        self.keep = True
        #: The client's address.
        self.peer = ""

    @property
    def is_kept(self) -> bool:
        """Whether the connection will take another request after this answer."""
        return self.keep and not self._shared.draining

    @property
    def is_chunkable(self) -> bool:
        """Whether the client reads chunked answers."""
        return self._reader.is_chunkable

    # What the transport does.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request, unless there are too many who do."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) else ""
        shared = self._shared
        shared.open.add(self)
        self._deadline = shared.loop.time() + shared.limits.head_seconds
        over = len(shared.open) - shared.limits.connections
        if shared.draining or over > _TOLD:
            self.cut()
        elif over > 0:
            self._reject(503, "there are too many connections")

    def data_received(self, data: bytes) -> None:
        """Take what a read brought, and serve it or hold it."""
        stage = self._stage
        if stage == "closing":
            return
        reader = self._reader
        reader.receive(data)
        if stage == "call" or self.paused:
            if reader.ahead > _AHEAD_BYTES:
                self._stop_reading()
        else:
            self._advance()

    def eof_received(self) -> bool:
        """Take a client that has said its last for gone, whether it still reads or not."""
        if self._stage == "call":
            self.cut()
        elif self._stage != "closing":
            self._leave()
            self._stage = "closing"
            self._watch_unsent()
        return False  # the transport flushes what was answered, and closes itself

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- asyncio's own
        """Give up what was under way."""
        self._leave()
        self._stage = "closing"
        self._shared.closed(self)

    def pause_writing(self) -> None:
        """Pass on that the client reads too slowly."""
        self.paused = True
        self._watch_unsent()
        if self._call is not None and self._call.client is not None:
            _tell(self._call.client.pause)

    def resume_writing(self) -> None:
        """Pass on that the client has caught up, or serve what it asked for meanwhile."""
        self.paused = False
        if self._call is not None:
            if self._call.client is not None:
                _tell(self._call.client.resume)
        elif self._stage != "closing":
            self._advance()

    # What a call does.

    def write(self, data: bytes) -> None:
        """Write bytes of an answer."""
        try:
            self._transport.write(data)
        except RuntimeError:  # uvloop, where the connection broke in this turn of the loop
            if not self._transport.is_closing():
                raise

    def answered(self) -> None:
        """The answer is over: take the next request, or close."""
        shared = self._shared
        self._call = None
        shared.call_over()
        if not self.is_kept:
            self._close()
            return
        self._stage = "idle"
        self._deadline = shared.loop.time() + shared.limits.idle_seconds
        if not self._advancing:
            self._advance()

    def cut(self, *, reset: bool = False) -> None:
        """Cut the connection at once; with `reset`, so that its end cannot pass for a good one."""
        transport = self._transport
        self._leave()
        self._stage = "closing"
        if reset and not transport.is_closing():
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()

    # What the listener does.

    def sweep(self, now: float) -> None:
        """Look at the clock: who is too slow, or idle for too long, is closed."""
        if self.paused or self._stage == "closing":
            self._sweep_unsent(now)
        elif now < self._deadline:
            return
        elif self._stage == "idle":
            self._close()
        else:
            self._reject(408, f"the {self._stage} did not come in time")

    def drain(self) -> None:
        """Close the connection now; if a call is in progress, after its answer."""
        if self._stage == "idle":
            self._close()
        elif self._stage in ("head", "body"):
            self._reject(503, "this server is being stopped")

    def close(self) -> None:
        """Cut a call that is in progress; what was answered is flushed."""
        if self._stage in ("body", "call"):
            self.cut()
        elif not self._transport.is_closing():
            self._stage = "closing"
            self._transport.close()

    # The way of a request.

    def _advance(self) -> None:
        """Read and serve, until bytes are missing or an answer is awaited."""
        # A loop, not a recursion: an answer that is given at once comes back here.
        self._advancing = True
        try:
            while not self.paused and self._take_step():
                pass
        except RefusedError as refused:
            self._reject(refused.status, refused.reason)
        finally:
            self._advancing = False
        if self._deaf and not self.paused and self._stage != "call":
            self._read_on()

    def _take_step(self) -> bool:
        """Read a request and have it served, if it is whole; whether there are bytes of another."""
        if self._stage in ("call", "closing"):
            return False
        reader = self._reader
        if self._stage != "body":
            head = reader.read_head()
            if head is None:
                self._await_head()
                return False
            if not self._admit(head):
                return False
        body = reader.read_body()
        if body is None:
            return False
        self._serve(body)
        return reader.ahead > 0

    def _await_head(self) -> None:
        if self._stage == "idle" and self._reader.ahead:
            self._stage = "head"
            self._deadline = self._shared.loop.time() + self._shared.limits.head_seconds

    def _admit(self, head: RequestHead) -> bool:
        """Whether the body may come: of a request that the service refuses, so as to let it go."""
        shared, reader = self._shared, self._reader
        now = shared.loop.time()
        shared.calls += 1
        self._stage = "body"
        self._head, self._received = head, now
        self._deadline = now + shared.limits.body_seconds
        self._refusal = None
        try:
            refusal = shared.service.admit(head)
        except Exception as error:  # noqa: BLE001 -- a fault of ours must not leave a client waiting
            report_fault(f"{type(shared.service).__name__}.admit", error)
            self._reject(500, "a fault of this server")
            return False
        self._refusal = refusal
        reader.discards = refusal is not None
        most = shared.limits.body_bytes
        if reader.announced > most:
            self._reject(413, f"the body has more than {most} bytes")
            return False
        if reader.awaits_continue:
            if refusal is None:
                self.write(_CONTINUE)
            else:
                # Whether the body comes now is not known: nothing after it could be told from it.
                self._say_last(refusal)
                return False
        return True

    def _serve(self, body: bytes) -> None:
        """Have a whole request answered."""
        shared = self._shared
        refusal, self._refusal = self._refusal, None
        head, self._head = self._head, None
        assert head is not None  # noqa: S101 -- its body was read
        self.keep = self._reader.keep
        self._stage = "call"
        self._deadline = inf
        call = self._call = Call(self, head, body, self._received)
        if refusal is not None:
            call.respond(refusal)
            return
        try:
            shared.service.serve(call)
        except Exception as error:  # noqa: BLE001 -- a fault of ours must not leave a client waiting
            report_fault(f"{type(shared.service).__name__}.serve", error)
            self.keep = False
            if call.is_started:
                call.abort()
            else:
                call.respond(self._refuse(500, "a fault of this server"))

    def _leave(self) -> None:
        """Give up the request that is under way, if one is."""
        call, self._call = self._call, None
        if self._stage == "body":
            self._shared.call_over()
        elif call is not None:
            self._stage = "closing"
            self._shared.call_over()
            _tell(call.leave)

    # The end.

    def _reject(self, status: int, reason: str) -> None:
        """Refuse a message that is none, or comes too slowly, and close.

        A request that the service has refused already keeps that refusal.
        """
        self._say_last(self._refusal or self._refuse(status, reason))

    def _refuse(self, status: int, reason: str) -> Response:
        try:
            return self._shared.service.refuse(status, reason)
        except Exception as error:  # noqa: BLE001 -- its status is an answer, too
            report_fault(f"{type(self._shared.service).__name__}.refuse", error)
            return Response(status)

    def _say_last(self, response: Response) -> None:
        """Give up what is being read, with an answer, and close."""
        self._head = None
        self._leave()
        self.write(response_bytes(response, body=not self._reader.is_head, keep=False))
        self._close(reading=True)

    def _close(self, *, reading: bool = False) -> None:
        """Close, but read on for a while (RFC 9112 section 9.6).

        Otherwise what the client still sends would have the system reset the connection, and the
        client might never read our last word. TLS cannot be closed by halves: that waits only where
        a client is known to be sending (`reading`).
        """
        transport = self._transport
        self._stage = "closing"
        self._deadline = self._shared.loop.time() + LINGER_SECONDS
        if transport.is_closing():
            return
        self._watch_unsent()
        self._read_on()
        if transport.can_write_eof():
            transport.write_eof()
        elif not reading:
            transport.close()

    def _watch_unsent(self) -> None:
        self._unsent = self._transport.get_write_buffer_size()
        self._stall_at = self._shared.loop.time() + self._shared.limits.stall_seconds

    def _sweep_unsent(self, now: float) -> None:
        """Cut a client that takes nothing; let one go that has taken all and does not leave."""
        transport = self._transport
        unsent = transport.get_write_buffer_size()
        if not unsent:
            if self._stage == "closing" and now >= self._deadline:
                transport.abort() if transport.is_closing() else transport.close()
        elif unsent < self._unsent:
            self._watch_unsent()
            self._deadline = now + LINGER_SECONDS
        elif now >= self._stall_at:
            self.cut()

    def _stop_reading(self) -> None:
        if not self._deaf and not self._transport.is_closing():
            self._deaf = True
            self._transport.pause_reading()

    def _read_on(self) -> None:
        if self._deaf and not self._transport.is_closing():
            self._deaf = False
            self._transport.resume_reading()


def _tell(callback: Callable[[], None]) -> None:
    """Call the client of a call; its fault is none of the connection's."""
    try:
        callback()
    except Exception as error:  # noqa: BLE001 -- whatever it is, the connection goes its way
        report_fault(getattr(callback, "__qualname__", "a callback"), error)
