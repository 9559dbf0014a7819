"""A stream drawn to scale: when bytes came, and what they were.

Time runs from left to right, from the request to the end of the answer. Text that was held back is
seen before anything is read: many events below one bar are a flush, a dense comb is a stream.
Drawings are paths over a thousand units, so that a long stream draws no larger than a short one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cheapgpu.core.exchange import Exchange
from cheapgpu.report.page.stream_items import Item
from cheapgpu.report.style import number

#: Units from left to right, and the least distance of two marks where there is room for all.
WIDTH: Final = 1000
_STEP: Final = 2
#: Lanes that a drawing may have.
_LANES: Final = 5
#: Heights in pixels: of the bars of reads, of a mark, of a small mark, and between lanes.
_BARS: Final = 44
_MARK: Final = 12
_TICK: Final = 6
_GAP: Final = 8
#: How many times the axis names, at most.
_TIMES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One kind of thing along the time; `path` is SVG path data, lines of `height` at most."""

    name: str
    css: str
    top: int
    height: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The drawing; positions are thousandths of the width, heights are pixels."""

    lanes: tuple[Lane, ...]
    height: int
    #: Where each time that the axis names stands, and how it is written.
    ticks: tuple[tuple[int, str], ...]
    #: When the head of the answer came; None if none did.
    waited: int | None
    #: What is drawn, in words.
    words: str
    #: The bytes of the highest bar.
    tallest: int


def marks_wanted(exchange: Exchange, items: Sequence[Item]) -> int:
    """Return how many marks a stream would have if all were drawn."""
    return min(len(exchange.reads) + 2 * len(items), _LANES * WIDTH // _STEP)


def timeline(exchange: Exchange, items: Sequence[Item], room: int) -> Timeline | None:
    """Return the drawing of a stream with about `room` marks; None where no times were kept."""
    last_read = max((read.t for read in exchange.reads), default=0.0)
    total = max(exchange.closed.t, last_read)
    if not exchange.timed or total <= 0:
        return None

    step = _STEP
    if room < marks_wanted(exchange, items):
        step = max(_STEP, -(-WIDTH * _LANES // max(room, _LANES)))

    def x(t: float | None) -> int:
        return min(max(int((t or 0.0) / total * WIDTH), 0), WIDTH) // step * step

    bars: dict[int, int] = {}
    for read in exchange.reads:
        # What came within one step of the scale is one bar.
        bars[x(read.t)] = bars.get(x(read.t), 0) + len(read.data)
    tallest = max(bars.values(), default=0)
    lanes = [Lane(name="reads", css="reads", top=0, height=_BARS, path=_bars(bars, tallest))]
    events = [item for item in items if item.kind == "event"]
    faults = [item for item in items if item.broken or item.kind == "discarded"]
    for name, css, height, marked in (
        ("text", "texts", _MARK, [item for item in events if item.text]),
        ("other events", "signs", _MARK, [item for item in events if not item.text]),
        ("comments", "comments", _TICK, [item for item in items if item.kind == "comment"]),
        ("faults", "faults", _MARK, faults),
    ):
        if marked:
            top = lanes[-1].top + lanes[-1].height + _GAP
            path = _marks((x(item.t) for item in marked), top, height)
            lanes.append(Lane(name=name, css=css, top=top, height=height, path=path))
    return Timeline(
        lanes=tuple(lanes),
        height=lanes[-1].top + lanes[-1].height,
        ticks=_ticks(total),
        waited=x(exchange.head.t) if exchange.head else None,
        words=_words(exchange, events, len(faults)),
        tallest=tallest,
    )


def _bars(bars: dict[int, int], tallest: int) -> str:
    """Lines upwards from the floor of the lane, each as high as its bytes, and at least visible."""
    return "".join(
        f"M{at} {_BARS}v-{max(round(size / tallest * _BARS), 2)}"
        for at, size in sorted(bars.items())
        if size
    )


def _marks(places: Iterable[int], top: int, height: int) -> str:
    return "".join(f"M{at} {top}v{height}" for at in sorted(set(places)))


def _ticks(total: float) -> tuple[tuple[int, str], ...]:
    """Times at a round distance (1, 2 or 5 times a power of ten), the first at 0."""
    step = 1e-6
    factors = (2.0, 2.5, 2.0)
    turn = 0
    while total / step > _TIMES:
        step *= factors[turn % 3]
        turn += 1
    ticks = []
    count = 0
    while count * step <= total:
        t = count * step
        shown = f"{t:g} s" if step >= 0.1 else f"{t * 1000:g} ms"
        ticks.append((round(t / total * WIDTH), shown))
        count += 1
    return tuple(ticks)


def _words(exchange: Exchange, events: Sequence[Item], faults: int) -> str:
    reads = exchange.reads
    said = f"{number(len(events), 'event')} in {number(len(reads), 'read')}"
    if reads:
        said += f" from {reads[0].t:.3f} s to {reads[-1].t:.3f} s"
    marked = f"; {number(faults, 'fault')} marked" if faults else ""
    return f"{said}; the answer ended at {exchange.closed.t:.3f} s{marked}"
