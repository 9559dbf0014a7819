"""Which rules decide: `--only` and `--skip`, as ids or globs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cheapgpu.core.findings import Outcome, verdict
from cheapgpu.core.rules import RULES, select
from cheapgpu.core.verify import Report

NOT_SELECTED: Final = "not selected"


def selected(only: Sequence[str], skip: Sequence[str]) -> frozenset[str]:
    """Return the ids of the rules that are named by `only` (all, if nothing is) and not by `skip`.

    Raises SelectionError for a pattern that matches nothing, with the ids nearest to it.
    """
    chosen = {rule.id for rule in (select(only) if only else RULES)}
    return frozenset(chosen - {rule.id for rule in select(skip)})


def narrow(report: Report, chosen: frozenset[str]) -> Report:
    """Return a report in which the rules that were not chosen were not looked at.

    What each exchange proves stays as it is: money follows from that, whatever is selected.
    """
    if len(chosen) == len(RULES):
        return report
    outcomes = {
        rule: outcome if rule in chosen else Outcome.SKIP for rule, outcome in report.rules.items()
    }
    must = [outcomes[rule.id] for rule in RULES if rule.level == "MUST"]
    reasons = {rule: NOT_SELECTED for rule in report.rules if rule not in chosen}
    return replace(
        report,
        verdict=verdict(must, report.judgements),
        rules=outcomes,
        skipped=report.skipped | reasons,
    )
