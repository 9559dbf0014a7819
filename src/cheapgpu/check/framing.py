"""HTTP/1.1 framing of one exchange: the request to bytes, and the answer's bytes to its parts."""

from dataclasses import dataclass
from typing import Final

import h11

from cheapgpu.core.exchange import Headers, How
from cheapgpu.core.limits import HEAD_BYTES, HEAD_FIELDS

#: What h11 says of a broken answer, and what we say. Its own words may quote the answer: ours do
#: not, since no text of an answer belongs into a message.
_FAULTS: Final = (
    ("illegal chunk header", "a chunk whose size is no number"),
    ("malformed chunk footer", "a chunk longer than its size"),
    ("illegal status line", "no HTTP/1.1 status line"),
    ("illegal request line", "no HTTP/1.1 status line"),
    ("no response line", "no HTTP/1.1 status line"),
    ("illegal header", "a malformed header line"),
    ("continuation line", "a malformed header line"),
    ("bad content-length", "a content-length that is no number"),
    ("conflicting content-length", "two different content-lengths"),
    ("multiple transfer-encoding", "two transfer-encodings"),
    ("only transfer-encoding", "a transfer-encoding other than chunked"),
    ("received server _switch", "a change of protocol that was not asked for"),
)
#: The first bytes of a TLS record: an alert, or a handshake.
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What the bytes of one read brought of an answer."""

    #: Status and header fields, if the head ended in this read.
    head: tuple[int, Headers] | None = None
    #: Body bytes, without framing.
    body: bytes = b""
    #: How the answer ended, if it did, and what there is to say of it.
    end: How | None = None
    detail: str = ""


class Framing:
    """Writes one request and reads its answer; heads of status 1xx are passed over."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        self._framed: How = "eof"
        self._headed = False
        self._start = b""

    def request(self, path: str, headers: Headers, body: bytes) -> bytes:
        """The bytes of a POST of `body`; its length must be among the headers.

        Names and values are sent as they stand, capitals and spaces at the end included, which h11
        would not write; it only sees that nothing among them breaks the framing.
        """
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        trimmed = [(name, value.strip(b" \t")) for name, value in fields]
        head = h11.Request(method=b"POST", target=path.encode(), headers=trimmed)
        for part in (head, h11.Data(data=body), h11.EndOfMessage()):
            self._http.send(part)
        lines = (b"%b: %b\r\n" % field for field in fields)
        return b"POST %b HTTP/1.1\r\n%b\r\n%b" % (path.encode(), b"".join(lines), body)

    @property
    def head_begun(self) -> bool:
        """Whether some, but not all, of the answer's head has come."""
        return not self._headed and bool(self._http.trailing_data[0])

    def receive(self, data: bytes) -> Part:
        """Take what one read brought; empty bytes are the end of the connection.

        Nothing is raised: an answer that is not HTTP/1.1 ends by `reset`, with the reason, and one
        whose head is over our limits by `cancelled`.
        """
        self._start = self._start or data[:2]
        self._http.receive_data(data)
        body = bytearray()
        head: tuple[int, Headers] | None = None
        end: How | None = None
        detail = ""
        try:
            while end is None:
                event = self._http.next_event()
                match event:
                    case h11.Response():
                        self._headed = True
                        self._framed = _framing(event)
                        fields = tuple(
                            (n.decode("latin-1"), v.decode("latin-1")) for n, v in event.headers
                        )
                        if _over_limits(fields):
                            end, detail = "cancelled", _OVER_LIMITS
                        else:
                            head = (event.status_code, fields)
                    case h11.Data():
                        body += event.data
                    case h11.EndOfMessage():
                        end = self._framed
                    case h11.InformationalResponse():
                        pass
                    case _:
                        break
        except h11.RemoteProtocolError as error:
            end, detail = self._broken(error, data)
        return Part(head=head, body=bytes(body), end=end, detail=detail)

    def _broken(self, error: h11.RemoteProtocolError, data: bytes) -> tuple[How, str]:
        text = str(error).lower()
        if error.error_status_hint == 431 and text.startswith("receive buffer"):
            return "cancelled", _OVER_LIMITS
        if not data:
            what = "before the answer did" if self._headed else "without an answer"
            return "eof", f"the connection ended {what}"
        if not self._headed and self._start in _TLS_RECORDS:
            return "reset", "the answer is TLS, not HTTP"
        known = (ours for theirs, ours in _FAULTS if text.startswith(theirs))
        return "reset", f"broken HTTP: {next(known, 'an answer out of order')}"


_OVER_LIMITS: Final = f"a head over {HEAD_BYTES >> 10} KiB or {HEAD_FIELDS} fields"


def _over_limits(fields: Headers) -> bool:
    size = sum(len(name) + len(value) + 4 for name, value in fields)
    return len(fields) > HEAD_FIELDS or size > HEAD_BYTES


def _framing(head: h11.Response) -> How:
    """How the body is framed (RFC 9112 section 6.3), told as its proper end."""
    if head.status_code in (204, 304):
        return "length"
    names = {name for name, _ in head.headers}
    if b"transfer-encoding" in names:
        return "chunked-end"
    return "length" if b"content-length" in names else "eof"
