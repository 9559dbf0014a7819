"""Reads requests from a connection's bytes; what could be read in two ways is refused.

RFC 9112 sections 2 to 7, and 11.2 for why. The end of a head is found and its first line read here;
llhttp (httptools), in its strict mode, takes its fields and chunked bodies apart: a new parser for
each request, so that nothing of one request reaches the next. What llhttp lets pass is closed here:
other protocols (RTSP, ICE), HTTP/0.9 and 2.0, several spaces in the first line, bare line ends
before it, a second Host, a transfer coding before `chunked` or in HTTP/1.0, endless trailers.
"""

import re
from typing import Any, Final

import httptools

from cheapgpu.wire.message import RequestHead
from cheapgpu.wire.server import ServerLimits

_HEAD_END: Final = b"\r\n\r\n"
_CR: Final = 0x0D
#: RFC 9112 section 3: three parts, a single space between them.
_FIRST_LINE: Final = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/([0-9])\.([0-9])\r\n"
)
#: What can become a first line, however it ends.
_BEGINNING: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?: (?:[!-~]+(?: [!-~]*)?)?)?\r?")
#: RFC 9112 section 2.2: empty lines before the first one are let go.
_EMPTY_LINES: Final = re.compile(rb"(?:\r\n)*")
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
#: RFC 9110 section 7.2, loosely: what no host is written with.
_NO_HOST: Final = re.compile(rb"[^!-~]|[/?#@,\\\"<>]")
#: What is no HTTP/1.x: HTTP/0.9, which names no version, or another version or protocol.
_OTHER_LINE: Final = re.compile(rb"[A-Z]+ [!-~]+(?: (?!HTTP/1\.)[A-Z]+/[0-9.]+)?\r\n")
_TARGET_BYTES: Final = 8192
#: Digits of the largest length that llhttp takes; before them may stand zeros without end.
_LENGTH_DIGITS: Final = 20
#: More than method, version and spaces need.
_FIRST_LINE_BYTES: Final = _TARGET_BYTES + 64
_UNSOUND: Final = "the head is not sound HTTP/1.1"
#: Fields of which a second one makes a request ambiguous.
_SINGLE: Final = frozenset((b"host", b"authorization", b"content-type", b"content-length"))


class RefusedError(Exception):
    """A message cannot be read as one request, or is larger than is allowed."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        #: The status that says so.
        self.status = status
        #: Why, in words; nothing of the message.
        self.reason = reason


class RequestReader:
    """Reads one request after the other; whoever feeds it asks for a head, then for its body.

    Attributes, of the request whose head was read last: `is_head` (its answer has no body), `keep`
    (the connection may be kept), `is_chunkable` (its client reads chunked answers),
    `awaits_continue` (its client sends the body only when told to), `announced` (the body's bytes,
    if their number was announced), `discards` (set it to let the body go as it comes).
    """

    __slots__ = (
        "_body",
        "_chunks",
        "_fields",
        "_framing",
        "_held",
        "_limits",
        "_missing",
        "_room",
        "_size",
        "_whole",
        "announced",
        "awaits_continue",
        "discards",
        "is_chunkable",
        "is_head",
        "keep",
    )

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        # Bytes that came and are not read yet.
        self._held = b""
        # The fields of the head that is being read, and how many may still come.
        self._fields: dict[bytes, bytes] = {}
        self._room = 0
        # The body: what has come in several reads, its bytes, what is missing of an announced
        # length; the parser of a chunked one, whether that is whole, bytes that brought none of it.
        self._body: bytearray | None = None
        self._missing = 0
        self._chunks: Any = None
        self._size = 0
        self._whole = False
        self._framing = 0
        self.announced = 0
        self.keep = self.is_chunkable = True
        self.is_head = False
        self.awaits_continue = self.discards = False

    @property
    def ahead(self) -> int:
        """Bytes that came and are not read yet."""
        return len(self._held)

    def receive(self, data: bytes) -> None:
        """Take what the socket brought."""
        self._held = self._held + data if self._held else data

    def read_head(self) -> RequestHead | None:
        """The next head; None while it is not whole. Raises RefusedError."""
        self.is_head = False
        held = self._held
        if held and held[0] == _CR:
            empty = _EMPTY_LINES.match(held)
            held = self._held = held[empty.end() :] if empty else held
        end = held.find(_HEAD_END) + len(_HEAD_END)
        if end < len(_HEAD_END):
            if held:
                self._check_beginning(held)
            return None
        if end > self._limits.head_bytes:
            raise self._too_long(held)
        line = _FIRST_LINE.match(held)
        if line is None:
            raise _unsound_line(held)
        method, target = line[1].decode("ascii"), line[2].decode("ascii")
        major, minor = line[3], line[4]
        self.is_head = method == "HEAD"
        _check_line(method, target, major + minor)
        fields = self._read_fields(held[:end])
        self._held = held[end:]
        self._prepare(fields, is_1_1=minor == b"1")
        return RequestHead(method, target, target.partition("?")[0], fields)

    def read_body(self) -> bytes | None:
        """The body of the request whose head was read; None while it is not whole.

        That of a request that is discarded is empty. Raises RefusedError.
        """
        if self._chunks is not None:
            return self._read_chunks()
        held, missing = self._held, self._missing
        if len(held) < missing:
            if held:
                self._missing = missing - len(held)
                self._held = b""
                self.on_body(held)
            return None
        if len(held) == missing:
            self._held = b""
        else:
            self._held = held[missing:]
            held = held[:missing]
        if self._body is None:
            return b"" if self.discards else held
        self.on_body(held)
        return self._take_body()

    # What llhttp calls.

    def on_message_begin(self) -> None:
        """Stop where another message follows a chunked body in the same read."""
        if self._whole:
            raise RefusedError(400, "another message follows")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; trailers, which come later, are let go with the body."""
        self._room -= 1
        if self._room < 0:
            raise RefusedError(431, f"more than {self._limits.head_fields} fields")
        fields = self._fields
        name = name.lower()
        if name not in fields:
            fields[name] = value.strip()  # llhttp leaves what space follows it
        elif name in _SINGLE:
            raise RefusedError(400, f"the field {name.decode('ascii')} stands there twice")
        else:
            fields[name] = b"%b, %b" % (fields[name], value.strip())

    def on_body(self, data: bytes) -> None:
        """Gather a piece of the body."""
        self._framing = 0
        self._size += len(data)
        if self._size > self._limits.body_bytes:
            raise RefusedError(413, f"the body has more than {self._limits.body_bytes} bytes")
        if not self.discards:
            if self._body is None:
                self._body = bytearray()
            self._body += data

    def on_message_complete(self) -> None:
        """Note that a chunked body is whole."""
        self._whole = self._chunks is not None

    # The head.

    def _check_beginning(self, held: bytes) -> None:
        """Refuse early what cannot become a head, so that nobody waits for its end."""
        if len(held) > self._limits.head_bytes:
            raise self._too_long(held)
        first = held.find(b"\r\n")
        if first < 0:
            if len(held) > _FIRST_LINE_BYTES:
                raise self._too_long(held)
            if held != b"\r" and _BEGINNING.fullmatch(held) is None:
                raise RefusedError(400, _UNSOUND)
        elif _FIRST_LINE.match(held) is None:
            raise _unsound_line(held)
        if _BARE_LF.search(held):
            raise RefusedError(400, _UNSOUND)

    def _too_long(self, held: bytes) -> RefusedError:
        """What is too long: the first line, or all of the head."""
        first = held.find(b"\r\n")
        if (len(held) if first < 0 else first) > _TARGET_BYTES:
            return RefusedError(414, f"the target has more than {_TARGET_BYTES} bytes")
        return RefusedError(431, f"the head has more than {self._limits.head_bytes} bytes")

    def _read_fields(self, head: bytes) -> dict[bytes, bytes]:
        fields = self._fields = {}
        self._room = self._limits.head_fields
        self._whole = False
        parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(head)
        except httptools.HttpParserUpgrade:
            raise RefusedError(501, "no other protocol is spoken here") from None
        except httptools.HttpParserInvalidMethodError:
            raise RefusedError(501, "the method is not known here") from None
        except httptools.HttpParserError as error:
            _check_coding(fields, is_1_1=True)  # rather than what llhttp makes of an unknown one
            raise _cause(error, _UNSOUND) from None
        self._fields = {}
        if b"transfer-encoding" in fields:
            self._chunks = parser
        return fields

    def _prepare(self, fields: dict[bytes, bytes], *, is_1_1: bool) -> None:
        """Check what llhttp does not, and be ready for the body."""
        _check_host(fields, is_1_1=is_1_1)
        _check_coding(fields, is_1_1=is_1_1)
        self.keep = is_1_1 and _is_kept(fields)
        self.is_chunkable = is_1_1
        length = fields.get(b"content-length")
        self.announced = self._missing = _number(length) if length is not None else 0
        self._size = self._framing = 0
        self._body = None
        self.discards = False
        has_body = self._missing > 0 or self._chunks is not None
        expect = fields.get(b"expect")
        self.awaits_continue = is_1_1 and expect is not None and has_body and not self._held
        if is_1_1 and expect is not None and expect.lower() != b"100-continue":
            raise RefusedError(417, "no expectation but 100-continue is met")

    # The body.

    def _read_chunks(self) -> bytes | None:
        held, self._held = self._held, b""
        if held:
            self._framing += len(held)
            try:
                self._chunks.feed_data(held)
            except httptools.HttpParserError as error:
                if not self._whole:
                    raise _cause(error, "the body is not soundly chunked") from None
                # Where in this read the next request begins is not known: it is not served.
                self.keep = False
        if self._whole:
            self._chunks = None
            return self._take_body()
        if self._framing > self._limits.head_bytes:
            raise RefusedError(413, "the body has more framing than content")
        return None

    def _take_body(self) -> bytes:
        body, self._body = self._body, None
        return b"" if body is None or self.discards else bytes(body)


def _cause(error: httptools.HttpParserError, reason: str) -> RefusedError:
    """What a callback of ours has raised; otherwise llhttp's own refusal."""
    cause = error.__context__
    return cause if isinstance(cause, RefusedError) else RefusedError(400, reason)


def _unsound_line(held: bytes) -> RefusedError:
    if _OTHER_LINE.match(held):
        return RefusedError(505, "HTTP/1.1 is spoken here")
    return RefusedError(400, _UNSOUND)


def _check_line(method: str, target: str, version: bytes) -> None:
    if len(target) > _TARGET_BYTES:
        raise RefusedError(414, f"the target has more than {_TARGET_BYTES} bytes")
    if version not in (b"11", b"10"):
        raise RefusedError(505, "HTTP/1.1 is spoken here")
    if method == "CONNECT":
        raise RefusedError(501, "no tunnels are opened here")
    if target[0] != "/" or "#" in target:
        raise RefusedError(400, "the target must be a path")


def _check_host(fields: dict[bytes, bytes], *, is_1_1: bool) -> None:
    """RFC 9112 section 3.2: exactly one in HTTP/1.1, and one that can be a host."""
    host = fields.get(b"host")
    if (not host and is_1_1) or (host and _NO_HOST.search(host)):
        raise RefusedError(400, "HTTP/1.1 needs one Host field, with a host")


def _check_coding(fields: dict[bytes, bytes], *, is_1_1: bool) -> None:
    """RFC 9112 sections 6.1 and 6.3: chunked or nothing, and nothing in HTTP/1.0."""
    coding = fields.get(b"transfer-encoding")
    if coding is not None and (not is_1_1 or coding.lower() != b"chunked"):
        raise RefusedError(501, "no transfer coding but chunked is read, and that in HTTP/1.1")


def _number(length: bytes) -> int:
    """The announced bytes of the body; llhttp has seen to it that they are one number."""
    if len(length) > _LENGTH_DIGITS:
        raise RefusedError(400, "the length has too many digits")
    return int(length)


def _is_kept(fields: dict[bytes, bytes]) -> bool:
    """RFC 9112 section 9.3: a connection is kept unless `close` is asked for."""
    options = fields.get(b"connection")
    if options is None or b"close" not in (options := options.lower()):
        return True
    return b"close" not in [option.strip() for option in options.split(b",")]
