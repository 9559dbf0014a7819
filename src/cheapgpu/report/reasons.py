"""Why a verdict stayed open, or does not decide the exit code: in words."""

from typing import Final

from cheapgpu.core.findings import Outcome, Verdict
from cheapgpu.core.rules import RULES
from cheapgpu.report.run import Run
from cheapgpu.report.style import number

_STANDING: Final[dict[Verdict, str]] = {
    "conforms": "conforms",
    "not established": "is not established",
}


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


def standing_reasons(run: Run) -> list[str]:
    """Return why the exit code is not that of the verdict; nothing where it is."""
    if run.standing == run.report.verdict:
        return []
    if run.standing != "does not conform":
        left = "all that fails is known" if run.standing == "conforms" else "what fails is known"
        return [f"{left}: for the exit code the run {_STANDING[run.standing]}"]
    reasons = []
    if run.outdated:
        reasons.append(f"{number(len(run.outdated), 'known failure')} no longer as listed")
    strict = [rule for rule in run.report.rules if run.fails(rule)]
    if strict:
        reasons.append(f"advice counts, as asked: {', '.join(strict)}")
    return [f"{reason}: for the exit code the run does not conform" for reason in reasons]
