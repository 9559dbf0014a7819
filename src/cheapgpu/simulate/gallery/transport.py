"""Faults of HTTP/1.1 itself, and legal turns of it that a reader must follow."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cheapgpu.simulate.answer import Answer, Piece, Wire, merged
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.gallery.coding import gzipped
from cheapgpu.simulate.gallery.fault import Fault, in_both
from cheapgpu.simulate.gallery.timing import BROKEN_OFF

_LAST_CHUNK: Final = b"0\r\n\r\n"
_EARLY_HINTS: Final = b"HTTP/1.1 103 Early Hints\r\nlink: </v1/models>; rel=preload\r\n\r\n"
#: More than any reader should have to keep of a head, in bytes.
_HUGE: Final = 64 << 10


def _chunks(change: Callable[[list[Piece]], list[Piece]]) -> Callable[[Wire, Asked], Wire]:
    """A change to the chunks of a body, if it has some."""

    def changed(wire: Wire, _: Asked) -> Wire:
        head, *body = wire.pieces
        if b"\r\ntransfer-encoding: chunked\r\n" not in head.data:
            return wire
        return replace(wire, pieces=(head, *change(body)))

    return changed


def _split(answer: Answer) -> Answer:
    """A body in chunks, of two at least."""
    if len(answer.body) == 1:
        (whole,) = answer.body
        at = len(whole.data) // 2
        body = (replace(whole, data=whole.data[:at]), Piece(data=whole.data[at:]))
        return replace(answer, body=body, framing="chunked")
    return replace(answer, framing="chunked")


def _size_that_is_none(body: list[Piece]) -> list[Piece]:
    place = len(body) // 2
    _, _, data = body[place].data.partition(b"\r\n")
    broken = replace(body[place], data=b"size\r\n" + data)
    return [*body[:place], broken, *body[place + 1 :]]


def _extended(body: list[Piece]) -> list[Piece]:
    return [
        replace(piece, data=piece.data.replace(b"\r\n", b';note="a \\"chunk\\""\r\n', 1))
        for piece in body
    ]


def _with_trailer(body: list[Piece]) -> list[Piece]:
    last = body[-1]
    data = last.data.removesuffix(_LAST_CHUNK) + b"0\r\nx-engine: simulated\r\n\r\n"
    return [*body[:-1], replace(last, data=data)]


def _longer(answer: Answer) -> Answer:
    length = sum(len(piece.data) for piece in answer.body)
    return replace(answer, framing="length", announced=length + 10, ending="cut")


def _shorter(answer: Answer) -> Answer:
    length = sum(len(piece.data) for piece in answer.body)
    return replace(answer, framing="length", announced=length - 1, ending="cut")


def _redirected(answer: Answer) -> Answer:
    return Answer(
        status=307,
        headers=(("location", "/v2/chat/completions"),),
        body=(),
        framing="length",
        ending=answer.ending,
    )


def _huge(answer: Answer) -> Answer:
    return replace(answer, headers=(*answer.headers, ("x-padding", "x" * _HUGE)))


def _old(answer: Answer) -> Answer:
    return replace(answer, framing="close", version="1.0")


def _twice(wire: Wire, _: Asked) -> Wire:
    again = merged(wire.pieces)[0].data
    last = wire.pieces[-1]
    return replace(wire, pieces=(*wire.pieces[:-1], replace(last, data=last.data + again)))


TRANSPORT: Final = (
    Fault(
        name="transport/bad-chunk-framing",
        sentence="Sends, in the middle of the body, a chunk whose size is no number.",
        breaks=BROKEN_OFF,
        answer=in_both(_split),
        wire=_chunks(_size_that_is_none),
    ),
    Fault(
        name="transport/wrong-content-length",
        sentence="Announces ten bytes more than it sends, and closes the connection.",
        breaks=("stream/body-complete", "whole/body-complete"),
        answer=in_both(_longer),
    ),
    Fault(
        name="transport/short-content-length",
        sentence="Announces one byte less than it sends.",
        breaks=("stream/events-complete", "whole/json"),
        answer=in_both(_shorter),
    ),
    Fault(
        name="transport/gzip",
        sentence="Compresses every answer without being asked to.",
        breaks=("stream/content-encoding", "whole/content-encoding"),
        answer=in_both(gzipped),
    ),
    Fault(
        name="transport/redirect",
        sentence="Redirects every request to another path.",
        breaks=(
            "stream/status",
            "whole/status",
            "auth/missing-refused",
            "auth/wrong-refused",
            "error/status",
            "error/content-type",
        ),
        opens=("accepted/*",),
        answer=in_both(_redirected),
        refusal=in_both(_redirected),
    ),
    Fault(
        name="transport/huge-head",
        sentence=f"Sends a head of over {_HUGE >> 10} KiB.",
        breaks=(),
        opens=("*",),
        answer=in_both(_huge),
        refusal=in_both(_huge),
    ),
    Fault(
        name="transport/1xx-first",
        sentence="Sends a head of status 103 before the answer, as HTTP allows.",
        breaks=(),
        wire=lambda wire, _: replace(wire, pieces=(Piece(data=_EARLY_HINTS), *wire.pieces)),
    ),
    Fault(
        name="transport/http-1.0-close",
        sentence="Answers as HTTP/1.0 does: the end of the connection ends the body.",
        breaks=(),
        answer=in_both(_old),
        refusal=in_both(_old),
    ),
    Fault(
        name="transport/chunked-plain",
        sentence="Sends plain answers in chunks, as HTTP allows.",
        breaks=(),
        answer=in_both(_split),
    ),
    Fault(
        name="transport/chunk-extensions",
        sentence="Writes an extension beside the size of every chunk, as HTTP allows.",
        breaks=(),
        wire=_chunks(_extended),
    ),
    Fault(
        name="transport/trailers",
        sentence="Ends a body in chunks with a trailer field, as HTTP allows.",
        breaks=(),
        wire=_chunks(_with_trailer),
    ),
    Fault(
        name="transport/answer-twice",
        sentence="Sends the answer a second time, to a request that nobody made.",
        breaks=(),
        wire=_twice,
    ),
)
