"""What was judged, and what came of it: the input of every report."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import Finding, Judgement, Outcome
from cheapgpu.core.recording import PROFILE
from cheapgpu.core.verify import Report


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

    @property
    def looked_at(self) -> int:
        """How many rules were looked at."""
        return sum(outcome is not Outcome.SKIP for outcome in self.report.rules.values())

    @property
    def counts(self) -> Counter[Outcome]:
        """How many rules came to each outcome."""
        return Counter(self.report.rules.values())

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
