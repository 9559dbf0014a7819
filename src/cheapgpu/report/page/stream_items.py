"""What came in a stream, in its order: events, comments, and bytes that were never dispatched."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.expectation import expectation
from cheapgpu.core.findings import Outcome
from cheapgpu.core.messages import Usage
from cheapgpu.core.sse import EventReader
from cheapgpu.core.stream import Step
from cheapgpu.core.stream_verifier import StreamEvent, StreamVerifier
from cheapgpu.report.run import Run

#: `event` was dispatched · `comment` is ignored by clients · `discarded` waits for a blank line.
Kind = Literal["event", "comment", "discarded"]

#: WHATWG HTML 9.2.5: a line that begins with a colon.
_COMMENT: Final = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|(?<=[\r\n])):[^\r\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing in a stream, with its place (bytes) and when it was complete (seconds)."""

    kind: Kind
    at: int
    length: int
    t: float | None
    #: Of an event: its number from 1, what it is, and what it says.
    number: int = 0
    step: Step = "unreadable"
    text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    #: The rules that it broke, of those that were looked at.
    broken: tuple[str, ...] = ()


def stream_items(run: Run, exchange: Exchange, *, judged: bool) -> list[Item]:
    """Return what came; `judged` says whether the answer was held to the rules of a stream."""
    wanted = expectation(exchange)
    verifier = StreamVerifier(model=wanted.model, limit=wanted.limit)
    events: list[StreamEvent] = []
    for read in exchange.reads:
        events += verifier.feed(read.data)
    items = [
        _item(run, exchange, event, number, judged=judged) for number, event in enumerate(events, 1)
    ]
    body = exchange.body
    items += [
        Item(
            kind="comment",
            at=found.start(),
            length=found.end() - found.start(),
            t=exchange.time_of(max(found.end() - 1, 0)),
        )
        for found in _COMMENT.finditer(body)
    ]
    discarded = _discarded(exchange)
    if discarded is not None:
        items.append(discarded)
    return sorted(items, key=lambda item: item.at)


def _item(run: Run, exchange: Exchange, event: StreamEvent, number: int, *, judged: bool) -> Item:
    rules = dict.fromkeys(f"stream/{name}" for name in event.broken) if judged else {}
    return Item(
        kind="event",
        at=event.at,
        length=event.length,
        t=exchange.time_of(event.at + event.length - 1),
        number=number,
        step=event.step,
        text=event.content,
        finish_reason=event.finish_reason,
        usage=event.usage,
        broken=tuple(rule for rule in rules if run.report.rules[rule] is not Outcome.SKIP),
    )


def _discarded(exchange: Exchange) -> Item | None:
    """The end of the body without its blank line (WHATWG HTML 9.2.6)."""
    reader = EventReader()
    reader.feed(exchange.body)
    left = reader.finish()
    if left is None:
        return None
    t = exchange.time_of(max(len(exchange.body) - 1, 0))
    return Item(kind="discarded", at=left.at, length=len(left.raw), t=t)
