"""Judges `service/`: whether one exchange disturbs the next."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import Finding, Outcome
from cheapgpu.core.looks import Look, advice_of
from cheapgpu.core.request import ChatRequest, decode_request
from cheapgpu.core.stream_verifier import StreamVerifier

#: A word that a request gives its model to repeat, to be found where it does not belong.
_NONCE: Final = re.compile(r"\bcg[0-9a-f]{8}\b")
#: So much longer than usual an answer may take by chance, in seconds.
_CHANCE_SECONDS: Final = 0.5
#: Endings by which a run, and no patience, was over.
_CUT_SHORT: Final = ("deadline", "cancelled")


def judge_service(
    exchanges: Sequence[Exchange], looks: Sequence[Look]
) -> Iterator[tuple[int, Finding]]:
    """Say of which exchange, by its index, what was found; `looks` are those with an answer."""
    yield from _after(exchanges, looks)
    yield from _mixed(looks)


def _after(exchanges: Sequence[Exchange], looks: Sequence[Look]) -> Iterator[tuple[int, Finding]]:
    """Whether the exchange after one that we left, or after a hostile one, got an answer."""
    for index, (before, after) in enumerate(pairwise(exchanges), 1):
        if after.sent is None or before.request is None:
            continue
        if before.closed.how == "left":
            answered = _answered("service/free-after-disconnect", before, after)
            yield index, _waited(answered, index, looks)
        elif before.head is not None and not isinstance(
            decode_request(before.request.body), ChatRequest
        ):
            yield index, _answered("service/answers-after-fault", before, after)


def _answered(rule: str, before: Exchange, after: Exchange) -> Finding:
    finding = advice_of(
        rule,
        holds=after.head is not None,
        expected=f"an answer after {before.case}",
        observed="an answer" if after.head is not None else "no answer",
    )
    closed = after.closed
    busy = closed.how == "timeout" and 2 * after.lag >= closed.t
    if after.head is None and (busy or closed.how in _CUT_SHORT):
        why = "this machine was too busy to see one" if busy else "the run was over"
        observed = f"no answer, but {why}"
        return replace(finding, outcome=Outcome.UNKNOWN, observed=observed)
    return finding


def _waited(finding: Finding, index: int, looks: Sequence[Look]) -> Finding:
    """Compare how long the answer after a client that left took with the same question before.

    An engine that works on for nobody lets the next one wait for about as long as the answer that
    was left would still have taken; a wait that is shorter by far, or short, may be chance.
    """
    at = {look.index: look for look in looks}
    after, left = at.get(index), at.get(index - 1)
    if after is None or not after.exchange.timed:
        return finding
    took = _seconds_of(after)
    shown = f"{finding.observed}, whole after {took:.3f} s"
    usual = _usual(after, looks[: looks.index(after)])
    if usual is None or left is None:
        return replace(finding, observed=shown)
    before = _seconds_of(usual)
    chance = max(_CHANCE_SECONDS, before, _left_over(left) / 2)
    within = before + chance
    return advice_of(
        finding.rule,
        holds=took - after.exchange.lag <= within,
        expected=f"{finding.expected} within {within:.3f} s",
        observed=f"{shown}; the same question took {before:.3f} s in {usual.exchange.case}",
    )


def _usual(after: Look, earlier: Sequence[Look]) -> Look | None:
    """The last look at the same question, answered in the same way to its end."""
    return next(
        (
            look
            for look in reversed(earlier)
            if (look.question, look.request.stream) == (after.question, after.request.stream)
            and look.exchange.timed
            and look.exchange.ending == "whole"
        ),
        None,
    )


def _seconds_of(look: Look) -> float:
    """How long the last of an answer took to come, in seconds."""
    exchange = look.exchange
    last = exchange.reads[-1].t if exchange.reads else exchange.closed.t
    return last - (exchange.sent or 0.0)


def _left_over(left: Look) -> float:
    """How long an answer that we left would still have taken, by its pace, in seconds."""
    exchange = left.exchange
    events = [event for event in StreamVerifier().feed(exchange.body) if event.text]
    if len(events) < 2:
        return 0.0
    ends = (events[0], events[-1])
    first, last = (exchange.time_of(event.at + event.length - 1) or 0.0 for event in ends)
    pace = (last - first) / (len(events) - 1)
    return pace * (left.request.max_completion_tokens - len(events))


def _mixed(looks: Sequence[Look]) -> Iterator[tuple[int, Finding]]:
    """Whether a word that only another request held, or another answer's id, came back."""
    owners: dict[str, Look] = {}
    for look in looks:
        for word in _NONCE.findall(look.prompt):
            owners.setdefault(word, look)
    if len(owners) < 2:
        return
    for look in looks:
        own = set(_NONCE.findall(look.prompt))
        foreign = [w for w in _NONCE.findall(look.text) if w in owners and w not in own]
        if own or foreign:
            whose = (
                f"the word of {owners[foreign[0]].exchange.case}" if foreign else "its own words"
            )
            yield (
                look.index,
                advice_of(
                    "service/answers-not-mixed",
                    holds=not foreign,
                    expected="no word that only another request held",
                    observed=whose,
                ),
            )
