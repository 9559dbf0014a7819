"""What a run proves, in words; what holds, and what was not looked at."""

from dataclasses import dataclass
from typing import Final

from cheapgpu.core.findings import Outcome, Verdict
from cheapgpu.core.rules import AREAS, RULES, Rule
from cheapgpu.report.gist import outdated
from cheapgpu.report.page import allowance
from cheapgpu.report.page.safe_text import cut
from cheapgpu.report.reasons import open_reasons, standing_reasons
from cheapgpu.report.run import Run
from cheapgpu.report.sightings import sightings

#: What an outcome means: these sentences are at the head of every page.
MEANINGS: Final[dict[Outcome, str]] = {
    Outcome.PASS: "Looked at, and it holds.",
    Outcome.FAIL: "Looked at, and it is broken: the endpoint does not conform.",
    Outcome.ADVICE: "A SHOULD is not met; the verdict does not depend on it.",
    Outcome.UNKNOWN: "Looked at, but the evidence cannot decide: the verdict stays open.",
    Outcome.ERROR: "Could not be looked at, for example for want of an answer: it stays open.",
    Outcome.SKIP: "Not selected, or nothing to apply it to; there is always a reason.",
}
#: What a verdict means, and the outcome that is coloured alike.
VERDICTS: Final[dict[Verdict, tuple[str, Outcome]]] = {
    "conforms": ("Every MUST rule that was looked at holds.", Outcome.PASS),
    "does not conform": ("At least one MUST rule is broken.", Outcome.FAIL),
    "not established": ("No MUST rule is broken, but conformance was not shown.", Outcome.UNKNOWN),
}
#: The order in which outcomes are counted.
ORDER: Final = (
    Outcome.PASS,
    Outcome.FAIL,
    Outcome.ERROR,
    Outcome.UNKNOWN,
    Outcome.ADVICE,
    Outcome.SKIP,
)
_REASONS: Final = 12
_EVIDENCE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A rule that holds: in how many cases it was looked at, and what that rests on."""

    rule: Rule
    cases: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One run in words."""

    #: How the run is called on the page, where there are several; and its anchor.
    name: str
    anchor: str
    run: Run
    counts: tuple[tuple[Outcome, int], ...]
    reasons: tuple[str, ...]
    more_reasons: int
    #: What is known of the input, a phrase each.
    about: tuple[str, ...]
    #: Known failures: the id, what became of it, and the reason.
    known: tuple[tuple[str, str, str], ...]
    passed: tuple[Passed, ...]
    #: A reason, and the rules that were not looked at for it.
    skipped: tuple[tuple[str, tuple[str, ...]], ...]


def summary(run: Run, name: str, anchor: str) -> Summary:
    """Return what a run proves in words."""
    reasons = [cut(reason, allowance.PHRASE) for reason in open_reasons(run)]
    kept = reasons[:_REASONS]
    return Summary(
        name=name,
        anchor=anchor,
        run=run,
        counts=tuple((one, run.counts[one]) for one in ORDER if run.counts[one]),
        reasons=(*standing_reasons(run), *kept),
        more_reasons=len(reasons) - len(kept),
        about=tuple(cut(one, allowance.PHRASE) for one in _about(run)),
        known=tuple((entry.id, _state(run, entry.id), entry.reason) for entry in run.known),
        passed=tuple(_passed(run)),
        skipped=tuple(_skipped(run)),
    )


def names_of(runs: list[Run]) -> list[str]:
    """Return how each run is called: by its target, and by its file where that is not enough."""
    targets = [run.target or run.source or "an endpoint" for run in runs]
    names = [
        target if targets.count(target) == 1 else (run.source or target)
        for target, run in zip(targets, runs, strict=True)
    ]
    return [
        cut(name if names.count(name) == 1 else f"{name} ({index})", 100)
        for index, name in enumerate(names, 1)
    ]


def _about(run: Run) -> list[str]:
    """The phrases of the run, without what the head of the page says anyway."""
    said = {f"model {run.model}", f"recorded {run.started}"}
    return [
        phrase.replace(f"recorded {run.started} by ", "recorded by ")
        for phrase in run.about
        if phrase not in said
    ]


def _state(run: Run, rule: str) -> str:
    entry = next(one for one in run.known if one.id == rule)
    state = run.state_of(entry)
    return outdated(run, entry) if state in {"passes", "expired"} else state


def _passed(run: Run) -> list[Passed]:
    passed: list[Passed] = []
    for rule in RULES:
        if run.report.rules[rule.id] is not Outcome.PASS:
            continue
        cases = sum(
            judgement.rules.get(rule.id) is Outcome.PASS for judgement in run.report.judgements
        )
        evidence = [
            cut(f"{kind.exchange.case}: {kind.finding.observed}", allowance.PHRASE)
            for kind in sightings(run, rule.id, Outcome.PASS)
            if kind.finding.observed
        ]
        passed.append(Passed(rule=rule, cases=cases, evidence=tuple(evidence[:_EVIDENCE])))
    return passed


def _skipped(run: Run) -> list[tuple[str, tuple[str, ...]]]:
    """Reasons with their rules; an area that is there as a whole is named as `area/*`."""
    by_reason: dict[str, list[str]] = {}
    for rule, outcome in run.report.rules.items():
        if outcome is Outcome.SKIP:
            by_reason.setdefault(run.why_skipped(rule), []).append(rule)
    found: list[tuple[str, tuple[str, ...]]] = []
    for reason, rules in by_reason.items():
        whole = [a for a in AREAS if all(rule.id in rules for rule in RULES if rule.area == a)]
        names = [f"{area}/*" for area in whole]
        names += [rule for rule in rules if rule.partition("/")[0] not in whole]
        found.append((cut(reason, allowance.PHRASE), tuple(names)))
    return found
