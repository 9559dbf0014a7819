"""One connection to a server: idle, or carrying one request and its answer.

What one read of the socket brings is parsed by httptools (llhttp) in its strict mode, joined, and
handed on in one call (RFC 9112 sections 4 to 7). What llhttp lets pass is closed here: other
protocols and versions, statuses that are none, transfer codings before `chunked` or in HTTP/1.0,
trailers and chunk extensions without end, an answer after the answer.
"""

import asyncio
import ssl
from typing import Any, Final, Literal, Protocol, cast

import httptools

from cheapgpu.core.limits import HEAD_BYTES, HEAD_FIELDS
from cheapgpu.wire.faults import report_fault
from cheapgpu.wire.sending import Origin, Problem, Receiver, Sending

#: Informational answers before the one that counts.
_MOST_INFORMATIONAL: Final = 10
#: How every answer begins.
_OPENING: Final = b"HTTP/1."


class Keeper(Protocol):
    """Who keeps connections for the next request."""

    def made(self, connection: "ClientConnection") -> None:
        """Take note of a new connection."""

    def keep(self, connection: "ClientConnection") -> bool:
        """Take back a connection whose answer has ended, or not."""

    def forget(self, connection: "ClientConnection") -> None:
        """Let go of a connection that has ended."""


class _BrokenError(Exception):
    """An answer is none, or has too much of a head."""

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem: Problem = problem
        self.detail = detail


class ClientConnection(asyncio.Protocol):
    """Sends a request, and tells its receiver of the answer."""

    __slots__ = (
        "_body",
        "_count",
        "_fields",
        "_framed",
        "_framing",
        "_informational",
        "_is_head_asked",
        "_keep",
        "_keeper",
        "_opened",
        "_parser",
        "_paused",
        "_said_all",
        "_sending",
        "_state",
        "_status",
        "_transport",
        "idle_since",
        "origin",
    )

    def __init__(self, keeper: Keeper, origin: Origin) -> None:
        self.origin = origin
        #: The loop's time when its last answer ended, in seconds.
        self.idle_since = 0.0
        self._keeper = keeper
        self._transport: asyncio.Transport
        self._parser: Any = None
        self._sending: Sending | None = None
        self._state: Literal["idle", "head", "body", "done", "closed"] = "idle"
        # Of the head: how much of its opening was seen, its status (0 once it was told), fields and
        # their lines, how many informational ones came before it.
        self._opened = self._status = self._count = self._informational = 0
        self._fields: dict[bytes, bytes] = {}
        # Whether the request was a HEAD, whose answer has no body.
        self._is_head_asked = False
        # Whether the end of the body is told by its framing; the bytes that came without any of it.
        self._framed = False
        self._framing = 0
        # The body's pieces in one read.
        self._body: bytes | list[bytes] | None = None
        # Whether the connection can be kept, is not read from, was ended in good order.
        self._keep = self._paused = self._said_all = False

    # What the pool does.

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._state == "idle" and not self._transport.is_closing()

    @property
    def descriptor(self) -> int:
        """The socket's number, by which the system knows it; -1 if it has none."""
        sock = self._transport.get_extra_info("socket")
        return -1 if sock is None else int(sock.fileno())

    def carry(self, message: bytes, sending: Sending, *, keep: bool) -> None:
        """Send a request, and give its answer to its receiver."""
        self._sending = sending
        self._state = "head"
        self._opened = self._status = self._count = self._informational = self._framing = 0
        self._fields = {}
        self._is_head_asked = message.startswith(b"HEAD ")
        self._keep = keep
        self._parser = httptools.HttpResponseParser(self)
        sending.attach(self)
        self._transport.write(message)

    def abort(self) -> None:
        """Cut the connection; nobody is told."""
        self._sending = self._parser = None
        self._state = "closed"
        self._transport.abort()

    def give_up(self, detail: str) -> None:
        """Cut the connection, and tell who waits for the answer."""
        self._break("closed", detail)

    def pause(self) -> None:
        """Stop reading."""
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    # What the transport does.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be there for a request."""
        self._transport = cast("asyncio.Transport", transport)
        self._keeper.made(self)

    def data_received(self, data: bytes) -> None:
        """Hand on what a read brought."""
        parser, before = self._parser, self._state
        if parser is None:
            self.abort()  # nobody asked
            return
        try:
            if before == "head":
                self._check_opening(data)
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, _BrokenError) as error:
            if self._state != "done":
                self._break(*_reason(error))
                return
            self._keep = False  # something follows the answer
        body, state = self._body, self._state
        if state == "body" and before == "body" and body is not None:
            self._body = None
            self._framing = 0
            self._tell_body(body)
        else:
            self._tell(before, len(data))

    def eof_received(self) -> bool:
        """Note that the end was said; the transport then closes itself."""
        self._said_all = self._framed or _is_said(self._transport)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the end of what was not whole yet."""
        state, self._state = self._state, "closed"
        self._parser = None
        self._keeper.forget(self)
        sending, self._sending = self._sending, None
        if sending is None:
            return
        if state == "head":
            sending.fail("closed", "the connection was closed before an answer came")
        else:
            # Over TLS, an end that was not said is nobody's word (RFC 9112 section 9.8).
            is_whole = not self._framed and self._said_all and exc is None
            sending.end("whole" if is_whole else "cut")

    # What the parser does.

    def on_message_begin(self) -> None:
        """Note that something follows the answer."""
        if self._state == "done":
            raise _BrokenError("malformed", "an answer follows the answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; trailers are let go."""
        if self._state != "head":
            return
        self._count += 1
        if self._count > HEAD_FIELDS:
            raise _BrokenError("head", f"its head has more than {HEAD_FIELDS} fields")
        fields = self._fields
        name = name.lower()
        value = value.strip()
        fields[name] = b"%b, %b" % (fields[name], value) if name in fields else value

    def on_headers_complete(self) -> None:
        """Note that the head is whole, unless it only announces another (RFC 9110 15.2)."""
        parser, fields = self._parser, self._fields
        status = parser.get_status_code()
        if not 100 <= status <= 599 or parser.get_http_version() not in ("1.1", "1.0"):
            raise _BrokenError("malformed", "its first line is not that of HTTP/1.1")
        if status < 200:
            self._informational += 1
            if status == 101 or self._informational > _MOST_INFORMATIONAL:
                raise _BrokenError("malformed", "it answers with anything but an answer")
            self._fields = {}
            return
        if self._framing > HEAD_BYTES and _size(fields) > HEAD_BYTES:
            raise _BrokenError("head", f"its head has more than {HEAD_BYTES} bytes")
        coding = fields.get(b"transfer-encoding")
        if coding is not None and (
            coding.lower() != b"chunked" or parser.get_http_version() == "1.0"
        ):
            raise _BrokenError("malformed", "its transfer coding is not chunked, in HTTP/1.1")
        self._framed = coding is not None or b"content-length" in fields
        self._status = status
        self._state = "body"
        if self._is_head_asked:
            self._state = "done"
            self._keep = False  # the parser waits for a body, which would be taken for the next

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
            if not self._parser.should_keep_alive():
                self._keep = False

    # What the receiver is told.

    def _check_opening(self, data: bytes) -> None:
        self._framing += len(data)
        opened = self._opened
        if opened < len(_OPENING):
            wanted = _OPENING[opened : opened + len(data)]
            if not data.startswith(wanted):
                raise _BrokenError("malformed", "its first line is not that of HTTP/1.1")
            self._opened = opened + len(wanted)

    def _tell(self, before: str, size: int) -> None:
        """Tell what is not told every time: a head, an end, or nothing yet."""
        if self._state == "head":
            if self._framing > HEAD_BYTES:
                self._break("head", f"its head has more than {HEAD_BYTES} bytes")
            return
        if before == "head":
            self._tell_head()
        body, self._body = self._body, None
        if body is not None and not self._is_head_asked:
            self._tell_body(body)
        if self._sending is None:
            return  # cancelled by its receiver, or given up
        if self._state == "done":
            self._finish()
        elif body is None:
            self._framing += size
            if self._framing > HEAD_BYTES:
                self._break("malformed", "its body has more framing than content")

    def _tell_head(self) -> None:
        self._framing = 0
        status, self._status = self._status, 0
        fields, self._fields = self._fields, {}
        receiver = self._receiver
        if receiver is not None:
            try:
                receiver.head_received(status, fields)
            except Exception as error:  # noqa: BLE001 -- whatever it is, the answer is lost
                self._fault("head_received", error)

    def _tell_body(self, body: bytes | list[bytes]) -> None:
        sending = self._sending
        if sending is None or sending.receiver is None:
            return
        try:
            sending.receiver.body_received(body if isinstance(body, bytes) else b"".join(body))
        except Exception as error:  # noqa: BLE001 -- whatever it is, the answer is lost
            self._fault("body_received", error)

    @property
    def _receiver(self) -> Receiver | None:
        return self._sending.receiver if self._sending is not None else None

    def _finish(self) -> None:
        """The answer is whole: keep the connection or close it, and tell its receiver."""
        self._parser = None
        transport = self._transport
        keep = self._keep and not transport.is_closing() and not transport.get_write_buffer_size()
        if keep:
            self._state = "idle"
            self.resume()
            keep = self._keeper.keep(self)
        if not keep:
            self._state = "closed"
            transport.close()
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.end("whole")

    def _break(self, problem: Problem, detail: str) -> None:
        """Give the answer up: what came is no HTTP, or too much of it."""
        state = self._state
        if self._status:
            self._tell_head()
        body, self._body = self._body, None
        if body is not None:
            self._tell_body(body)
        sending = self._sending
        self.abort()
        if sending is None:
            return
        if state == "head":
            sending.fail(problem, detail)
        else:
            sending.end("cut")

    def _fault(self, what: str, error: Exception) -> None:
        """A receiver has failed at what it was told: it is told the end, and nothing between."""
        report_fault(f"{type(self._receiver).__name__}.{what}", error)
        self._body = None
        self._break("closed", "a fault of this program")


def _is_said(transport: asyncio.Transport) -> bool:
    """Whether an end is the peer's own word: over TLS, asyncio tells of an end that is not.

    A connection that was ended by TLS reads as empty; any other, as one whose bytes are missing.
    """
    secured = transport.get_extra_info("ssl_object")
    if secured is None:
        return True
    try:
        return not secured.read(1)
    except ssl.SSLZeroReturnError:
        return True
    except ssl.SSLError:
        return False


def _reason(error: Exception) -> tuple[Problem, str]:
    """Why an answer is given up: what a callback of ours has raised, or llhttp itself."""
    cause = error if isinstance(error, _BrokenError) else error.__context__
    if isinstance(cause, _BrokenError):
        return cause.problem, cause.detail
    return "malformed", "what it sent is not sound HTTP/1.1"


def _size(fields: dict[bytes, bytes]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in fields.items())
