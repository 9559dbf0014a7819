"""What is answered, as data, and its bytes on the wire.

An answer is made whole before it is sent: pieces, each with the time to wait before it. So a fault
is a small function from one answer to another, and the server only plays what it is given.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final, Literal

import msgspec

from cheapgpu.core.exchange import Headers

encode: Final = msgspec.json.Encoder().encode

DONE: Final = b"data: [DONE]\n\n"

#: `end` as the framing says · `cut` the connection closed without that · `reset` broken by force ·
#: `hang` neither, for ever.
Ending = Literal["end", "cut", "reset", "hang"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a stream: a chunk, or a block of bytes as it stands in the body."""

    block: dict[str, Any] | bytes
    #: Seconds to wait before it.
    wait: float = 0.0

    @property
    def data(self) -> bytes:
        """The bytes of the event, its blank line included."""
        if isinstance(self.block, bytes):
            return self.block
        return b"data: " + encode(self.block) + b"\n\n"

    @property
    def is_text(self) -> bool:
        """Whether it is a chunk that adds text."""
        choice = self._choice
        return choice is not None and bool(choice["delta"].get("content"))

    @property
    def is_terminal(self) -> bool:
        """Whether it is the chunk with the finish reason."""
        choice = self._choice
        return choice is not None and choice["finish_reason"] is not None

    @property
    def is_usage(self) -> bool:
        """Whether it is the chunk that states usage."""
        return isinstance(self.block, dict) and self.block.get("usage") is not None

    @property
    def is_done(self) -> bool:
        """Whether it is `[DONE]`."""
        return self.block == DONE

    def but(self, **members: Any) -> "Event":  # noqa: ANN401 -- JSON is any value
        """The same chunk with members replaced, or left out where `...`."""
        if isinstance(self.block, bytes):
            return self
        block = {**self.block, **members}
        return replace(self, block={name: v for name, v in block.items() if v is not ...})

    @property
    def _choice(self) -> dict[str, Any] | None:
        choices = self.block.get("choices") if isinstance(self.block, dict) else None
        return choices[0] if choices else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes that are sent together, after a wait (seconds)."""

    data: bytes
    wait: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status, header fields and a body, before framing."""

    status: int
    headers: Headers
    body: tuple[Piece, ...]
    #: `close`: the end of the connection ends the body (RFC 9112 section 6.3).
    framing: Literal["chunked", "length", "close"]
    #: The length that is announced where it is not the real one, in bytes.
    announced: int | None = None
    ending: Ending = "end"
    version: Literal["1.0", "1.1"] = "1.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """An answer as it goes over the connection, head and framing included."""

    pieces: tuple[Piece, ...]
    #: What happens to the connection afterwards; `end` keeps it for the next request.
    ending: Ending


def error_answer(status: int, message: str, kind: str, param: str | None = None) -> Answer:
    """A refusal with the error schema."""
    error = {"message": message, "type": kind, "param": param, "code": None}
    answer = json_answer({"error": error}, status=status)
    extra: Headers = ()
    if status == 401:
        extra = (("www-authenticate", "Bearer"),)
    elif status == 503:
        extra = (("retry-after", "1"),)
    return replace(answer, headers=answer.headers + extra)


def json_answer(value: object, *, status: int = 200, wait: float = 0.0) -> Answer:
    """A JSON document, after a wait (seconds)."""
    return Answer(
        status=status,
        headers=(("content-type", "application/json"),),
        body=(Piece(data=encode(value), wait=wait),),
        framing="length",
    )


def stream_answer(events: Iterable[Event]) -> Answer:
    """A stream of these events."""
    return Answer(
        status=200,
        headers=(("content-type", "text/event-stream"), ("cache-control", "no-store")),
        body=tuple(Piece(data=event.data, wait=event.wait) for event in events),
        framing="chunked",
    )


def merged(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The same bytes in one piece, once all that they waited for has passed."""
    wait = sum(piece.wait for piece in pieces)
    return (Piece(data=b"".join(piece.data for piece in pieces), wait=wait),)


def with_body(answer: Answer, change: Callable[[bytes], bytes]) -> Answer:
    """The same answer with its whole body changed."""
    (body,) = merged(answer.body)
    return replace(answer, body=(replace(body, data=change(body.data)),))


def rendered(answer: Answer) -> Wire:
    """The bytes of an answer: status line, fields, and the body in its framing (RFC 9112)."""
    pieces = [piece for piece in answer.body if piece.data]
    fields = list(answer.headers)
    if answer.framing == "chunked":
        fields.append(("transfer-encoding", "chunked"))
        pieces = [replace(piece, data=chunked(piece.data)) for piece in pieces]
        if answer.ending == "end":
            # In the same write as what it follows: no reader waits for it.
            last = pieces.pop() if pieces else Piece(data=b"")
            pieces.append(replace(last, data=last.data + b"0\r\n\r\n"))
    elif answer.framing == "length":
        length = sum(len(piece.data) for piece in pieces)
        announced = length if answer.announced is None else answer.announced
        fields.append(("content-length", str(announced)))
    ending: Ending = answer.ending
    if ending == "end" and (answer.framing == "close" or answer.version == "1.0"):
        ending = "cut"
    if ending != "end":
        fields.append(("connection", "close"))
    phrase = HTTPStatus(answer.status).phrase
    lines = (f"HTTP/{answer.version} {answer.status} {phrase}", *(f"{n}: {v}" for n, v in fields))
    head = "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")
    return Wire(pieces=(Piece(data=head), *pieces), ending=ending)


def chunked(data: bytes, extension: bytes = b"") -> bytes:
    """Bytes as one chunk of HTTP/1.1 (RFC 9112 section 7.1)."""
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)
