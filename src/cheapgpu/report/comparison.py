"""Two runs compared: what broke, what healed, what cannot be told any more.

Both are judged by the same rules, so that a difference is one of the endpoint, not of the program.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from cheapgpu.core.findings import Judgement, Outcome
from cheapgpu.core.rules import BY_ID, RULES
from cheapgpu.report.gist import gist
from cheapgpu.report.run import Run
from cheapgpu.report.sightings import kind_of, sightings
from cheapgpu.report.style import Colour, Style, join, number, wrap

#: `broken` it fails now and did not before · `lost` it was looked at and cannot be told any more ·
#: `healed` it failed, or was advice, and holds now · `changed` anything else that is not as it was,
#: such as a failure of another kind.
Change = Literal["broken", "lost", "healed", "changed"]

#: `worse` a MUST rule fails now that did not · `not established` one that was looked at cannot be
#: told any more, or a success is no longer seen.
Result = Literal["worse", "not established", "not worse"]

_ABOUT: Final[dict[Change, str]] = {
    "broken": "fails now",
    "lost": "cannot be told any more",
    "healed": "holds now",
    "changed": "not as it was",
}
_COLOURS: Final[dict[Change, Colour]] = {
    "broken": "red",
    "lost": "yellow",
    "healed": "cyan",
    "changed": "cyan",
}
_SEEN: Final = (Outcome.PASS, Outcome.FAIL, Outcome.ADVICE)
#: The reason of `core.verify` for a rule that no question was about. With any other there was
#: a question, and no occasion: what is wrong then shows in another rule.
_NOT_ASKED: Final = "no exchange called for it"
_INDENT: Final = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    """A rule that did not come to the same."""

    rule: str
    change: Change
    old: Outcome
    new: Outcome
    #: What is seen of it now, in a line.
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeChange:
    """A case that did not prove the same; None where a run does not have it."""

    case: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs between two runs."""

    old: Run
    new: Run
    rules: tuple[RuleChange, ...]
    exchanges: tuple[ExchangeChange, ...]

    @property
    def result(self) -> Result:
        """What it comes to. Rules of level SHOULD decide nothing."""
        must = {one.change for one in self.rules if BY_ID[one.rule].level == "MUST"}
        if "broken" in must:
            return "worse"
        verdicts = (self.old.report.verdict, self.new.report.verdict)
        if "lost" in must or verdicts == ("conforms", "not established"):
            return "not established"
        return "not worse"

    @property
    def counts(self) -> Counter[Change]:
        """How many rules changed in each way."""
        return Counter(one.change for one in self.rules)


def compare(old: Run, new: Run) -> Comparison:
    """Return what differs, rules in the profile's order, exchanges in that of the runs.

    Exchanges are matched by case; of a case that comes more than once, the first with the first.
    """
    return Comparison(
        old=old,
        new=new,
        rules=tuple(_rules(old, new)),
        exchanges=tuple(_exchanges(old, new)),
    )


def _rules(old: Run, new: Run) -> Iterator[RuleChange]:
    for rule in (rule.id for rule in RULES):
        before, after = old.report.rules[rule], new.report.rules[rule]
        change = _change(old, new, rule)
        if change is not None:
            yield RuleChange(
                rule=rule, change=change, old=before, new=after, now=_now(new, rule, after)
            )


def _change(old: Run, new: Run, rule: str) -> Change | None:
    before, after = old.report.rules[rule], new.report.rules[rule]
    if before is after:
        differs = after is Outcome.FAIL and _kinds(old, rule) != _kinds(new, rule)
        return "changed" if differs else None
    if after is Outcome.FAIL:
        return "broken"
    if before in _SEEN and after not in _SEEN:
        occasion = after is Outcome.SKIP and new.why_skipped(rule) != _NOT_ASKED
        return "changed" if occasion else "lost"
    if before in (Outcome.FAIL, Outcome.ADVICE) and after is Outcome.PASS:
        return "healed"
    return "changed"


def _kinds(run: Run, rule: str) -> set[tuple[str, str]]:
    return {kind_of(one.finding) for one in sightings(run, rule, Outcome.FAIL)}


def _now(run: Run, rule: str, outcome: Outcome) -> str:
    return "" if outcome is Outcome.PASS else gist(run, rule)


def _exchanges(old: Run, new: Run) -> Iterator[ExchangeChange]:
    before, after = _by_case(old), _by_case(new)
    for case in dict.fromkeys([*before, *after]):
        was, now = before.get(case), after.get(case)
        if was != now:
            yield ExchangeChange(case=case, old=was, new=now)


def _by_case(run: Run) -> Mapping[str, str]:
    """What each exchange proves, by its case; a case that is repeated gets a number."""
    found: dict[str, str] = {}
    times: Counter[str] = Counter()
    for exchange, judgement in run.pairs():
        times[exchange.case] += 1
        number = times[exchange.case]
        name = exchange.case if number == 1 else f"{exchange.case} #{number}"
        status = None if exchange.head is None else exchange.head.status
        found[name] = _proves(judgement, status)
    return found


def _proves(judgement: Judgement, status: int | None) -> str:
    if judgement.outcome == "refused" and status is not None:
        return f"refused with {status}"
    reason = f", finish {judgement.finish_reason}" if judgement.finish_reason else ""
    return f"{judgement.outcome}{reason}"


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as a JSON document; every change has both outcomes."""
    return {
        "old": _side(comparison.old),
        "new": _side(comparison.new),
        "result": comparison.result,
        "counts": {change: comparison.counts[change] for change in _ABOUT},
        "rules": [
            {
                "id": one.rule,
                "level": BY_ID[one.rule].level,
                "change": one.change,
                "old": one.old.word,
                "new": one.new.word,
                "now": one.now or None,
            }
            for one in comparison.rules
        ],
        "exchanges": [
            {"case": one.case, "old": one.old, "new": one.new} for one in comparison.exchanges
        ],
    }


def _side(run: Run) -> dict[str, Any]:
    return {
        "source": run.source or None,
        "target": run.target or None,
        "model": run.model or None,
        "started": run.started,
        "verdict": run.report.verdict,
    }


def comparison_report(comparison: Comparison, style: Style) -> str:
    """Return the comparison as text for a terminal; every line is safe to print."""
    lines = [*_head("old", comparison.old, style), *_head("new", comparison.new, style)]
    for change, about in _ABOUT.items():
        changed = [one for one in comparison.rules if one.change == change]
        if changed:
            lines += ["", style.paint(f"{change}: {about}", _COLOURS[change])]
        for one in changed:
            lines += _rule(one, style)
    if comparison.exchanges:
        lines += ["", "exchanges"]
    for case in comparison.exchanges:
        arrow = f"{case.case}: {case.old or 'not asked'} -> {case.new or 'not asked'}"
        lines += wrap(style.text(arrow), style.width, first=_INDENT)
    lines += ["", *join(_conclusion(comparison), style.width, by=style.text(" · "))]
    return "\n".join(lines) + "\n"


def _head(name: str, run: Run, style: Style) -> list[str]:
    facts = [run.source, run.target, f"model {run.model}" if run.model else "", run.started or ""]
    facts.append(run.report.verdict.upper())
    safe = [style.text(fact) for fact in facts if fact]
    return join(safe, style.width, first=f"{name}  ", by=style.text(" · "))


def _rule(one: RuleChange, style: Style) -> list[str]:
    level = BY_ID[one.rule].level
    lines = wrap(
        style.text(f"{one.rule}  {level}  {one.old.word} -> {one.new.word}"),
        style.width,
        first=_INDENT,
    )
    return lines + (wrap(style.text(one.now), style.width, first=_INDENT * 3) if one.now else [])


def _conclusion(comparison: Comparison) -> Sequence[str]:
    counts = comparison.counts
    words = [f"{counts[change]} {change}" for change in _ABOUT if counts[change]]
    cases = len(comparison.exchanges)
    differ = [f"{number(cases, 'exchange')} differ{'s' if cases == 1 else ''}"] if cases else []
    return [comparison.result.upper(), *(words or ["no rule changed"]), *differ]
