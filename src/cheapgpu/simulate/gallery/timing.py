"""Faults of time: answers that come late, in lumps or in crumbs, or that break off."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from cheapgpu.simulate.answer import DONE, Answer, Ending, Event, Piece, Wire, merged
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.endpoint import HEARTBEAT
from cheapgpu.simulate.gallery.fault import Events, Fault

#: What is missing from a stream that breaks off, and is nobody's doing but the endpoint's.
BROKEN_OFF: Final = (
    "stream/body-complete",
    "stream/terminal-present",
    "stream/usage-present",
    "stream/done-present",
    "whole/body-complete",
)
#: Comments that come while a prompt takes long.
_COMMENTS: Final = 5


def in_the_middle(answer: Answer, ending: Ending, *, crumb: bool = False) -> Answer:
    """Half of the body; `crumb`: and half of the piece after it."""
    if len(answer.body) == 1:
        (whole,) = answer.body
        half = replace(whole, data=whole.data[: len(whole.data) // 2])
        return replace(answer, body=(half,), announced=len(whole.data), ending=ending)
    place = len(answer.body) // 2
    body = answer.body[:place]
    if crumb:
        piece = answer.body[place]
        body = (*body, replace(piece, data=piece.data[: len(piece.data) // 2]))
    return replace(answer, body=body, ending=ending)


def never(_: Wire, __: Asked) -> Wire:
    """Not one byte, for ever."""
    return Wire(pieces=(), ending="hang")


def late(events: Events, seconds: float) -> Events:
    """A stream whose first event comes later by some seconds."""
    first, *others = events
    return (replace(first, wait=first.wait + seconds), *others)


def _buffered(wire: Wire, asked: Asked) -> Wire:
    return replace(wire, pieces=merged(wire.pieces)) if asked.stream else wire


def _replayed(events: Events, _: Asked) -> Events:
    return late(events, sum(event.wait for event in events))


def _slow_prompt(events: Events, _: Asked) -> Events:
    """The prompt takes half as long as the text; comments say that it is being worked on."""
    wait = sum(event.wait for event in events) / 2 / _COMMENTS
    return (*(Event(block=HEARTBEAT, wait=wait) for _ in range(_COMMENTS)), *events)


def _crumbs(wire: Wire, _: Asked) -> Wire:
    return replace(wire, pieces=tuple(_bytes(wire.pieces)))


def _bytes(pieces: Iterable[Piece]) -> Iterable[Piece]:
    for piece in pieces:
        for at in range(len(piece.data)):
            yield Piece(data=piece.data[at : at + 1], wait=0.0 if at else piece.wait)


def _half_a_head(wire: Wire, _: Asked) -> Wire:
    head = wire.pieces[0]
    return Wire(pieces=(replace(head, data=head.data[: len(head.data) // 2]),), ending="hang")


def _reset_after_done(answer: Answer, asked: Asked) -> Answer:
    return replace(answer, ending="reset") if asked.stream else answer


def _cut_before_done(answer: Answer, asked: Asked) -> Answer:
    if not asked.stream:
        return answer
    kept = tuple(piece for piece in answer.body if piece.data != DONE)
    return replace(answer, body=kept, ending="cut")


TIMING: Final = (
    Fault(
        name="timing/buffered",
        sentence="Sends a stream, its head included, all at once when it is finished.",
        breaks=("stream/incremental",),
        wire=_buffered,
    ),
    Fault(
        name="timing/replayed",
        sentence="Makes the whole answer first, and then replays it piece by piece.",
        breaks=(),
        opens=("stream/incremental",),
        events=_replayed,
    ),
    Fault(
        name="timing/slow-prompt",
        sentence="Takes half as long for the prompt as for the text, and sends comments meanwhile.",
        breaks=(),
        events=_slow_prompt,
    ),
    Fault(
        name="timing/stall",
        sentence="Stops in the middle of the text and says nothing more, for ever.",
        breaks=(),
        opens=BROKEN_OFF,
        answer=lambda answer, _: in_the_middle(answer, "hang"),
    ),
    Fault(
        name="timing/no-answer",
        sentence="Takes a request and never sends a byte.",
        breaks=(),
        opens=("*",),
        wire=never,
    ),
    Fault(
        name="timing/slow-head",
        sentence="Stops in the middle of its head, for ever.",
        breaks=(),
        opens=("*",),
        wire=_half_a_head,
    ),
    Fault(
        name="timing/byte-at-a-time",
        sentence="Sends every byte by itself.",
        breaks=(),
        wire=_crumbs,
    ),
    Fault(
        name="timing/cut-by-reset",
        sentence="Resets the connection in the middle of the answer.",
        breaks=BROKEN_OFF,
        answer=lambda answer, _: in_the_middle(answer, "reset"),
    ),
    Fault(
        name="timing/cut-by-eof",
        sentence="Closes the connection in the middle of an event.",
        breaks=(*BROKEN_OFF, "stream/events-complete"),
        answer=lambda answer, _: in_the_middle(answer, "cut", crumb=True),
    ),
    Fault(
        name="timing/cut-before-done",
        sentence="Closes the connection after the usage chunk.",
        breaks=("stream/body-complete", "stream/done-present"),
        answer=_cut_before_done,
    ),
    Fault(
        name="timing/cut-after-done",
        sentence="Resets the connection after [DONE], before the end of the body.",
        breaks=("stream/body-complete",),
        answer=_reset_after_done,
    ),
)
