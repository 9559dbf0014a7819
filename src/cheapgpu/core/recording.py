"""Exchanges to JSON lines and back; a recording cut short, or changed, is refused.

The format is described in docs/recording.md. A recording is append-only: each line is complete when
it is written, and only the `end` line, with the digest of every byte before it, makes the file one
that may be judged. `Recorder` gives the lines; writing them is the caller's business.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from cheapgpu.core.errors import RecordingError
from cheapgpu.core.exchange import (
    Closed,
    Credential,
    Exchange,
    Head,
    How,
    ModelKnown,
    Read,
    Request,
)

FORMAT: Final = "cheapgpu-recording/1"
PROFILE: Final = "openai-chat-text-v1-draft.1"
#: How the names of header fields end whose values are secrets.
_SECRET_FIELDS: Final = ("api-key", "apikey", "token", "secret", "cookie")
#: Schemes of authorization, which are no secret by themselves.
_BARE_SCHEMES: Final = ("", "basic", "bearer", "digest")
#: What stands in a recording instead of a credential.
MASKED: Final = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A whole recording: who asked which endpoint when, and every exchange."""

    tool: str
    started: str
    target: str
    exchanges: tuple[Exchange, ...]


class Recorder:
    """Turns what happens into the lines of a recording, in the order in which it happens.

    Each method returns one line to append, its line end included. Header fields that authenticate
    are masked, and so is every occurrence of a secret given here, in as many bytes as it had: an
    endpoint that repeats a key within one read does not bring it into the recording.
    """

    __slots__ = ("_cases", "_digest", "_secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = [(secret, spellings(secret)) for secret in secrets if secret]
        self._cases = 0
        self._digest = hashlib.sha256()

    def begin(self, *, tool: str, started: str, target: str) -> bytes:
        """Return the first line; `started` is a time of day in UTC, as RFC 3339 writes it."""
        return self._line(
            kind="begin", format=FORMAT, profile=PROFILE, tool=tool, started=started, target=target
        )

    def case(
        self,
        case: str,
        *,
        credential: Credential,
        model: ModelKnown,
        request: Request,
        ceiling: int | None = None,
    ) -> bytes:
        """Return the line that opens an exchange."""
        self._cases += 1
        return self._line(
            kind="case",
            case=case,
            credential=credential,
            model=model,
            **({} if ceiling is None else {"ceiling": ceiling}),
            request={
                "method": request.method,
                "url": request.url,
                "headers": [[name, masked(name, value)] for name, value in request.headers],
                "body_base64": base64.b64encode(request.body).decode(),
            },
        )

    def sent(self, t: float) -> bytes:
        """Return the line that says when the last byte of the request had been sent."""
        return self._line(kind="sent", t=_seconds(t))

    def head(self, head: Head) -> bytes:
        """Return the line of the answer's head."""
        headers = [[name, self._hide(masked(name, value))] for name, value in head.headers]
        return self._line(kind="head", t=_seconds(head.t), status=head.status, headers=headers)

    def read(self, read: Read) -> bytes:
        """Return the line of one socket read."""
        data = read.data
        for _, pattern in self._secrets:
            data = starred(pattern, data)
        data_base64 = base64.b64encode(data).decode()
        return self._line(kind="read", t=_seconds(read.t), at=read.at, base64=data_base64)

    def closed(self, closed: Closed) -> bytes:
        """Return the line that closes an exchange."""
        line = {"kind": "closed", "t": _seconds(closed.t), "how": closed.how}
        detail = {"detail": closed.detail} if closed.detail else {}
        lag = {} if closed.lag is None else {"lag": _seconds(closed.lag)}
        return self._line(**line, **detail, **lag)

    def exchange(self, exchange: Exchange) -> bytes:
        """Return all lines of a finished exchange; it must have a request."""
        if exchange.request is None:
            raise ValueError("an exchange without its request cannot be recorded")
        lines = [
            self.case(
                exchange.case,
                credential=exchange.credential,
                model=exchange.model,
                request=exchange.request,
                ceiling=exchange.ceiling,
            )
        ]
        if exchange.sent is not None:
            lines.append(self.sent(exchange.sent))
        if exchange.head is not None:
            lines.append(self.head(exchange.head))
        lines += [self.read(read) for read in exchange.reads]
        lines.append(self.closed(exchange.closed))
        return b"".join(lines)

    def end(self) -> bytes:
        """Return the last line. Without it the recording is refused."""
        digest = self._digest.hexdigest()
        return self._line(kind="end", cases=self._cases, sha256=digest)

    def _hide(self, text: str) -> str:
        for secret, _ in self._secrets:
            text = text.replace(secret, MASKED)
        return text

    def _line(self, **members: Any) -> bytes:  # noqa: ANN401 -- JSON is any value
        line = json.dumps(members, ensure_ascii=False).encode() + b"\n"
        self._digest.update(line)
        return line


def read_recording(data: bytes) -> Recording:
    """Return the recording that a file's bytes hold.

    Raises RecordingError, with the number of the line, if anything in it is not as the format says:
    a missing end, a wrong digest, a gap in a body. Nothing of a refused recording is judged.
    """
    digest = hashlib.sha256()
    contents = _Contents()
    at = number = 0
    while at < len(data):
        number += 1
        end = data.find(b"\n", at) + 1
        line = _decode_line(data[at:end], number)
        if isinstance(line, _End):
            recording = contents.end(line, digest.hexdigest(), number)
            if end != len(data):
                raise RecordingError("something follows the end line", number + 1)
            return recording
        contents.take(line, number)
        digest.update(data[at:end])
        at = end
    raise RecordingError(
        "the recording has no end line: it was cut short, and nothing in it is judged", number
    )


class _Begin(Struct, tag="begin", tag_field="kind"):
    format: str
    profile: str
    tool: str
    started: str
    target: str


class _RequestLine(Struct):
    method: str
    url: str
    headers: list[tuple[str, str]]
    body_base64: bytes


class _Case(Struct, tag="case", tag_field="kind"):
    case: str
    credential: Credential
    model: ModelKnown
    request: _RequestLine
    ceiling: int | None = None


class _Sent(Struct, tag="sent", tag_field="kind"):
    t: float


class _Head(Struct, tag="head", tag_field="kind"):
    t: float
    status: int
    headers: list[tuple[str, str]]


class _Read(Struct, tag="read", tag_field="kind"):
    t: float
    at: int
    base64: bytes


class _Closed(Struct, tag="closed", tag_field="kind"):
    t: float
    how: How
    detail: str = ""
    lag: float | None = None


class _End(Struct, tag="end", tag_field="kind"):
    cases: int
    sha256: str


_Line = _Begin | _Case | _Sent | _Head | _Read | _Closed | _End
_LINE: Final = msgspec.json.Decoder(_Line)


class _Contents:
    """What a file held so far, and so which line may come next."""

    def __init__(self) -> None:
        self._begin: _Begin | None = None
        self._exchanges: list[Exchange] = []
        self._unfinished: _Unfinished | None = None

    def take(self, line: _Line, number: int) -> None:
        if isinstance(line, _Begin) != (self._begin is None):
            raise RecordingError("a recording begins with one begin line", number)
        match line:
            case _Begin():
                self._begin = _checked(line, number)
            case _Case():
                if self._unfinished is not None:
                    raise RecordingError("the exchange before this one was not closed", number)
                self._unfinished = _Unfinished(line)
            case _:
                if self._unfinished is None:
                    raise RecordingError("this line belongs to no exchange", number)
                closed = self._unfinished.take(line, number)
                if closed is not None:
                    self._exchanges.append(closed)
                    self._unfinished = None

    def end(self, line: _End, digest: str, number: int) -> Recording:
        if self._begin is None:
            raise RecordingError("a recording begins with one begin line", number)
        if self._unfinished is not None:
            raise RecordingError("the last exchange was not closed", number)
        if line.sha256 != digest:
            problem = "the digest does not match: the file was changed after it was written"
            raise RecordingError(problem, number)
        if line.cases != len(self._exchanges):
            problem = f"{line.cases} exchanges were recorded, {len(self._exchanges)} are here"
            raise RecordingError(problem, number)
        return Recording(
            tool=self._begin.tool,
            started=self._begin.started,
            target=self._begin.target,
            exchanges=tuple(self._exchanges),
        )


class _Unfinished:
    """An exchange whose `closed` line has not come; it takes the lines between in their order."""

    def __init__(self, case: _Case) -> None:
        self._case = case
        self._sent: float | None = None
        self._head: Head | None = None
        self._reads: list[Read] = []
        self._received = 0

    def take(self, line: _Line, number: int) -> Exchange | None:
        match line:
            case _Sent() if self._sent is None and self._head is None:
                self._sent = line.t
            case _Head() if self._head is None:
                self._head = Head(t=line.t, status=line.status, headers=tuple(line.headers))
            case _Read() if self._head is not None:
                if line.at != self._received:
                    problem = f"body bytes at {line.at}, but {self._received} came before"
                    raise RecordingError(problem, number)
                self._reads.append(Read(t=line.t, at=line.at, data=line.base64))
                self._received += len(line.base64)
            case _Closed():
                return self._close(line)
            case _:
                kind = line.__struct_config__.tag
                raise RecordingError(f"a {kind} line is out of its order here", number)
        return None

    def _close(self, line: _Closed) -> Exchange:
        request = self._case.request
        return Exchange(
            case=self._case.case,
            credential=self._case.credential,
            model=self._case.model,
            request=Request(
                method=request.method,
                url=request.url,
                headers=tuple(request.headers),
                body=request.body_base64,
            ),
            sent=self._sent,
            head=self._head,
            reads=tuple(self._reads),
            closed=Closed(t=line.t, how=line.how, detail=line.detail, lag=line.lag),
            ceiling=self._case.ceiling,
        )


def _decode_line(line: bytes, number: int) -> _Line:
    if not line.endswith(b"\n"):
        raise RecordingError(
            "the last line is cut short, and nothing in the file is judged", number
        )
    try:
        return _LINE.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordingError(f"not a line of a recording: {_problem(error)}", number) from None


def _checked(begin: _Begin, number: int) -> _Begin:
    for what, found, known in (
        ("format", begin.format, FORMAT),
        ("profile", begin.profile, PROFILE),
    ):
        if found != known:
            problem = f"{what} {found[:64]!r} is not known here; this version judges {known}"
            raise RecordingError(problem, number)
    return begin


def _problem(error: Exception) -> str:
    """What a decoder says, cut where it would repeat much of the line."""
    text = str(error) if isinstance(error, msgspec.DecodeError) else type(error).__name__
    return text if len(text) <= 120 else f"{text[:119]}…"


def spellings(secret: str) -> re.Pattern[bytes]:
    """What matches a secret as it is, and as a JSON text may spell it with its escapes."""
    units = (
        b"(?:%b|%b)" % (re.escape(one), b"|".join(map(re.escape, escapes(one))))
        for one in (character.encode() for character in secret)
    )
    return re.compile(b"".join(units))


def escapes(character: bytes) -> list[bytes]:
    """The ways in which a JSON string can spell an ASCII character other than by itself."""
    code = b"%04x" % character[0]
    return [b"\\u" + code, b"\\u" + code.upper(), b"\\" + character]


def starred(pattern: re.Pattern[bytes], data: bytes) -> bytes:
    """The same bytes with as many stars as there were bytes wherever the pattern matches."""
    return pattern.sub(lambda found: b"*" * len(found[0]), data)


def masked(name: str, value: str) -> str:
    """The value of a header field without what authenticates; rules speak of the scheme."""
    lower = name.lower()
    if lower in ("authorization", "proxy-authorization"):
        scheme, space, key = value.partition(" ")
        if key:
            return f"{scheme}{space}{MASKED}"
        return value if value.strip().lower() in _BARE_SCHEMES else MASKED
    return MASKED if lower.endswith(_SECRET_FIELDS) else value


def _seconds(t: float) -> float:
    return round(t, 6)
