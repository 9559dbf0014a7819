"""One rule that is not as it should be: what it says, what was found of it, and every place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cheapgpu.core.findings import Finding, Outcome
from cheapgpu.core.rules import RULES, Rule
from cheapgpu.report.page import allowance
from cheapgpu.report.page.answer import Answer
from cheapgpu.report.page.example_diff import ExampleDiff, example_diff
from cheapgpu.report.page.fault_excerpt import Excerpt, excerpt_of
from cheapgpu.report.page.safe_text import cut
from cheapgpu.report.run import Run
from cheapgpu.report.sightings import Sighting, consequences, sightings
from cheapgpu.report.style import number

#: The order in which a page has its rules, and the kinds of one fault that are shown.
ORDER: Final = (Outcome.FAIL, Outcome.ERROR, Outcome.UNKNOWN, Outcome.ADVICE)
_KINDS: Final = 6

#: The sections of the exchanges of each run, by their index.
Shown = Sequence[Mapping[int, Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a finding was made, and where on the page that is seen; "" where it is not shown."""

    case: str
    answer: str
    finding: Finding
    event: str
    byte: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Findings that are alike: the first of them."""

    expected: str
    observed: str
    place: Place
    often: str
    excerpt: Excerpt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was found of a rule in one run."""

    #: The index of the run, from 1.
    run: int
    outcome: Outcome
    #: Why the failure is accepted; "" where it is not.
    known: str
    kinds: tuple[Kind, ...]
    more_kinds: int
    #: Rules that fail merely because this one does, with what was seen of them.
    consequences: tuple[tuple[str, str], ...]
    places: tuple[Place, ...]
    more_places: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSection:
    """A rule with all that was found of it, in every run."""

    rule: Rule
    outcome: Outcome
    seen: tuple[Seen, ...]
    examples: ExampleDiff


def rule_sections(runs: Sequence[Run], shown: Shown) -> list[RuleSection]:
    """Return the rules that any run has something against, the worst first."""
    worst = {rule.id: max(run.report.rules[rule.id] for run in runs) for rule in RULES}
    amiss = [rule for outcome in ORDER for rule in RULES if worst[rule.id] is outcome]
    found = {
        (rule.id, index): _findings(run, rule.id)
        for rule in amiss
        for index, run in enumerate(runs)
        if run.report.rules[rule.id] > Outcome.PASS
    }
    rooms = dict(
        zip(
            found,
            allowance.share(
                [len(each) for each in found.values()], allowance.PLACES, allowance.RULE_PLACES
            ),
            strict=True,
        )
    )
    return [
        RuleSection(
            rule=rule,
            outcome=worst[rule.id],
            seen=tuple(
                _seen(run, rule.id, index, shown[index], found[rule.id, index], rooms)
                for index, run in enumerate(runs)
                if (rule.id, index) in found
            ),
            examples=example_diff(rule.id),
        )
        for rule in amiss
    ]


def _findings(run: Run, rule: str) -> list[tuple[int, Finding]]:
    """Every finding of a rule that is not as it should be, with the index of its exchange."""
    return [
        (index, finding)
        for index, judgement in enumerate(run.report.judgements)
        for finding in judgement.findings
        if finding.rule == rule and finding.outcome > Outcome.PASS and finding.follows is None
    ]


def _seen(  # noqa: PLR0913, PLR0917 -- a rule in a run, and what of it is shown
    run: Run,
    rule: str,
    index: int,
    shown: Mapping[int, Answer],
    found: Sequence[tuple[int, Finding]],
    rooms: Mapping[tuple[str, int], int],
) -> Seen:
    outcome = run.report.rules[rule]
    kinds = sightings(run, rule, outcome)
    excuse = run.excuse(rule)
    room = rooms[rule, index]
    follow = [
        (other, cut("; ".join(one for one in observed if one), allowance.PHRASE))
        for other, observed in consequences(run, rule).items()
    ]
    at = {id(exchange): position for position, exchange in enumerate(run.exchanges)}
    return Seen(
        run=index + 1,
        outcome=outcome,
        known=excuse.reason if excuse else "",
        kinds=tuple(_kind(kind, run, at[id(kind.exchange)], shown) for kind in kinds[:_KINDS]),
        more_kinds=max(len(kinds) - _KINDS, 0),
        consequences=tuple(follow),
        places=tuple(_place(run, position, one, shown) for position, one in found[:room]),
        more_places=len(found) - room,
    )


def _kind(kind: Sighting, run: Run, position: int, shown: Mapping[int, Answer]) -> Kind:
    finding = kind.finding
    return Kind(
        expected=cut(finding.expected, allowance.PHRASE),
        observed=cut(finding.observed, allowance.PHRASE),
        place=_place(run, position, finding, shown),
        often=_often(kind),
        excerpt=excerpt_of(kind.exchange, finding),
    )


def _place(run: Run, position: int, finding: Finding, shown: Mapping[int, Answer]) -> Place:
    answer = shown.get(position)
    return Place(
        case=cut(run.exchanges[position].case, allowance.PHRASE),
        answer=answer.anchor if answer else "",
        finding=finding,
        event=answer.event_anchor(finding.event) if answer else "",
        byte=answer.byte_anchor(finding.at) if answer else "",
    )


def _often(kind: Sighting) -> str:
    """In how many events of the answer, and in how many other cases, it is likewise."""
    finding = kind.finding
    often: list[str] = []
    if finding.count > 1:
        events = kind.judgement.notes.get("events") if finding.event is not None else None
        what = "events" if finding.event is not None else "places"
        of = f" of {events}" if events else ""
        often.append(f"{finding.count}{of} {what} of this answer")
    if len(kind.cases) > 1:
        often.append(number(len(kind.cases) - 1, "other case"))
    return f"likewise in {' and in '.join(often)}" if often else ""
