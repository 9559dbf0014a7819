"""Answers as they stand on the wire, head and all: `curl -i` saves them, rules have them."""

import re
from typing import Final

from cheapgpu.core.errors import CheapGPUError
from cheapgpu.core.examples import Example
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
from cheapgpu.core.limits import HEAD_BYTES

_STATUS_LINE: Final = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})(?: [^\r\n]*)?\r?\n")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")


class MessageError(CheapGPUError):
    """A saved answer whose head cannot be read, or whose body is not as it was sent."""


def begins_message(data: bytes) -> bool:
    """Whether bytes begin with a status line."""
    return _STATUS_LINE.match(data) is not None


def message_exchange(
    case: str,
    message: Example,
    *,
    timed: bool,
    request: Request | None = None,
    credential: Credential = "valid",
    model: ModelKnown = "known",
) -> Exchange:
    """Return the exchange of an answer that came in these reads; the first holds the whole head.

    Interim answers (1xx) before it are passed over. If it is not timed, how it ended is not known,
    and a body with a content coding is refused: curl may have undone it. Raises MessageError.
    """
    (t, first), *others = message
    status, headers, at = _head(first)
    head = Head(t=t, status=status, headers=headers)
    coding = head.header("content-encoding")
    if coding and not timed:
        problem = f"the body has the content coding {coding}; save it without --compressed"
        raise MessageError(problem)
    pieces = [(t, first[at:]), *others]
    reads: list[Read] = []
    received = 0
    for arrived, data in pieces:
        if data:
            reads.append(Read(t=arrived, at=received, data=data))
            received += len(data)
    announced = head.header("content-length")
    how: How = "unstated"
    if timed:
        how = "length" if announced is None or received >= int(announced) else "eof"
    return Exchange(
        case=case,
        credential=credential,
        model=model,
        request=request,
        sent=0.0 if timed else None,
        head=head,
        reads=tuple(reads),
        closed=Closed(t=pieces[-1][0], how=how),
        timed=timed,
    )


def _head(data: bytes) -> tuple[int, tuple[tuple[str, str], ...], int]:
    """The status, the header fields, and where the body begins."""
    at = 0
    while True:
        status_line = _STATUS_LINE.match(data, at)
        end = _HEAD_END.search(data, at, at + HEAD_BYTES)
        if status_line is None or end is None:
            problem = f"its head does not end within {HEAD_BYTES} bytes"
            raise MessageError(f"{problem}; save it whole, as curl -iN does")
        status = int(status_line[1])
        if not 100 <= status < 200:
            break
        at = end.end()
    lines = data[status_line.end() : end.start()].splitlines()
    fields = (line.partition(b":") for line in lines if line[:1] not in (b" ", b"\t"))
    headers = tuple(
        (name.decode("latin-1").strip().lower(), value.decode("latin-1").strip())
        for name, colon, value in fields
        if colon
    )
    return status, headers, end.end()
