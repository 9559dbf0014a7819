"""HTTP/1.1 messages in bytes: heads as they were read, heads as they are written (RFC 9112)."""

import time
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from msgspec import Struct

#: Field lines as they are written, each ended by CRLF: `b"content-type: application/json\r\n"`.
Lines = bytes

_STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in HTTPStatus
} | {499: b"HTTP/1.1 499 Client Closed Request\r\n"}


class RequestHead(Struct):
    """The head of a request, once it is whole and sound."""

    method: str
    #: What the request line names, in origin form (RFC 9112 section 3.2.1).
    target: str
    #: The target without its query.
    path: str
    #: By lower-case name; the values of a repeated field are joined by `, ` (RFC 9110 section 5.3).
    fields: dict[bytes, bytes]
    #: Who asks, as the service found when it admitted the request.
    principal: str = ""


class Response(Struct, frozen=True):
    """A whole answer; length, date and connection are written with it."""

    status: int
    body: bytes = b""
    lines: Lines = b""


class Clock:
    """The Date field (RFC 9110 section 6.6.1), written anew once a second."""

    __slots__ = ("_second", "_text")

    def __init__(self) -> None:
        self._second = -1
        self._text = b""

    def date(self) -> bytes:
        """The field line of this second."""
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._text = b"date: %b\r\n" % formatdate(second, usegmt=True).encode()
        return self._text


_clock: Final = Clock()


def response_head(status: int, lines: Lines, *, framing: bytes, keep: bool) -> bytes:
    """The head of a response; `framing` is the field line that tells how its body ends."""
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d Unknown\r\n" % status
    end = b"\r\n" if keep else b"connection: close\r\n\r\n"
    return b"%b%b%b%b%b" % (line, lines, framing, _clock.date(), end)


def response_bytes(response: Response, *, body: bool, keep: bool) -> bytes:
    """A whole response; without `body` only its head, as HEAD asks for it (RFC 9110 9.3.2)."""
    if response.status == 204 or response.status == 304:  # noqa: PLR1714 -- twice as quick so
        # RFC 9110 section 8.6: a 204 has no length; a 304 need not have one.
        return response_head(response.status, response.lines, framing=b"", keep=keep)
    framing = b"content-length: %d\r\n" % len(response.body)
    head = response_head(response.status, response.lines, framing=framing, keep=keep)
    return head + response.body if body else head


def request_bytes(method: str, target: str, lines: Lines, body: bytes = b"") -> bytes:
    """A whole request, its length with it; a GET or HEAD without a body has none."""
    start = f"{method} {target} HTTP/1.1\r\n".encode("latin-1")
    if not body and method in ("GET", "HEAD"):
        return b"%b%b\r\n" % (start, lines)
    return b"%b%bcontent-length: %d\r\n\r\n%b" % (start, lines, len(body), body)
