"""One exchange as a section of the page: what was asked, what came, and what it proves."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from markupsafe import Markup

from cheapgpu.core.exchange import Exchange, Headers
from cheapgpu.core.findings import Finding, Judgement, Outcome
from cheapgpu.core.sse import is_event_stream
from cheapgpu.report.block import ENDINGS
from cheapgpu.report.excerpt import visible
from cheapgpu.report.page import allowance, safe_text
from cheapgpu.report.page.byte_view import PER_ROW, ByteRow, Span, byte_rows, row_of
from cheapgpu.report.page.event_table import EventRow, Gap, event_rows
from cheapgpu.report.page.stream_items import Item, stream_items
from cheapgpu.report.page.timeline import Timeline, marks_wanted, timeline
from cheapgpu.report.run import Run
from cheapgpu.report.style import Style, number

_STYLE: Final = Style()
#: What a section of an exchange says in any case, of its notes.
_SHOWN_ANYWAY: Final = ("events", "bytes", "reads", "duration_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyText:
    """A body as text, its faults marked, and how many bytes of it are left out."""

    shown: Markup
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An exchange, and what of it the page shows; anchors begin with `anchor`."""

    anchor: str
    run: Run
    exchange: Exchange
    judgement: Judgement
    streamed: bool
    #: Facts of the answer, a phrase each, and what was measured.
    facts: tuple[str, ...]
    notes: tuple[str, ...]
    #: What was found that is not as it should be, the first of each rule.
    findings: tuple[Finding, ...]
    timeline: Timeline | None
    rows: tuple[EventRow | Gap, ...]
    bytes: tuple[ByteRow | Gap, ...]
    #: The body as text; None for a stream.
    text: BodyText | None
    request: BodyText | None

    @property
    def fields(self) -> tuple[Headers, Headers]:
        """Header fields of the request and of the answer, as many as are shown."""
        exchange = self.exchange
        sent = exchange.request.headers if exchange.request else ()
        came = exchange.head.headers if exchange.head else ()
        return _fields(sent), _fields(came)

    @property
    def bytes_shown(self) -> frozenset[int]:
        """The offsets of the rows of the byte view."""
        return frozenset(row.at for row in self.bytes if isinstance(row, ByteRow))

    @property
    def events_shown(self) -> frozenset[int]:
        """The numbers of the events in the table."""
        return frozenset(row.item.number for row in self.rows if isinstance(row, EventRow))

    def byte_anchor(self, offset: int | None) -> str:
        """The anchor of the row with a byte; "" if the page does not show it."""
        if offset is None:
            return ""
        # A place behind the last byte belongs to the last row.
        row = row_of(min(offset, max(len(self.exchange.body) - 1, 0)))
        return f"{self.anchor}b{row}" if row in self.bytes_shown else ""

    def event_anchor(self, number: int | None) -> str:
        """The anchor of an event in the table; "" if the page does not show it."""
        return f"{self.anchor}e{number}" if number and number in self.events_shown else ""


def answers(run: Run, shown: Sequence[int], prefix: str, parts: int) -> dict[int, Answer]:
    """Return the sections of the exchanges of `run` that are `shown`, by their index.

    `prefix` begins their anchors, and the page's allowance is divided by `parts`.
    """
    pairs = list(run.pairs())
    chosen = [(index, *pairs[index]) for index in shown]
    items = {
        index: stream_items(run, exchange, judged="events" in judgement.notes)
        for index, exchange, judgement in chosen
        if _is_streamed(exchange, judgement)
    }
    marks = allowance.share(
        [
            marks_wanted(exchange, items[index]) if index in items else 0
            for index, exchange, _ in chosen
        ],
        allowance.MARKS // parts,
        allowance.MARKS,
    )
    rows = allowance.share(
        [
            min(len(items.get(index, ())), _wanted(judgement, allowance.STREAM_ROWS))
            for index, _, judgement in chosen
        ],
        allowance.EVENT_ROWS // parts,
        allowance.STREAM_ROWS,
    )
    bytes_ = allowance.share(
        [
            min(-(-len(exchange.body) // PER_ROW), _wanted(judgement, allowance.BODY_ROWS))
            for _, exchange, judgement in chosen
        ],
        allowance.BYTE_ROWS // parts,
        allowance.BODY_ROWS,
    )
    texts = allowance.share(
        [0 if index in items else len(exchange.body) for index, exchange, _ in chosen],
        allowance.ANSWER_BYTES // parts,
        allowance.BODY_BYTES,
    )
    requests = allowance.share(
        [len(exchange.request.body) if exchange.request else 0 for _, exchange, _ in chosen],
        allowance.REQUEST_BYTES // parts,
        allowance.BODY_BYTES,
    )
    return {
        index: _answer(
            run,
            exchange,
            judgement,
            f"{prefix}x{index + 1}",
            items.get(index),
            (
                rows[position],
                bytes_[position],
                texts[position],
                requests[position],
                marks[position],
            ),
        )
        for position, (index, exchange, judgement) in enumerate(chosen)
    }


def _answer(  # noqa: PLR0913, PLR0917 -- an exchange, where it stands, and how much is shown
    run: Run,
    exchange: Exchange,
    judgement: Judgement,
    anchor: str,
    items: list[Item] | None,
    room: tuple[int, int, int, int, int],
) -> Answer:
    amiss = [
        finding
        for finding in judgement.findings
        if finding.outcome > Outcome.PASS and run.is_shown(finding)
    ]
    faults = [
        (finding.at, finding.at + max(finding.length, 1))
        for finding in amiss
        if finding.at is not None
    ]
    spans = [(item.at, item.at + item.length) for item in items or () if item.kind == "event"]
    found = [finding.event for finding in amiss if finding.event is not None]
    request = exchange.request
    return Answer(
        anchor=anchor,
        run=run,
        exchange=exchange,
        judgement=judgement,
        streamed=items is not None,
        facts=tuple(_facts(exchange, judgement)),
        notes=tuple(_notes(judgement)),
        findings=tuple({f.rule: f for f in reversed(amiss)}.values())[::-1],
        timeline=None if items is None else timeline(exchange, items, room[4]),
        rows=() if items is None else tuple(event_rows(exchange, items, found, room[0])),
        bytes=tuple(byte_rows(exchange, spans, faults, room[1])),
        text=None if items is not None else _body_text(exchange.body, faults, room[2]),
        request=None if request is None else _body_text(request.body, (), room[3]),
    )


def _wanted(judgement: Judgement, most: int) -> int:
    """How many rows an answer may have: all if it was judged as a stream, else a few.

    A plain body is shown as text anyway, and of a stream that should have been a refusal that it
    came is the evidence.
    """
    return most if "events" in judgement.notes else allowance.OTHER_ROWS


def _is_streamed(exchange: Exchange, judgement: Judgement) -> bool:
    """Whether an answer was judged as a stream, or is one where none was called for."""
    if "events" in judgement.notes:
        return True
    return exchange.head is not None and is_event_stream(exchange.head.header("content-type"))


def _facts(exchange: Exchange, judgement: Judgement) -> list[str]:
    """What the answer was like, a phrase each."""
    facts: list[str] = []
    if exchange.head is not None:
        kind = exchange.head.header("content-type") or "no content type"
        facts.append(safe_text.cut(f"{exchange.head.status} {kind}", allowance.PHRASE))
    if judgement.finish_reason:
        facts.append(f"finish {judgement.finish_reason}")
    if judgement.usage is not None:
        usage = judgement.usage
        facts.append(f"usage {usage.prompt_tokens} in, {usage.completion_tokens} out")
    if (events := judgement.notes.get("events")) is not None:
        facts.append(number(events, "event"))
    if exchange.head is None and not exchange.reads:
        facts.append("no answer")
    else:
        reads = f" in {number(len(exchange.reads), 'read')}" if exchange.timed else ""
        facts.append(f"{number(len(exchange.body), 'byte')}{reads}")
    ending = ENDINGS[exchange.closed.how]
    facts.append(f"{ending} at {exchange.closed.t:.3f} s" if exchange.timed else ending)
    if exchange.closed.detail:
        facts.append(safe_text.cut(exchange.closed.detail, allowance.PHRASE))
    return facts


def _notes(judgement: Judgement) -> list[str]:
    return [
        safe_text.cut(f"{name.replace('_', ' ')}: {_note(value)}", allowance.PHRASE)
        for name, value in judgement.notes.items()
        if name not in _SHOWN_ANYWAY
    ]


def _note(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return "yes" if value is True else str(value)


def _fields(headers: Headers) -> Headers:
    shown = [
        (safe_text.cut(name, 64), safe_text.cut(value, allowance.PHRASE)) for name, value in headers
    ]
    if len(shown) > allowance.FIELDS:
        left_out = number(len(shown) - allowance.FIELDS, "field")
        shown = [*shown[: allowance.FIELDS], ("…", f"{left_out} left out")]
    return tuple(shown)


def _body_text(body: bytes, faults: Iterable[Span], room: int) -> BodyText:
    """A body as text, line by line; no character is cut in half at its end."""
    end = min(room, len(body))
    while 0 < end < len(body) and body[end] & 0xC0 == 0x80:
        end -= 1
    spans = [(max(start, 0), min(stop, end)) for start, stop in faults if start < end]
    edges = sorted({0, end, *(edge for span in spans for edge in span)})
    pieces: list[str] = []
    for start, stop in itertools.pairwise(edges):
        shown = safe_text.visible(visible(body[start:stop], _STYLE))
        # Quotes are many, and harmless outside of an attribute.
        text = escape(shown.replace("⏎", "⏎\n"), quote=False)
        at_fault = any(first <= start < last for first, last in spans)
        pieces.append(f"<u>{text}</u>" if at_fault else text)
    shown_all = Markup("".join(pieces))  # noqa: S704 -- every piece is escaped
    return BodyText(shown=shown_all, left_out=len(body) - end)
