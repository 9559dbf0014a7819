"""The server side of HTTP/1.1: requests read within limits and time, answers written at once.

Nothing ambiguous is passed on: what two readers could take for two different requests is refused
and the connection closed (RFC 9112 section 11.2). httptools (llhttp) reads in its strict mode; what
that lets pass is closed here. Requests that come while one is answered wait, and reading with them.
"""

import asyncio
from collections import deque
from itertools import chain
from typing import Any, Final, Literal, Protocol, cast

import httptools
from msgspec import Struct

from cheapgpu.core.limits import HEAD_BYTES, HEAD_FIELDS, HEAD_SECONDS, REQUEST_BYTES
from cheapgpu.wire.message import Lines, RequestHead, Response, response_head

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
_TARGET_BYTES: Final = 8192
#: Fields of which a second one makes a request ambiguous.
_SINGLE: Final = frozenset((b"host", b"authorization", b"content-type", b"content-length"))
#: Seconds for which a closed connection is read on, so that its client reads the answer first.
_LINGER_SECONDS: Final = 2.0


class ServerLimits(Struct, frozen=True):
    """What one client may send, and how long it may take; bytes and seconds."""

    head_bytes: int = HEAD_BYTES
    head_fields: int = HEAD_FIELDS
    body_bytes: int = REQUEST_BYTES
    head_seconds: float = HEAD_SECONDS
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    #: How long a client may take nothing of what is written to it.
    stall_seconds: float = 60.0
    #: Connections at once.
    connections: int = 10_000


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
    """One request that is being answered, and the way to answer it."""

    __slots__ = ("_connection", "_head", "_state", "body", "client", "head", "received")

    def __init__(
        self, connection: "ServerConnection", head: RequestHead, body: bytes, received: float
    ) -> None:
        self.head = head
        self.body = body
        #: The loop's time when the head was whole, in seconds.
        self.received = received
        #: Who is told what the client does.
        self.client: CallClient | None = None
        self._connection: ServerConnection | None = connection
        self._head = b""
        self._state: Literal["waiting", "chunked", "close", "over"] = "waiting"

    @property
    def paused(self) -> bool:
        """Whether the client reads too slowly."""
        return self._connection is not None and self._connection.paused

    @property
    def peer(self) -> str:
        """The client's address; "" once it has left."""
        return self._connection.peer if self._connection is not None else ""

    def respond(self, response: Response) -> None:
        """Answer whole. Without effect once the client has left."""
        connection = self._over()
        if connection is not None:
            connection.write_response(response, head_only=self.head.method == "HEAD")

    def start(self, status: int, lines: Lines) -> None:
        """Begin an answer in pieces; its head leaves with the first of them."""
        connection = self._connection
        if connection is None:
            return
        chunked = connection.http_1_1
        self._state = "chunked" if chunked else "close"
        if not chunked:
            connection.keep = False
        framing = _CHUNKED if chunked else b""
        self._head = response_head(status, lines, framing=framing, keep=connection.keep)

    def write(self, data: bytes) -> None:
        """Write a piece, in this turn of the loop."""
        connection = self._connection
        if connection is None or not data:
            return
        head = self._head
        if self._state == "chunked":
            connection.write(b"%b%x\r\n%b\r\n" % (head, len(data), data))
        else:
            connection.write(head + data)
        if head:
            self._head = b""

    def end(self, *, close: bool = False) -> None:
        """End an answer in pieces, and with `close` the connection."""
        state = self._state
        connection = self._over()
        if connection is None:
            return
        if close:
            connection.keep = False
        connection.write(self._head + (_LAST_CHUNK if state == "chunked" else b""))
        connection.answered()

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


class _RefusedError(Exception):
    """A message is refused while it is read."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class _Waiting(Struct, frozen=True):
    """A whole request whose turn has not come."""

    head: RequestHead
    body: bytes
    received: float
    refusal: Response | None
    keep: bool
    http_1_1: bool


class Connections:
    """What all connections of a listener share."""

    def __init__(self, service: Service, limits: ServerLimits) -> None:
        self.service = service
        self.limits = limits
        self.open: set[ServerConnection] = set()
        self.loop = asyncio.get_running_loop()
        self.draining = False
        #: Done once nothing is answered any more, while draining.
        self.quiet: asyncio.Future[None] | None = None

    @property
    def calls(self) -> int:
        """How many requests are being answered."""
        return sum(connection.busy for connection in self.open)

    def check_quiet(self) -> None:
        """Tell who drains, once there is nothing left to wait for."""
        if self.quiet is not None and not self.quiet.done() and not self.calls:
            self.quiet.set_result(None)


class ServerConnection(asyncio.Protocol):
    """One client's connection: one call at a time, in the order of its requests."""

    __slots__ = (
        "_backlog",
        "_body",
        "_call",
        "_deadline",
        "_deaf",
        "_fields",
        "_head",
        "_head_bytes",
        "_parser",
        "_received",
        "_refusal",
        "_shared",
        "_size",
        "_state",
        "_target",
        "_transport",
        "http_1_1",
        "keep",
        "paused",
        "peer",
    )

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self._transport: asyncio.Transport | None = None
        self._parser: Any = httptools.HttpRequestParser(self)
        self._call: Call | None = None
        #: Whole requests that wait for their turn: those that one read brought, no more.
        self._backlog: deque[_Waiting] = deque()
        self._state: Literal["idle", "head", "body", "closing"] = "idle"
        self._deadline = 0.0
        self.keep = True
        self.http_1_1 = True
        self.paused = False
        self.peer = ""
        # Whether reading is paused.
        self._deaf = False
        # The request that is being read: its target, its fields, the bytes that came before its
        # body, its head, when that was whole, what refuses it, its body and the bytes of that.
        self._target = b""
        self._fields: dict[bytes, bytes] = {}
        self._head_bytes = 0
        self._head: RequestHead | None = None
        self._received = 0.0
        self._refusal: Response | None = None
        self._body: list[bytes] = []
        self._size = 0

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._call is not None

    # What the transport does.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) else ""
        shared = self._shared
        shared.open.add(self)
        self._deadline = shared.loop.time() + shared.limits.head_seconds
        if len(shared.open) > shared.limits.connections:
            self._reject(503, "too many connections")

    def data_received(self, data: bytes) -> None:
        if self._state == "closing":
            return
        if self._state == "idle":
            self._state = "head"
            self._deadline = self._shared.loop.time() + self._shared.limits.head_seconds
        if self._state == "head":
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._reject(501, "no other protocol is spoken here")
        except _RefusedError as refused:
            self._reject(refused.status, refused.reason)
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, _RefusedError):
                self._reject(cause.status, cause.reason)
            else:
                self._reject(400, "the message is not sound HTTP/1.1")
        if self._state == "head" and self._head_bytes > self._shared.limits.head_bytes:
            self._reject(431, self._too_long())

    def eof_received(self) -> bool:
        return False  # a client that has said its last is taken for gone

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._state = "closing"
        self._backlog.clear()
        shared = self._shared
        shared.open.discard(self)
        call, self._call = self._call, None
        if call is not None:
            call.leave()
        shared.check_quiet()

    def pause_writing(self) -> None:
        self.paused = True
        self._deadline = self._shared.loop.time() + self._shared.limits.stall_seconds
        if self._call is not None and self._call.client is not None:
            self._call.client.pause()

    def resume_writing(self) -> None:
        self.paused = False
        if self._call is not None and self._call.client is not None:
            self._call.client.resume()

    # What the parser does.

    def on_url(self, url: bytes) -> None:
        """Gather the target."""
        self._target += url
        if len(self._target) > _TARGET_BYTES:
            raise _RefusedError(414, f"the target has more than {_TARGET_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; trailers are let go."""
        if self._state != "head":
            return
        fields = self._fields
        name = name.lower()
        if name in fields:
            if name in _SINGLE:
                raise _RefusedError(400, f"the field {name.decode()} stands there twice")
            value = b"%b, %b" % (fields[name], value)
        elif len(fields) >= self._shared.limits.head_fields:
            raise _RefusedError(431, f"more than {self._shared.limits.head_fields} fields")
        fields[name] = value

    def on_headers_complete(self) -> None:
        """Look at the whole head, and ask the service whether its body may come."""
        shared = self._shared
        self._check_head()
        now = self._received = shared.loop.time()
        self._state = "body"
        self._deadline = now + shared.limits.body_seconds
        target = self._target.decode("ascii")
        method = self._parser.get_method().decode("ascii")
        head = RequestHead(method, target, target.partition("?")[0], self._fields)
        self._head = head
        self._refusal = shared.service.admit(head)
        expects = b"expect" in self._fields
        if self._refusal is not None and expects:
            self._close_with(self._refusal)
        elif expects and self._call is None:
            self.write(_CONTINUE)

    def on_body(self, data: bytes) -> None:
        """Gather the body; that of a refused request is let go."""
        self._size += len(data)
        if self._size > self._shared.limits.body_bytes:
            raise _RefusedError(413, self._too_large())
        if self._refusal is None:
            self._body.append(data)

    def on_message_complete(self) -> None:
        """The request is whole: serve it, or let it wait for its turn."""
        head, body = self._head, self._body
        if self._state != "body" or head is None:
            return
        waiting = _Waiting(
            head,
            body[0] if len(body) == 1 else b"".join(body),
            self._received,
            self._refusal,
            self._parser.should_keep_alive(),
            self._parser.get_http_version() == "1.1",
        )
        self._begin()
        if self._call is None:
            self._serve(waiting)
        else:
            # Read no more until its turn. (Otherwise reading goes on during an answer: only so is a
            # client's leaving seen.)
            self._backlog.append(waiting)
            self._pause_reading()

    # What a call does.

    def write(self, data: bytes) -> None:
        """Write bytes of an answer."""
        if self._transport is not None:
            self._transport.write(data)

    def write_response(self, response: Response, *, head_only: bool = False) -> None:
        """Write a whole answer, and take the next request."""
        framing = b"content-length: %d\r\n" % len(response.body)
        keep = self.keep = self.keep and not self._shared.draining
        head = response_head(response.status, response.lines, framing=framing, keep=keep)
        self.write(head if head_only else head + response.body)
        self.answered()

    def answered(self) -> None:
        """The answer is over: take the next request, or close."""
        self._call = None
        shared = self._shared
        if not self.keep or shared.draining:
            self._state = "closing"
            self._deadline = shared.loop.time() + shared.limits.stall_seconds
            if self._transport is not None:
                self._transport.close()
        elif self._backlog:
            self._serve(self._backlog.popleft())
        else:
            limits = shared.limits
            seconds = limits.idle_seconds if self._state == "idle" else limits.body_seconds
            self._deadline = shared.loop.time() + seconds
            self._resume_reading()
        if shared.draining:
            shared.check_quiet()

    def cut(self) -> None:
        """Cut the connection."""
        self._call = None
        self._state = "closing"
        if self._transport is not None:
            self._transport.abort()
        self._shared.check_quiet()

    # What the listener does.

    def sweep(self, now: float) -> None:
        """Look at the clock: who is too slow, or idle for too long, is closed."""
        if now < self._deadline:
            return
        if self._state == "closing" or self.paused:
            if self._transport is not None:
                self._transport.abort()
        elif self._call is not None:
            return
        elif self._state in ("head", "body") and self._head_bytes:
            self._reject(408, f"the {self._state} did not come in time")
        else:
            self.close()

    def drain(self) -> None:
        """Close the connection now, if it answers nothing; otherwise after the answer."""
        if self._call is None and self._state != "closing":
            self.close()

    def close(self) -> None:
        """Close the connection in good order."""
        self._state = "closing"
        self._deadline = self._shared.loop.time() + _LINGER_SECONDS
        if self._transport is not None:
            self._transport.close()

    def _begin(self) -> None:
        """Be ready for the next request."""
        self._state = "idle"
        self._head = None
        self._head_bytes = 0
        self._target = b""
        self._fields = {}
        self._body = []
        self._size = 0
        self._refusal = None

    def _check_head(self) -> None:
        """Refuse what llhttp lets pass, and what could be read in two ways (RFC 9112)."""
        if self._state == "closing":
            return
        fields, version = self._fields, self._parser.get_http_version()
        most = self._shared.limits.head_bytes
        if self._head_bytes > most and sum(map(len, chain(*fields.items()))) > most:
            raise _RefusedError(431, self._too_long())
        if version not in ("1.0", "1.1"):
            raise _RefusedError(505, "HTTP/1.1 is spoken here")
        if version == "1.1" and not fields.get(b"host"):
            raise _RefusedError(400, "HTTP/1.1 needs a Host field")
        if not self._target.startswith(b"/"):
            raise _RefusedError(400, "the target must be a path")
        coding = fields.get(b"transfer-encoding")
        if coding is not None and (version == "1.0" or coding.strip().lower() != b"chunked"):
            raise _RefusedError(501, "no transfer coding but chunked is read")
        expect = fields.get(b"expect")
        if expect is not None and expect.strip().lower() != b"100-continue":
            raise _RefusedError(417, "no expectation but 100-continue is met")
        length = fields.get(b"content-length")
        if length is not None and int(length) > self._shared.limits.body_bytes:
            raise _RefusedError(413, self._too_large())

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._deaf:
            self._deaf = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and self._deaf:
            self._deaf = False
            self._transport.resume_reading()

    def _too_long(self) -> str:
        return f"the head has more than {self._shared.limits.head_bytes} bytes"

    def _too_large(self) -> str:
        return f"the body has more than {self._shared.limits.body_bytes} bytes"

    def _serve(self, waiting: _Waiting) -> None:
        self.keep = waiting.keep
        self.http_1_1 = waiting.http_1_1
        call = self._call = Call(self, waiting.head, waiting.body, waiting.received)
        if waiting.refusal is not None:
            call.respond(waiting.refusal)
            return
        shared = self._shared
        try:
            shared.service.serve(call)
        except Exception as error:  # noqa: BLE001 -- a fault of ours must not leave a client waiting
            what = f"{type(shared.service).__name__}.serve failed"
            shared.loop.call_exception_handler({"message": what, "exception": error})
            self.keep = False
            call.respond(shared.service.refuse(500, "a fault of this server"))

    def _reject(self, status: int, reason: str) -> None:
        """Refuse a message that is none, and close."""
        if self._state != "closing":
            self._close_with(self._shared.service.refuse(status, reason))

    def _close_with(self, response: Response) -> None:
        """Answer for the last time, and linger so that the answer is read (RFC 9112 section 9.6)."""
        transport = self._transport
        if self._call is not None:
            # An answer is on its way, and what came after its request is none: close after it.
            self.keep = False
            self._backlog.clear()
            self._pause_reading()
            return
        self._state = "closing"
        self._deadline = self._shared.loop.time() + _LINGER_SECONDS
        if transport is None:
            return
        framing = b"content-length: %d\r\n" % len(response.body)
        head = response_head(response.status, response.lines, framing=framing, keep=False)
        transport.write(head + response.body)
        if transport.can_write_eof():
            transport.write_eof()
            self._resume_reading()
        else:
            transport.close()
