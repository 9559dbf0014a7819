"""Requests out of bytes: read within limits, and refused wherever two readers could differ.

What could be taken for two different requests ends the reading (RFC 9112 section 11.2). httptools
(llhttp) reads in its strict mode; what that lets pass is refused here.
"""

import re
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

import httptools
from msgspec import Struct

from cheapgpu.core.limits import HEAD_BYTES, HEAD_FIELDS, HEAD_SECONDS, REQUEST_BYTES
from cheapgpu.wire.message import RequestHead, Response

_TARGET_BYTES: Final = 8192
#: A path, and perhaps a query: visible ASCII without `#` (RFC 9112 section 3.2.1).
_is_path: Final = re.compile(rb"/[!-\"$-~]*").fullmatch
#: Fields of which a second one makes a request ambiguous.
_SINGLE: Final = frozenset((b"host", b"authorization", b"content-type", b"content-length"))


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


class RefusedError(Exception):
    """What is being read is refused, and nothing after it is read: a status and why, or a response.

    The reason repeats nothing of what came.
    """

    def __init__(self, status: int, reason: str, response: Response | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.response = response


class Reading(Protocol):
    """Who is told what has been read; each method may raise RefusedError."""

    def begun(self) -> None:
        """The first byte of a request has come."""

    def admit(self, head: RequestHead, now: float) -> Response | None:
        """A head has come, and is sound: refuse the request by it, or let its body be read."""

    def whole(self, body: bytes, refusal: Response | None, *, keep: bool) -> None:
        """A request has come; with `keep` the connection is to be kept after its answer."""


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    __slots__ = (
        "_body",
        "_fields",
        "_limits",
        "_more",
        "_parser",
        "_reading",
        "_room",
        "_size",
        "_target",
        "_time",
        "awaits_continue",
        "head",
        "http_1_1",
        "phase",
        "received",
        "refusal",
    )

    def __init__(self, reading: Reading, limits: ServerLimits, time: Callable[[], float]) -> None:
        self._reading = reading
        self._limits = limits
        self._time = time
        self._parser: Any = httptools.HttpRequestParser(self)
        #: What of a request is being read.
        self.phase: Literal["idle", "head", "body"] = "idle"
        #: The request that is being read: its version, its head, when that was whole, what refuses
        #: it, and whether its client waits for `100 Continue` (RFC 9110 section 10.1.1).
        self.http_1_1 = True
        self.head: RequestHead | None = None
        self.received = 0.0
        self.refusal: Response | None = None
        self.awaits_continue = False
        self._begin()

    @property
    def is_head(self) -> bool:
        """Whether what is being read asks for no body in its answer."""
        return bool(self._target) and self._parser.get_method() == b"HEAD"

    def feed(self, data: bytes) -> None:
        """Read on. Raises RefusedError where this, and all that would follow, is refused."""
        if self.phase != "idle":
            self._more += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            raise RefusedError(400, "the message is not sound HTTP/1.1", self.refusal) from None
        limits = self._limits
        if self._more <= limits.head_bytes:
            return
        if self.phase == "head":
            raise self._head_too_long()
        # Chunks may be small, but their extensions and trailers may not go on for ever.
        if self._more > limits.head_bytes + 2 * limits.body_bytes:
            raise self._body_too_large()

    # What the parser does.

    def on_message_begin(self) -> None:
        """Note the first byte of a request."""
        self._reading.begun()
        self.phase = "head"

    def on_url(self, url: bytes) -> None:
        """Gather the target."""
        self._target += url
        if len(self._target) > _TARGET_BYTES:
            raise RefusedError(414, f"the target has more than {_TARGET_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; trailers are let go."""
        if self.phase != "head":
            return
        fields = self._fields
        name = name.lower()
        self._size += len(name) + len(value) + 4
        self._room -= 1
        if self._room < 0:
            raise RefusedError(431, f"the head has more than {self._limits.head_fields} fields")
        if self._size > self._limits.head_bytes:
            raise self._head_too_long()
        if name in fields:
            if name in _SINGLE:
                raise RefusedError(400, f"the field {name.decode()} stands there twice")
            value = b"%b, %b" % (fields[name], value)
        fields[name] = value

    def on_headers_complete(self) -> None:
        """Look at the whole head, and ask whether its body may come."""
        fields = self._fields
        version = self._parser.get_http_version()
        http_1_1 = self.http_1_1 = version == "1.1"
        if not http_1_1 and version != "1.0":
            raise RefusedError(505, "HTTP/1.1 is spoken here")
        method = self._parser.get_method().decode("ascii")
        self._check(method, fields)
        now = self.received = self._time()
        target = self._target.decode("ascii")
        head = self.head = RequestHead(method, target, target.partition("?")[0], fields)
        self.phase = "body"
        self._size = self._more = 0
        self.refusal = self._reading.admit(head, now)
        if b"expect" in fields and http_1_1:
            if self.refusal is not None:
                raise RefusedError(self.refusal.status, "not admitted", self.refusal)
            self.awaits_continue = b"content-length" in fields or b"transfer-encoding" in fields

    def on_body(self, data: bytes) -> None:
        """Gather the body; that of a refused request is let go."""
        self.awaits_continue = False
        self._size += len(data)
        if self._size > self._limits.body_bytes:
            raise self._body_too_large()
        if self.refusal is None:
            self._body.append(data)

    def on_message_complete(self) -> None:
        """Hand the request on."""
        pieces, refusal = self._body, self.refusal
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        # A client of HTTP/1.0 that asks to keep it would have to be told so in a field of its own.
        keep = self.http_1_1 and self._parser.should_keep_alive()
        self._begin()
        self._reading.whole(body, refusal, keep=keep)

    def _begin(self) -> None:
        """Be ready for the next request."""
        self.phase = "idle"
        self.refusal = None
        self.awaits_continue = False
        self._target = b""
        self._fields: dict[bytes, bytes] = {}
        #: How many fields may still come, and how many bytes of fields, then of body, have come.
        self._room = self._limits.head_fields
        self._size = 0
        self._body: list[bytes] = []
        #: Bytes of this head, then of this body, in reads that began inside it.
        self._more = 0

    def _check(self, method: str, fields: dict[bytes, bytes]) -> None:
        """Refuse what llhttp lets pass, and what could be read in two ways (RFC 9112)."""
        if method == "CONNECT" or (b"upgrade" in fields and self._parser.should_upgrade()):
            raise RefusedError(501, "no other protocol is spoken here")
        if not _is_path(self._target):
            raise RefusedError(400, "the target must be a path")
        if self.http_1_1 and not fields.get(b"host"):
            raise RefusedError(400, "HTTP/1.1 needs a Host field")
        coding = fields.get(b"transfer-encoding")
        if coding is not None and not (self.http_1_1 and coding.strip().lower() == b"chunked"):
            raise RefusedError(501, "no transfer coding but chunked is read")
        expect = fields.get(b"expect")
        if expect is not None and self.http_1_1 and expect.strip().lower() != b"100-continue":
            raise RefusedError(417, "no expectation but 100-continue is met")
        length = fields.get(b"content-length")
        if length is not None and int(length) > self._limits.body_bytes:
            raise self._body_too_large()

    def _head_too_long(self) -> RefusedError:
        return RefusedError(431, f"the head has more than {self._limits.head_bytes} bytes")

    def _body_too_large(self) -> RefusedError:
        what = f"the body has more than {self._limits.body_bytes} bytes"
        return RefusedError(413, what, self.refusal)
