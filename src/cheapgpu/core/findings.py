"""Outcomes and findings, and how they combine: by rule, by exchange, into a verdict."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

#: What an exchange proves; only `complete` may ever be settled.
ExchangeOutcome = Literal["complete", "failed", "unknown", "refused"]

#: What a run proves about an endpoint.
Verdict = Literal["conforms", "does not conform", "not established"]

#: MUST rules whose breach means no more than that the answer is not whole: nothing wrong was said.
NOT_WHOLE = frozenset(
    {
        "stream/terminal-present",
        "stream/usage-present",
        "stream/done-present",
        "stream/events-complete",
        "stream/body-complete",
        "whole/body-complete",
    }
)

#: Why no success was seen where the endpoint itself said that it failed.
ERROR_REPORTED = "the endpoint reported an error in its answer"

#: Rules that one exchange can settle for all: an answer that came too soon to be timed, or a
#: request that was refused perhaps for its size, says nothing against another that showed more.
DECIDED_ONCE = frozenset(
    {
        "accepted/integers",
        "accepted/unicode",
        "accepted/roles",
        "whole/status",
        "stream/status",
        "stream/incremental",
    }
)


class Outcome(IntEnum):
    """What looking at one rule gave; outcomes combine by taking the worst."""

    #: Not selected, or it does not apply; always with a reason.
    SKIP = 0
    #: Looked at, and it holds.
    PASS = 1
    #: A SHOULD is not met.
    ADVICE = 2
    #: Looked at, but the evidence cannot decide.
    UNKNOWN = 3
    #: Could not look: connection, 429, time, a limit of ours.
    ERROR = 4
    #: Looked at, and broken.
    FAIL = 5

    @property
    def word(self) -> str:
        """The outcome as reports spell it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing seen about one rule, with its place in the bytes."""

    rule: str
    outcome: Outcome
    #: What was wanted, in words; "" where the rule's sentence says it.
    expected: str = ""
    #: What was seen, in words.
    observed: str = ""
    #: The rule that broke first and explains this one; such a finding decides nothing.
    follows: str | None = None
    #: Offset in the body and length, in bytes; None where no bytes are to blame.
    at: int | None = None
    length: int = 0
    #: Number of the event in the stream, from 1.
    event: int | None = None
    #: Seconds since the request began when the byte at `at` arrived.
    t: float | None = None
    #: How many times the same rule was found so in this exchange; only the first few are kept.
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one exchange proves, and on what findings."""

    case: str
    outcome: ExchangeOutcome
    finish_reason: str | None
    #: As reported by the endpoint; a claim, and nothing at all unless the outcome is `complete`.
    usage: Any | None
    #: The worst outcome of each rule that this exchange has something to say about.
    rules: dict[str, Outcome]
    findings: tuple[Finding, ...]
    #: Why no success could be seen though no rule need be broken; "" where it could.
    unseen: str = ""
    #: Measured, never judged.
    notes: dict[str, Any] = field(default_factory=dict)
    #: Rules that were not looked at, with the reason.
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """The MUST rules that this exchange broke: causes only, sorted."""
        return sorted(rule for rule, outcome in self.rules.items() if outcome is Outcome.FAIL)

    @property
    def advice(self) -> list[str]:
        """The SHOULD rules that it did not meet, sorted."""
        return sorted(rule for rule, outcome in self.rules.items() if outcome is Outcome.ADVICE)


class Sheet:
    """Collects what is seen about the rules of one exchange, in the order in which it is seen."""

    __slots__ = ("findings", "skipped")

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.skipped: dict[str, str] = {}

    def hold(self, *rules: str) -> None:
        """Say that rules were looked at and hold."""
        self.findings += [Finding(rule=rule, outcome=Outcome.PASS) for rule in rules]

    def skip(self, why: str, *rules: str) -> None:
        """Say that rules were not looked at, and why."""
        self.skipped.update(dict.fromkeys(rules, why))

    def find(  # noqa: PLR0913 -- the fields of a finding
        self,
        rule: str,
        outcome: Outcome = Outcome.FAIL,
        *,
        expected: str = "",
        observed: str = "",
        follows: str | None = None,
        at: int | None = None,
        length: int = 0,
    ) -> None:
        """Add a finding that something is not as it should be, or could not be decided."""
        self.findings.append(
            Finding(
                rule=rule,
                outcome=outcome,
                expected=expected,
                observed=observed,
                follows=follows,
                at=at,
                length=length,
            )
        )

    def test(self, rule: str, *, holds: bool, expected: str, observed: str) -> bool:
        """Say that a rule holds, or that it is broken; return whether it holds."""
        if holds:
            self.hold(rule)
        else:
            self.find(rule, expected=expected, observed=observed)
        return holds


def worst(findings: Iterable[Finding]) -> dict[str, Outcome]:
    """Combine findings rule by rule; what only follows from another finding decides nothing."""
    rules: dict[str, Outcome] = {}
    for finding in findings:
        if finding.follows is None:
            rules[finding.rule] = max(rules.get(finding.rule, Outcome.SKIP), finding.outcome)
    return rules


def exchange_outcome(
    findings: Iterable[Finding], *, failed: bool, stopped: bool
) -> Literal["complete", "failed", "unknown"]:
    """What an answer of 200 proves, by the rules that it broke.

    `failed`: it reported an error in the stream. `stopped`: a limit or deadline of ours cut it.
    """
    broken = {
        finding.rule
        for finding in findings
        if finding.outcome is Outcome.FAIL and finding.follows is None
    }
    if failed or broken - NOT_WHOLE:
        return "failed"
    return "unknown" if broken or stopped else "complete"


def combine(judgements: Iterable[Judgement]) -> dict[str, Outcome]:
    """The worst outcome of each rule over several exchanges.

    Where one look that can decide is enough, a look that could not gives way to one that passed.
    """
    seen: dict[str, set[Outcome]] = {}
    for judgement in judgements:
        for rule, outcome in judgement.rules.items():
            seen.setdefault(rule, set()).add(outcome)
    for rule in DECIDED_ONCE & seen.keys():
        if Outcome.PASS in seen[rule]:
            seen[rule].discard(Outcome.UNKNOWN)
    return {rule: max(outcomes) for rule, outcomes in seen.items()}


def verdict(must: Iterable[Outcome], judgements: Iterable[Judgement]) -> Verdict:
    """Combine the outcomes of the selected MUST rules into the verdict of a run.

    An exchange in which no success could be seen leaves the verdict open: an error within the
    stream is a permitted way to fail, and where we stopped reading nobody knows.
    """
    outcomes = [outcome for outcome in must if outcome is not Outcome.SKIP]
    if Outcome.FAIL in outcomes:
        return "does not conform"
    open_ended = any(judgement.unseen for judgement in judgements)
    if outcomes and not open_ended and all(outcome is Outcome.PASS for outcome in outcomes):
        return "conforms"
    return "not established"
