"""What was judged, and what came of it: the input of every report."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.expectation import expectation
from cheapgpu.core.findings import Finding, Judgement, Outcome, Verdict, verdict
from cheapgpu.core.recording import PROFILE
from cheapgpu.core.rules import BY_ID
from cheapgpu.core.verify import Report
from cheapgpu.report.known import KnownFailure, KnownState

#: Why a rule was not looked at that the user left out.
NOT_SELECTED: Final = "not selected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A set of exchanges with one endpoint, and the report of core on them.

    `exchanges` are those that were judged, in the order of `report.judgements`. A rule whose
    outcome in `report.rules` is `skip` was not looked at: no report shows findings of it.
    """

    report: Report
    exchanges: tuple[Exchange, ...]
    #: The URL that was asked; "" where the input does not tell.
    target: str = ""
    #: What the input is called: the path of a file, or what it is if it has none.
    source: str = ""
    #: Further facts for the head of the report, a phrase each: what was sent, when, by whom.
    about: tuple[str, ...] = ()
    #: Commands worth typing next, each with what it gives.
    commands: tuple[tuple[str, str], ...] = ()
    profile: str = PROFILE
    #: Time of day at which the exchanges were recorded (RFC 3339); None where the input does not
    #: tell.
    started: str | None = None
    #: Failures that are accepted; each is of a rule that was selected.
    known: tuple[KnownFailure, ...] = ()
    #: Whether advice fails the run.
    strict: bool = False

    @property
    def looked_at(self) -> int:
        """How many rules were looked at."""
        return sum(outcome is not Outcome.SKIP for outcome in self.report.rules.values())

    @property
    def narrowed(self) -> bool:
        """Whether rules were left out by the user's choice."""
        return NOT_SELECTED in self.report.skipped.values()

    @property
    def counts(self) -> Counter[Outcome]:
        """How many rules came to each outcome."""
        return Counter(self.report.rules.values())

    @property
    def model(self) -> str:
        """The supplier model id that was asked for; "" where no request tells."""
        asked = (expectation(one).model for one in self.exchanges if one.model == "known")
        return next((model for model in asked if model), "")

    def excuse(self, rule: str) -> KnownFailure | None:
        """The entry by which the failure of a rule is accepted, if there is one."""
        return next(
            (one for one in self.known if one.id == rule and self.state_of(one) == "known"), None
        )

    def state_of(self, entry: KnownFailure) -> KnownState:
        """What became of a known failure in this run."""
        if entry.expired:
            return "expired"
        match self.report.rules.get(entry.id):
            case Outcome.FAIL | Outcome.ADVICE:
                return "known"
            case Outcome.PASS:
                return "passes"
            case _:
                return "not seen"

    @property
    def outdated(self) -> list[KnownFailure]:
        """The known failures that no longer hold: each fails the run."""
        return [one for one in self.known if self.state_of(one) in ("passes", "expired")]

    def fails(self, rule: str) -> bool:
        """Whether a rule fails the run: it is broken (or, if strict, advice), and not excused."""
        failing = (Outcome.FAIL, Outcome.ADVICE) if self.strict else (Outcome.FAIL,)
        return self.report.rules.get(rule) in failing and self.excuse(rule) is None

    @property
    def standing(self) -> Verdict:
        """The verdict that decides the exit code: what is known is excused, strict is strict.

        It differs from `report.verdict` only where there are known failures, or `strict` is set.
        """
        if self.outdated or any(self.fails(rule) for rule in self.report.rules):
            return "does not conform"
        must = (
            Outcome.PASS if self.excuse(rule) else outcome
            for rule, outcome in self.report.rules.items()
            if BY_ID[rule].level == "MUST"
        )
        return verdict(must, self.report.judgements)

    def pairs(self) -> Iterator[tuple[Exchange, Judgement]]:
        """Each exchange with its judgement."""
        yield from zip(self.exchanges, self.report.judgements, strict=True)

    def is_shown(self, finding: Finding) -> bool:
        """Whether a finding is of a rule that was looked at, or follows from one that was.

        A rule that fails only because another did is not looked at by itself.
        """
        cause = finding.follows or finding.rule
        return self.report.rules.get(cause, Outcome.SKIP) is not Outcome.SKIP

    def broken(self, judgement: Judgement) -> list[str]:
        """The MUST rules that an exchange broke, of those that were looked at; sorted."""
        return self._shown(judgement.broken)

    def advice(self, judgement: Judgement) -> list[str]:
        """The SHOULD rules that it did not meet, of those that were looked at; sorted."""
        return self._shown(judgement.advice)

    def why_skipped(self, rule: str) -> str:
        """Why a rule was not looked at."""
        for judgement in self.report.judgements:
            for finding in judgement.findings:
                if finding.rule == rule and finding.follows and self.is_shown(finding):
                    return f"follows from {finding.follows}"
        return self.report.skipped.get(rule, "")

    def _shown(self, rules: list[str]) -> list[str]:
        return [rule for rule in rules if self.report.rules.get(rule) is not Outcome.SKIP]
