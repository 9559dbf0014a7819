"""One fault: its name, what it does in one sentence, what it breaks, and the change it makes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cheapgpu.simulate.answer import Answer, Event, Wire
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.model import Speech

#: `slot-kept` a client that left keeps the only slot busy · `works-on` it does so for as long as
#: its answer would have taken · `falls-over` a body that cannot be read takes the server down for
#: the next request · `models-open` the model list needs no key.
Habit = Literal["slot-kept", "works-on", "falls-over", "models-open"]

Events = Sequence[Event]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A change to the right endpoint; each member changes one stage of it, and most are None.

    The functions are pure: they take what the stage before made, and the request.
    """

    #: A rule's id, or `timing/…`, `transport/…`, `scenario/…`.
    name: str
    sentence: str
    #: The rules that it breaks, or gets advice from; its own first.
    breaks: tuple[str, ...]
    #: Globs of the rules that it leaves undecided (unknown or error).
    opens: tuple[str, ...] = ()
    #: Rules by which a request is not refused although it should be.
    tolerates: frozenset[str] = frozenset()
    #: A refusal of a request that should be answered; None answers it.
    refuses: Callable[[Asked], Answer | None] | None = None
    #: What a refusal looks like.
    refusal: Callable[[Answer, Asked], Answer] | None = None
    #: What the model says and counts.
    speech: Callable[[Speech, Asked], Speech] | None = None
    #: The object of a plain answer.
    completion: Callable[[dict[str, Any], Asked], dict[str, Any]] | None = None
    #: The events of a stream.
    events: Callable[[Events, Asked], Events] | None = None
    #: Head, body and end of an answer that is no refusal.
    answer: Callable[[Answer, Asked], Answer] | None = None
    #: The bytes of any answer, a refusal included.
    wire: Callable[[Wire, Asked], Wire] | None = None
    habits: frozenset[Habit] = frozenset()


def in_streams(change: Callable[[Answer], Answer]) -> Callable[[Answer, Asked], Answer]:
    """A change to streamed answers only."""
    return lambda answer, asked: change(answer) if asked.stream else answer


def in_plain(change: Callable[[Answer], Answer]) -> Callable[[Answer, Asked], Answer]:
    """A change to plain answers only."""
    return lambda answer, asked: answer if asked.stream else change(answer)


def in_both(change: Callable[[Answer], Answer]) -> Callable[[Answer, Asked], Answer]:
    """A change to every answer."""
    return lambda answer, _: change(answer)
