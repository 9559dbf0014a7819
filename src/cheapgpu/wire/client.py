"""The client side of HTTP/1.1: kept connections, one request at a time on each, none sent twice.

Callbacks only: what one read of the socket brings is parsed, joined and handed on in one call.
Source: RFC 9112; framing by httptools (llhttp), in its strict mode. HEAD is not asked with it.
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
_POOL_CLOSED: Final = "this program is closing its connections"


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

    def dial(self, dialling: "asyncio.Task[None]") -> None:
        """Take the task that opens a connection for it."""
        self._dialling = dialling

    def attach(self, connection: "Connection") -> None:
        """Take the connection that carries it."""
        self._connection = connection
        self._dialling = None
        self.sent = True
        if self._paused:
            connection.pause()

    def settle(self) -> Receiver | None:
        """Let the connection go; who is to be told the end, once."""
        self._connection = self._dialling = None
        receiver, self.receiver = self.receiver, None
        return receiver


class _BrokenError(Exception):
    """What came is no answer that can be read."""

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


class Connection(asyncio.Protocol):
    """One connection: idle, or carrying one request and its answer."""

    __slots__ = (
        "_barren",
        "_body",
        "_fields",
        "_framed",
        "_informational",
        "_keep",
        "_parser",
        "_paused",
        "_pool",
        "_room",
        "_sending",
        "_size",
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
        # One for all answers: making one costs more than reading with it.
        self._parser: Any = httptools.HttpResponseParser(self)
        self._sending: Sending | None = None
        self._state: Literal["idle", "head", "body", "done", "closed"] = "idle"
        self._fields: dict[bytes, bytes] = {}
        # How many fields may still come, and the bytes of those that came.
        self._room = self._size = 0
        # Bytes in reads that brought nothing of a body, since one did.
        self._barren = 0
        self._informational = 0
        # Whether the end of the body is announced, and whether the connection is kept afterwards.
        self._framed = self._keep = self._paused = False
        self._body: bytes | list[bytes] | None = None

    # What the pool does.

    def carry(self, message: bytes, sending: Sending) -> None:
        """Send a request, and give its answer to its receiver."""
        assert self._transport is not None  # noqa: S101 -- it is connected, or it is not here
        self._sending = sending
        self._state = "head"
        self._barren = self._informational = 0
        self._body = None
        sending.attach(self)
        self._transport.write(message)

    def abort(self) -> None:
        """Cut the connection."""
        self._sending = None
        self._state = "closed"
        if self._transport is not None:
            self._transport.abort()

    def give_up(
        self, problem: Problem, detail: str, ending: Literal["whole", "cut"] = "cut"
    ) -> None:
        """Cut the connection, and tell the receiver of the answer that it carries."""
        self._hand_on()
        state, sending = self._state, self._sending
        self.abort()
        receiver = sending.settle() if sending is not None else None
        if receiver is None:
            return
        if state == "head":
            receiver.failed(problem, detail)
        else:
            receiver.ended(ending)

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
        """Be there for a request."""
        self._transport = cast("asyncio.Transport", transport)
        self._pool.open.add(self)

    def data_received(self, data: bytes) -> None:
        """Read the answer; what nobody asked for ends the connection."""
        if self._sending is None:
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            if not isinstance(cause, _BrokenError):
                raise cause or error from None
            self._broken(cause.problem, cause.detail)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._broken("malformed", "what it sent is not HTTP/1.1")
        else:
            if self._body is not None:
                self._barren = 0
                self._hand_on()
            elif self._state != "done":
                self._barren += len(data)
                if self._barren > HEAD_BYTES:
                    self.give_up("head", f"its head has more than {HEAD_BYTES} bytes")
            if self._state == "done":
                self._finish(keep=self._keep)

    def eof_received(self) -> bool:
        """Take the end of the connection for the end of a body that has no other."""
        self._closed(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that the answer is not whole."""
        self._transport = None
        self._closed(exc)
        self._pool.forget(self)

    # What the parser does.

    def on_message_begin(self) -> None:
        """Be ready for a head; nothing may follow an answer."""
        if self._state != "head":
            raise _BrokenError("malformed", "it sent more than an answer")
        self._fields = {}
        self._room = HEAD_FIELDS
        self._size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; trailers are let go."""
        if self._state != "head":
            return
        fields = self._fields
        name = name.lower()
        self._size += len(name) + len(value) + 4
        self._room -= 1
        if self._room < 0:
            raise _BrokenError("head", f"its head has more than {HEAD_FIELDS} fields")
        if self._size > HEAD_BYTES:
            raise _BrokenError("head", f"its head has more than {HEAD_BYTES} bytes")
        fields[name] = b"%b, %b" % (fields[name], value) if name in fields else value

    def on_headers_complete(self) -> None:
        """Hand the head on, unless it only announces another (RFC 9110 section 15.2)."""
        status = self._parser.get_status_code()
        fields = self._fields
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0") or status < 100 or status == 101:
            raise _BrokenError("malformed", "it does not speak HTTP/1.1")
        if status < 200:
            self._informational += 1
            if self._informational > _MOST_INFORMATIONAL:
                raise _BrokenError("malformed", "it sent too many informational answers")
            return
        coding = fields.get(b"transfer-encoding")
        if coding is not None and not (version == "1.1" and coding.strip().lower() == b"chunked"):
            raise _BrokenError("malformed", "it sent a transfer coding that was not asked for")
        self._framed = coding is not None or b"content-length" in fields
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

    # How it ends.

    def _hand_on(self) -> None:
        gathered, self._body = self._body, None
        if gathered is not None and self._sending is not None:
            receiver = self._sending.receiver
            if receiver is not None:
                whole = b"".join(gathered) if isinstance(gathered, list) else gathered
                receiver.body_received(whole)

    def _finish(self, *, keep: bool) -> None:
        """The answer is whole: tell its receiver, and keep the connection or let it go."""
        sending, self._sending = self._sending, None
        transport = self._transport
        if sending is None or transport is None:
            return
        receiver = sending.settle()
        # A server may answer before it has read all; what it reads next would be in doubt.
        if keep and not transport.get_write_buffer_size():
            self._state = "idle"
            self.resume()
            self._pool.keep(self)
        else:
            self.abort()
        if receiver is not None:
            receiver.ended("whole")

    def _broken(self, problem: Problem, detail: str) -> None:
        """Give the answer up, unless it was whole before what came then."""
        self._hand_on()
        if self._state == "done":
            self._finish(keep=False)
        else:
            self.give_up(problem, detail)

    def _closed(self, exc: Exception | None) -> None:
        whole = not self._framed and exc is None
        what = "it closed the connection without an answer"
        self.give_up("closed", what, "whole" if whole else "cut")


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
        #: Every connection that has not ended.
        self.open: set[Connection] = set()
        self._idle: dict[Origin, deque[Connection]] = {}
        self._dialling: dict[asyncio.Task[None], Sending] = {}
        self._is_closed = False
        # Done once none is open, while closing.
        self._empty: asyncio.Future[None] | None = None
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
                sending.reused = True
                connection.carry(message, sending)
                return sending
            connection.abort()
        task = self._loop.create_task(self._dial(origin, message, sending))
        self._dialling[task] = sending
        task.add_done_callback(self._dialling.pop)
        sending.dial(task)
        return sending

    def keep(self, connection: Connection) -> None:
        """Take back a connection whose answer has ended."""
        idle = self._idle.setdefault(connection.origin, deque())
        if self._is_closed or len(idle) >= self._idle_most:
            connection.abort()
            return
        connection.idle_since = self._loop.time()
        idle.append(connection)

    def forget(self, connection: Connection) -> None:
        """Let go of a connection that has ended."""
        self.open.discard(connection)
        if self._empty is not None and not self.open and not self._empty.done():
            self._empty.set_result(None)
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
        """Cut every connection, and tell whose answers are not whole; nothing is sent any more."""
        self._is_closed = True
        self._sweeper.stop()
        for task, sending in tuple(self._dialling.items()):
            task.cancel()
            _fail(sending, "closed", _POOL_CLOSED)
        for connection in tuple(self.open):
            connection.give_up("closed", _POOL_CLOSED)
        await asyncio.gather(*self._dialling, return_exceptions=True)
        if self.open:
            self._empty = self._loop.create_future()
            await self._empty

    async def _dial(self, origin: Origin, message: bytes, sending: Sending) -> None:
        problem: Problem = "connect"
        if self._is_closed:
            _fail(sending, "closed", _POOL_CLOSED)
            return
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
        except (ValueError, OverflowError):  # a name or a port that is none
            detail = "no connection: there is no such address"
        else:
            if sending.receiver is None:  # it was cancelled meanwhile
                connection.abort()
                return
            if connection.is_open:
                connection.carry(message, sending)
                return
            problem, detail = "closed", "it closed the connection at once"
        _fail(sending, problem, detail)


def _fail(sending: Sending, problem: Problem, detail: str) -> None:
    receiver = sending.settle()
    if receiver is not None:
        receiver.failed(problem, detail)


def _why(error: OSError) -> str:
    """Why no connection came about, in the system's words."""
    if isinstance(error, ConnectionRefusedError):
        return "the connection is refused"
    return f"no connection: {error.strerror or type(error).__name__}"
