"""Runs as JUnit XML, as GitHub, GitLab and Jenkins read it: a suite for each area of rules.

What a server shows is the name of a test case and its message, so each is enough by itself. Text
of strangers is made safe before it is escaped: no character is left that XML 1.0 forbids (section
2.2).
"""

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from cheapgpu import __version__
from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import AREAS, RULES
from cheapgpu.report.gist import block_of, gist, line, outdated
from cheapgpu.report.run import Run

#: How a test case ends that did not simply pass, as the elements of the format are named.
_Element = Literal["failure", "error", "skipped", "system-out"]
#: The attribute that counts each kind of ending.
_COUNTED: Final[dict[_Element, str]] = {
    "failure": "failures",
    "error": "errors",
    "skipped": "skipped",
}


@dataclass(frozen=True, slots=True)
class _Ending:
    """What a test case has inside."""

    element: _Element
    message: str
    text: str = ""
    #: What kind of failure it is, where that is not the outcome of the rule.
    kind: str = ""


def junit(runs: Sequence[Run]) -> str:
    """Return the XML document: one suite for each area, of each run where there are several.

    A rule that fails the run is a failure; unknown and error are errors; a known failure and a rule
    that was not looked at are skipped; advice passes, with its text as output, unless it is strict.
    """
    suites: list[str] = []
    total: Counter[str] = Counter()
    for run in runs:
        for area in AREAS:
            lines, counts = _suite(run, area, several=len(runs) > 1)
            suites += lines
            total += counts
    head = f'<testsuites name="{_attribute(f"cheapgpu {__version__}")}"{_counts(total)}>'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, *suites, "</testsuites>"]
    return "\n".join(lines) + "\n"


def _suite(run: Run, area: str, *, several: bool) -> tuple[list[str], Counter[str]]:
    counts: Counter[str] = Counter()
    cases: list[str] = []
    for rule in (rule.id for rule in RULES if rule.area == area):
        ending = _ending(run, rule)
        counts["tests"] += 1
        if ending is not None and ending.element in _COUNTED:
            counts[_COUNTED[ending.element]] += 1
        cases += _case(run, rule, ending)
    name = f"{area} · {run.source or run.target}" if several else area
    when = _timestamp(run.started)
    head = f'<testsuite name="{_attribute(name)}"{_counts(counts)}{when}>'
    return [f"  {head}", *_properties(run), *cases, "  </testsuite>"], counts


def _properties(run: Run) -> list[str]:
    facts = {
        "target": run.target,
        "model": run.model,
        "profile": run.profile,
        "tool": f"cheapgpu {__version__}",
        "verdict": run.report.verdict,
        "recorded": run.started or "",
        "strict": "yes" if run.strict else "",
    }
    lines = [
        f'      <property name="{name}" value="{_attribute(value)}"/>'
        for name, value in facts.items()
        if value
    ]
    return ["    <properties>", *lines, "    </properties>"]


def _case(run: Run, rule: str, ending: _Ending | None) -> list[str]:
    file = f' file="{_attribute(run.source)}"' if run.source else ""
    head = f'<testcase classname="{_attribute(run.profile)}" name="{rule}"{file}'
    if ending is None:
        return [f"    {head}/>"]
    failed = ending.element in ("failure", "error")
    kind = f' type="{ending.kind or run.report.rules[rule].word}"' if failed else ""
    message = f' message="{_attribute(ending.message)}"' if ending.message else ""
    inside = f"<{ending.element}{kind}{message}"
    if ending.text:
        inside += f">{html.escape(ending.text)}</{ending.element}>"
    else:
        inside += "/>"
    return [f"    {head}>", f"      {inside}", "    </testcase>"]


def _ending(run: Run, rule: str) -> _Ending | None:
    """How the test case of a rule ends; None where it passes and there is nothing to say."""
    outcome = run.report.rules[rule]
    block = block_of(run, rule) if outcome is not Outcome.PASS else ""
    stale = next((outdated(run, entry) for entry in run.outdated if entry.id == rule), "")
    if stale:
        return _Ending("failure", stale, block, "known")
    excuse = run.excuse(rule)
    if excuse is not None:
        return _Ending("skipped", line(f"known failure: {excuse.reason}"), block)
    if run.fails(rule):
        return _Ending("failure", gist(run, rule), block)
    match outcome:
        case Outcome.UNKNOWN | Outcome.ERROR:
            return _Ending("error", f"{outcome.word}: {gist(run, rule)}", block)
        case Outcome.SKIP:
            return _Ending("skipped", f"not looked at: {gist(run, rule)}")
        case Outcome.ADVICE:
            return _Ending("system-out", "", block)
        case _:
            return None


def _counts(counts: Counter[str]) -> str:
    names = ("tests", *_COUNTED.values())
    return "".join(f' {name}="{counts[name]}"' for name in names)


def _timestamp(started: str | None) -> str:
    """When the run began, in the format's own form: UTC without a zone, in whole seconds."""
    try:
        moment = datetime.fromisoformat(started) if started else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        return ""
    return f' timestamp="{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"'


def _attribute(text: str) -> str:
    return html.escape(line(text), quote=True)
