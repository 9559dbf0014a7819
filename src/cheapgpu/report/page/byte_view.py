"""A body as bytes: sixteen in a row, in hex and as text, with what they belong to.

The bytes of every second event are tinted, those at fault underlined, and a bar stands where a read
began. Rows carry markup of their own, which nothing but hex digits and escaped letters goes into.
"""

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from markupsafe import Markup

from cheapgpu.core.exchange import Exchange
from cheapgpu.report.page.allowance import choose
from cheapgpu.report.page.event_table import Gap

PER_ROW: Final = 16
#: Rows of one fault that are shown before others.
_FAULT_ROWS: Final = 6

#: Start and end, in bytes of the body.
Span = tuple[int, int]

_LETTERS: Final = [
    "⏎" if byte == 0x0A else escape(chr(byte), quote=False) if 0x20 <= byte < 0x7F else "·"
    for byte in range(256)
]
_HEX: Final = [f"{byte:02x}" for byte in range(256)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRow:
    """Sixteen bytes of a body, or what is left of it at its end."""

    at: int
    hex: Markup
    text: Markup
    #: The number, from 1, of the first read and of the first event that begin here; 0 for none.
    read: int
    t: float | None
    event: int


def byte_rows(
    exchange: Exchange, events: Sequence[Span], faults: Sequence[Span], room: int
) -> list[ByteRow | Gap]:
    """Return up to `room` rows of a body, those of faults before others, and gaps in bytes."""
    body = exchange.body
    count = -(-len(body) // PER_ROW)
    painter = _Painter(exchange, events, faults)
    rows: list[ByteRow | Gap] = []
    expected = 0
    for row in choose(count, _telling(faults, count), room):
        if row > expected:
            rows.append(Gap(left_out=(row - expected) * PER_ROW))
        rows.append(painter.row(row * PER_ROW))
        expected = row + 1
    if expected < count:
        rows.append(Gap(left_out=len(body) - expected * PER_ROW))
    return rows


def row_of(offset: int) -> int:
    """The offset of the row that a byte stands in."""
    return offset // PER_ROW * PER_ROW


def _telling(faults: Iterable[Span], count: int) -> Iterator[int]:
    for start, end in faults:
        first = min(start // PER_ROW, count - 1)
        last = min(max(end - 1, start) // PER_ROW, first + _FAULT_ROWS - 1, count - 1)
        yield from range(first, last + 1)


class _Painter:
    """Knows, for any byte of a body, what it belongs to; and so how a row of them looks."""

    def __init__(self, exchange: Exchange, events: Sequence[Span], faults: Sequence[Span]) -> None:
        self._body = exchange.body
        self._exchange = exchange
        self._reads = [read.at for read in exchange.reads if read.data]
        self._times = [read.t for read in exchange.reads if read.data]
        self._events = events
        self._starts = [start for start, _ in events]
        self._faults = sorted(faults)

    def row(self, at: int) -> ByteRow:
        data = self._body[at : at + PER_ROW]
        end = at + len(data)
        first_read = bisect_right(self._reads, at - 1)
        begins = self._reads[first_read : bisect_right(self._reads, end - 1)]
        faults = [(start, stop) for start, stop in self._faults if start < end and stop > at]
        hex_cell: list[str] = []
        text_cell: list[str] = []
        for start, stop in _pieces(at, end, [*begins, *self._edges(at, end), *_flat(faults)]):
            bar = "<b></b>" if start in begins and start else ""
            opening, closing = self._tags(start, faults)
            piece = data[start - at : stop - at]
            gap = " " if start > at else ""
            digits = " ".join(_HEX[byte] for byte in piece)
            letters = "".join(_LETTERS[byte] for byte in piece)
            hex_cell.append(f"{gap}{bar}{opening}{digits}{closing}")
            text_cell.append(f"{bar}{opening}{letters}{closing}")
        event = bisect_right(self._starts, at - 1)
        timed = self._exchange.timed and bool(begins)
        return ByteRow(
            at=at,
            hex=Markup("".join(hex_cell)),  # noqa: S704 -- made of tables of this module
            text=Markup("".join(text_cell)),  # noqa: S704 -- as above
            read=first_read + 1 if begins else 0,
            t=self._times[first_read] if timed else None,
            event=event + 1 if event < len(self._starts) and self._starts[event] < end else 0,
        )

    def _edges(self, at: int, end: int) -> Iterator[int]:
        """Where events begin or end within a row."""
        index = max(bisect_right(self._starts, at) - 1, 0)
        while index < len(self._events) and self._events[index][0] < end:
            yield from self._events[index]
            index += 1

    def _tags(self, offset: int, faults: Iterable[Span]) -> tuple[str, str]:
        """The elements around the byte at `offset`: tinted in every second event, underlined."""
        index = bisect_right(self._starts, offset) - 1
        tinted = index >= 0 and index % 2 == 0 and offset < self._events[index][1]
        broken = any(start <= offset < stop for start, stop in faults)
        opening = ("<i>" if tinted else "") + ("<u>" if broken else "")
        return opening, ("</u>" if broken else "") + ("</i>" if tinted else "")


def _pieces(at: int, end: int, edges: Iterable[int]) -> Iterator[Span]:
    """Cut a row where anything changes."""
    cuts = sorted({at, end, *(edge for edge in edges if at < edge < end)})
    yield from itertools.pairwise(cuts)


def _flat(spans: Iterable[Span]) -> Iterator[int]:
    for span in spans:
        yield from span
