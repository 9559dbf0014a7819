"""Why a verdict stayed open, in words: no fault was seen, but no success either."""

from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import RULES
from cheapgpu.report.run import Run


def open_reasons(run: Run) -> list[str]:
    """Return a phrase for each exchange that showed no success, and for what is not decided."""
    if run.report.verdict != "not established":
        return []
    reasons = [
        f"{judgement.case}: {judgement.unseen}"
        for judgement in run.report.judgements
        if judgement.unseen
    ]
    undecided = [
        rule.id
        for rule in RULES
        if run.report.rules[rule.id] in (Outcome.UNKNOWN, Outcome.ERROR) and rule.level == "MUST"
    ]
    if undecided:
        reasons.append(f"not decided: {', '.join(undecided)}")
    must = (run.report.rules[rule.id] for rule in RULES if rule.level == "MUST")
    if all(outcome is Outcome.SKIP for outcome in must):
        reasons.append("no MUST rule was looked at")
    return reasons
