"""A badge, as JSON that shields.io and its like read from an address (their "endpoint" badge)."""

from collections.abc import Sequence
from typing import Final

from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import RULES
from cheapgpu.report.document import to_json
from cheapgpu.report.run import Run
from cheapgpu.report.style import number

_LABEL: Final = "openai-chat-text"
_MUST: Final = {rule.id: rule.area for rule in RULES if rule.level == "MUST"}


def badge(runs: Sequence[Run]) -> str:
    """Return the badge's JSON for what was proven: the worst verdict of the runs, never a share.

    A badge promises the whole profile. Where rules were left out, or whole areas were not looked
    at, it says `conforms in part`. The date is that of the oldest recording. Known failures are
    failures here: nobody who reads a badge has seen their reasons.
    """
    message, colour = _shown(runs)
    return to_json(
        {
            "schemaVersion": 1,
            "label": _LABEL,
            "message": message,
            "color": colour,
            "isError": colour == "red",
        }
    )


def _shown(runs: Sequence[Run]) -> tuple[str, str]:
    """The message and its colour."""
    verdicts = {run.report.verdict for run in runs}
    if "does not conform" in verdicts:
        broken = {rule for run in runs for rule in _MUST if run.report.rules[rule] is Outcome.FAIL}
        verb = "fails" if len(broken) == 1 else "fail"
        return f"{number(len(broken), 'rule')} {verb}", "red"
    if verdicts != {"conforms"}:
        return "not established", "lightgrey"
    whole = all(_is_whole(run) for run in runs)
    words, colour = ("conforms", "brightgreen") if whole else ("conforms in part", "green")
    dates = [(run.started or "")[:10] for run in runs]
    return (f"{words} · {min(dates)}" if all(dates) else words), colour


def _is_whole(run: Run) -> bool:
    """Whether every area was looked at, and no rule was left out on purpose."""
    looked_at = {area for rule, area in _MUST.items() if run.report.rules[rule] is not Outcome.SKIP}
    return looked_at == set(_MUST.values()) and not run.narrowed
