"""Content codings that nobody asked for."""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cheapgpu.simulate.answer import Answer, Piece, merged

#: What makes zlib write the gzip format (RFC 1952).
_GZIP: Final = 16 + zlib.MAX_WBITS


def gzipped(answer: Answer) -> Answer:
    """The same answer in gzip, each piece flushed, so that nothing is held back."""
    return _declared(answer, tuple(_flushed(answer.body)))


def gzipped_at_the_end(answer: Answer) -> Answer:
    """The same answer in gzip, none of which leaves the compressor before the end."""
    return _declared(answer, tuple(_flushed(merged(answer.body))))


def _declared(answer: Answer, body: tuple[Piece, ...]) -> Answer:
    return replace(answer, headers=(*answer.headers, ("content-encoding", "gzip")), body=body)


def _flushed(pieces: tuple[Piece, ...]) -> Iterator[Piece]:
    compressor = zlib.compressobj(wbits=_GZIP)
    for piece in pieces:
        data = compressor.compress(piece.data) + compressor.flush(zlib.Z_SYNC_FLUSH)
        yield replace(piece, data=data)
    yield Piece(data=compressor.flush())
