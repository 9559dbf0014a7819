"""The client side of HTTP/1.1: kept connections, one request at a time on each, none sent twice.

Callbacks only: what one read of the socket brings is parsed, joined and handed on in one call.
Source: RFC 9112; framing by httptools (llhttp), in its strict mode.
"""

import asyncio
import ssl
from collections import deque
from contextlib import suppress
from typing import Any, Final, Literal, Protocol, cast

import httptools
from msgspec import Struct

from cheapgpu.core.limits import HEAD_BYTES, HEAD_FIELDS
from cheapgpu.wire.sweeper import Sweeper

#: Why no head came: no connection · no TLS · closed before a head · a head over its limits · a head
#: that is none.
Problem = Literal["connect", "tls", "closed", "head", "malformed"]

#: Informational answers before the one that counts.
_MOST_INFORMATIONAL: Final = 10


class Origin(Struct, frozen=True):
    """Where requests go; `address` is dialled in place of the host's own, if given."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    address: str | None = None


class Receiver(Protocol):
    """Who is told what comes back; after `ended` or `failed`, which come once, nothing more."""

    def head_received(self, status: int, fields: dict[bytes, bytes]) -> None:
        """Take the head: status and fields, by lower-case name."""

    def body_received(self, data: bytes) -> None:
        """Take what one read brought of the body, without its framing."""

    def ended(self, ending: Literal["whole", "cut"]) -> None:
        """Take the end: as its framing announced, or by the connection's if it has none."""

    def failed(self, problem: Problem, detail: str) -> None:
        """Take note that no head came."""


class Sending:
    """One request that was handed over."""

    __slots__ = ("_connection", "_dialling", "_paused", "receiver", "reused", "sent")

    def __init__(self, receiver: Receiver) -> None:
        self.receiver: Receiver | None = receiver
        #: Whether a kept connection took it, and whether any took it.
        self.reused = self.sent = False
        self._connection: Connection | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._paused = False

    def cancel(self) -> None:
        """Close its connection at once; its receiver is told nothing more."""
        self.receiver = None
        if self._dialling is not None:
            self._dialling.cancel()
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    def pause(self) -> None:
        """Read no more of the answer, until it is resumed."""
        self._paused = True
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Read on."""
        self._paused = False
        if self._connection is not None:
            self._connection.resume()

    def attach(self, connection: "Connection") -> None:
        """Take the connection that carries it."""
        self._connection = connection
        self._dialling = None
        self.sent = True
        if self._paused:
            connection.pause()

    def detach(self) -> None:
        """Let the connection go: the answer has ended."""
        self._connection = None

    def dial(self, dialling: "asyncio.Task[None]") -> None:
        """Take the task that opens a connection for it."""
        self._dialling = dialling


class Connection(asyncio.Protocol):
    """One connection: idle, or carrying one request and its answer."""

    __slots__ = (
        "_body",
        "_fields",
        "_framed",
        "_head_bytes",
        "_informational",
        "_keep",
        "_parser",
        "_paused",
        "_pool",
        "_sending",
        "_state",
        "_transport",
        "idle_since",
        "origin",
    )

    def __init__(self, pool: "Pool", origin: Origin) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._sending: Sending | None = None
        self._state: Literal["idle", "head", "body", "done", "closed"] = "idle"
        self._fields: dict[bytes, bytes] = {}
        self._framed = False
        self._head_bytes = 0
        self._informational = 0
        self._keep = self._paused = False
        self._body: bytes | list[bytes] | None = None

    # What the pool does.

    def carry(self, message: bytes, sending: Sending) -> None:
        """Send a request, and give its answer to its receiver."""
        assert self._transport is not None  # noqa: S101 -- it is connected, or it is not here
        self._sending = sending
        self._state = "head"
        self._fields = {}
        self._framed = False
        self._head_bytes = self._informational = 0
        self._body = None
        self._parser = httptools.HttpResponseParser(self)
        sending.attach(self)
        self._transport.write(message)

    def abort(self) -> None:
        """Cut the connection."""
        self._sending = None
        self._state = "closed"
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Stop reading."""
        if self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._transport is not None and self._paused:
            self._paused = False
            self._transport.resume_reading()

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        transport = self._transport
        return transport is not None and self._state == "idle" and not transport.is_closing()

    # What the transport does.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._state in ("idle", "done", "closed"):
            self.abort()  # nobody asked
            self._pool.forget(self)
            return
        if self._state == "head":
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._break("malformed", "it wants another protocol")
            return
        except httptools.HttpParserError:
            if self._state == "done":  # something follows the answer: not to be used again
                self._finish(keep=False)
            else:
                self._break("malformed", "what it sent is not HTTP/1.1")
            return
        if self._state == "head" and self._head_bytes > HEAD_BYTES:
            self._break("head", f"its head has more than {HEAD_BYTES} bytes")
            return
        self._hand_on()
        if self._state == "done":
            self._finish(keep=self._keep)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        state, self._state = self._state, "closed"
        self._pool.forget(self)
        sending, self._sending = self._sending, None
        if sending is None or sending.receiver is None:
            return
        receiver = sending.receiver
        sending.detach()
        sending.receiver = None
        if state == "head":
            receiver.failed("closed", "it closed the connection without an answer")
        elif state == "body":
            receiver.ended("whole" if not self._framed and exc is None else "cut")

    # What the parser does.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; trailers are let go."""
        if self._state != "head":
            return
        fields = self._fields
        name = name.lower()
        if len(fields) >= HEAD_FIELDS:
            raise httptools.HttpParserError("too many fields")
        fields[name] = b"%b, %b" % (fields[name], value) if name in fields else value

    def on_headers_complete(self) -> None:
        """Hand the head on, unless it only announces another (RFC 9110 section 15.2)."""
        status = self._parser.get_status_code()
        fields = self._fields
        if status < 200:
            self._informational += 1
            if self._informational > _MOST_INFORMATIONAL or status == 101:
                raise httptools.HttpParserError("too many informational answers")
            self._fields = {}
            return
        self._framed = b"content-length" in fields or b"transfer-encoding" in fields
        self._state = "body"
        if self._sending is not None and self._sending.receiver is not None:
            self._sending.receiver.head_received(status, fields)

    def on_body(self, data: bytes) -> None:
        """Gather the pieces of one read."""
        gathered = self._body
        if gathered is None:
            self._body = data
        elif isinstance(gathered, list):
            gathered.append(data)
        else:
            self._body = [gathered, data]

    def on_message_complete(self) -> None:
        """Note the end of the answer."""
        if self._state == "body":
            self._state = "done"
            self._keep = self._parser.should_keep_alive()

    def _hand_on(self) -> None:
        gathered, self._body = self._body, None
        if gathered is not None and self._sending is not None:
            receiver = self._sending.receiver
            if receiver is not None:
                whole = b"".join(gathered) if isinstance(gathered, list) else gathered
                receiver.body_received(whole)

    def _finish(self, *, keep: bool) -> None:
        """The answer is whole: tell its receiver, and keep the connection or let it go."""
        self._hand_on()
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.detach()
        if sending is None or self._transport is None:
            keep = False
        if keep and self._transport is not None:
            self._state = "idle"
            self._parser = None
            self.resume()
            self._pool.keep(self)
        else:
            self._state = "closed"
            if self._transport is not None:
                self._transport.close()
        receiver = sending.receiver if sending is not None else None
        if sending is not None and receiver is not None:
            sending.receiver = None
            receiver.ended("whole")

    def _break(self, problem: Problem, detail: str) -> None:
        """Give the answer up: what came is no HTTP, or too much of it."""
        if self._state == "body":
            self._hand_on()
        state = self._state
        sending = self._sending
        self.abort()
        if sending is None or sending.receiver is None:
            return
        receiver = sending.receiver
        sending.detach()
        sending.receiver = None
        if state == "head":
            receiver.failed(problem, detail)
        else:
            receiver.ended("cut")


class Pool:
    """Kept connections by origin; a request takes the last one that is idle, or a new one.

    Nothing is ever sent again: a kept connection that dies before its answer is a failure. So they
    are kept for less time than servers do (usually five seconds). Times are seconds.
    """

    def __init__(
        self, *, idle_seconds: float = 3.0, connect_seconds: float = 5.0, idle_most: int = 256
    ) -> None:
        self._idle_seconds = idle_seconds
        self._connect_seconds = connect_seconds
        self._idle_most = idle_most
        self._idle: dict[Origin, deque[Connection]] = {}
        self._busy: set[Connection] = set()
        self._dialling: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._sweeper = Sweeper(min(1.0, idle_seconds))
        self._sweeper.add(self)
        self._sweeper.start()

    def send(self, origin: Origin, message: bytes, receiver: Receiver) -> Sending:
        """Send a request at once on a kept connection, or as soon as a new one is open."""
        sending = Sending(receiver)
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            fresh = self._loop.time() - connection.idle_since < self._idle_seconds
            if fresh and connection.is_open:
                self._busy.add(connection)
                sending.reused = True
                connection.carry(message, sending)
                return sending
            connection.abort()
        task = self._loop.create_task(self._dial(origin, message, sending))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)
        sending.dial(task)
        return sending

    def keep(self, connection: Connection) -> None:
        """Take back a connection whose answer has ended."""
        self._busy.discard(connection)
        idle = self._idle.setdefault(connection.origin, deque())
        if len(idle) >= self._idle_most:
            connection.abort()
            return
        connection.idle_since = self._loop.time()
        idle.append(connection)

    def forget(self, connection: Connection) -> None:
        """Let go of a connection that has ended."""
        self._busy.discard(connection)
        idle = self._idle.get(connection.origin)
        if idle is not None:
            with suppress(ValueError):
                idle.remove(connection)

    def sweep(self, now: float) -> None:
        """Close what has been idle for too long."""
        for origin, idle in tuple(self._idle.items()):
            while idle and now - idle[0].idle_since >= self._idle_seconds:
                idle.popleft().abort()
            if not idle:
                del self._idle[origin]

    async def close(self) -> None:
        """Cut every connection."""
        self._sweeper.stop()
        for task in tuple(self._dialling):
            task.cancel()
        for connection in [*self._busy, *(each for idle in self._idle.values() for each in idle)]:
            connection.abort()
        self._idle.clear()
        self._busy.clear()
        await asyncio.gather(*self._dialling, return_exceptions=True)

    async def _dial(self, origin: Origin, message: bytes, sending: Sending) -> None:
        problem: Problem = "connect"
        try:
            async with asyncio.timeout(self._connect_seconds):
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self, origin),
                    origin.address or origin.host,
                    origin.port,
                    ssl=origin.tls,
                    server_hostname=origin.server_name or origin.host if origin.tls else None,
                )
        except ssl.SSLError as error:
            problem, detail = "tls", f"TLS: {error.reason or 'failed'}"
        except TimeoutError:
            detail = f"no connection within {self._connect_seconds:g} s"
        except OSError as error:
            detail = _why(error)
        else:
            if sending.receiver is None:  # it was cancelled meanwhile
                connection.abort()
                return
            if connection.is_open:
                self._busy.add(connection)
                connection.carry(message, sending)
                return
            problem, detail = "closed", "it closed the connection at once"
        receiver, sending.receiver = sending.receiver, None
        if receiver is not None:
            receiver.failed(problem, detail)


def _why(error: OSError) -> str:
    """Why no connection came about, in the system's words."""
    if isinstance(error, ConnectionRefusedError):
        return "the connection is refused"
    return f"no connection: {error.strerror or type(error).__name__}"
