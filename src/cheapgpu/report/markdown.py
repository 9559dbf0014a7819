"""Runs as Markdown (GitHub's): the verdict, a table of the areas, and what is not as it should be.

It is made for the summary of a CI job. What strangers wrote stands in it as text only: every sign
that means something in Markdown or HTML is escaped.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from cheapgpu import __version__
from cheapgpu.core.findings import Outcome, Verdict
from cheapgpu.core.rules import AREAS, RULES
from cheapgpu.report.block import Block
from cheapgpu.report.gist import gist, line, outdated
from cheapgpu.report.reasons import open_reasons, standing_reasons
from cheapgpu.report.run import Run
from cheapgpu.report.terminal import blocks_of

#: Signs that are escaped with a backslash (CommonMark, "Backslash escapes"). Without its colon an
#: address is no link, without its at sign nobody is called.
_MEANING: Final = re.compile(r"[\\`*_\[\]<>#|~&@$]|:(?=/)")
_ROWS: Final = 60
#: Rules that are broken alike are named up to this number.
_NAMED: Final = 8
_SIGNS: Final[dict[Verdict, str]] = {
    "conforms": "✅",
    "does not conform": "❌",
    "not established": "❔",
}
#: The columns of the table of areas, and the order of the table of rules.
_COLUMNS: Final = (
    Outcome.PASS,
    Outcome.FAIL,
    Outcome.ERROR,
    Outcome.UNKNOWN,
    Outcome.ADVICE,
    Outcome.SKIP,
)
_WORST_FIRST: Final = (Outcome.FAIL, Outcome.ERROR, Outcome.UNKNOWN, Outcome.ADVICE)


def markdown(runs: Sequence[Run]) -> str:
    """Return a section for each run; known failures are struck through, with their reason."""
    return "\n".join("\n".join(_section(run)) + "\n" for run in runs)


def _section(run: Run) -> Iterator[str]:
    sign = _SIGNS[run.standing]
    yield f"### {sign} {run.report.verdict.upper()}: {_plain(run.target or run.source)}"
    yield ""
    facts = [
        run.profile,
        f"model {run.model}" if run.model else "",
        run.source if run.target else "",
    ]
    facts += [f"recorded {run.started}" if run.started else "", f"cheapgpu {__version__}"]
    facts.append(f"{run.looked_at} of {len(run.report.rules)} rules looked at")
    yield " · ".join(_plain(fact) for fact in facts if fact)
    yield ""
    yield from _areas(run)
    yield from _outdated(run)
    yield from _rules(run)
    for reason in [*standing_reasons(run), *open_reasons(run)][:_ROWS]:
        yield f"- {_plain(reason)}"


def _areas(run: Run) -> Iterator[str]:
    names = ["not looked at" if one is Outcome.SKIP else one.word for one in _COLUMNS]
    yield f"| area | {' | '.join(names)} |"
    yield f"|---|{'--:|' * len(names)}"
    for area in AREAS:
        counts = Counter(run.report.rules[rule.id] for rule in RULES if rule.area == area)
        cells = [str(counts[outcome] or "") for outcome in _COLUMNS]
        yield f"| {area} | {' | '.join(cells)} |"
    yield ""


def _outdated(run: Run) -> Iterator[str]:
    for entry in run.outdated:
        yield f"- **{entry.id}**: {_plain(outdated(run, entry))}"
    if run.outdated:
        yield ""


def _rules(run: Run) -> Iterator[str]:
    blocks = [block for outcome in _WORST_FIRST for block in blocks_of(run, outcome)]
    if not blocks:
        return
    yield "| rule | level | outcome | what was seen |"
    yield "|---|---|---|---|"
    for block in blocks[:_ROWS]:
        yield _row(run, block)
    yield ""
    if len(blocks) > _ROWS:
        yield f"and {len(blocks) - _ROWS} more: the other reports have them"
        yield ""


def _row(run: Run, block: Block) -> str:
    rule = block.rule
    names = [f"`{name}`" for name in (rule.id, *block.alike)]
    outcome = run.report.rules[rule.id].word
    seen = _plain(gist(run, rule.id))
    excuse = run.excuse(rule.id)
    if excuse is not None:
        names, outcome = [f"~~{name}~~" for name in names], f"{outcome}, known"
        seen = f"~~{seen}~~ known: {_plain(excuse.reason)}"
    named = ", ".join(names[:_NAMED])
    if len(names) > _NAMED:
        named += f" and {len(names) - _NAMED} more"
    return f"| {named} | {rule.level} | {outcome} | {seen} |"


def _plain(text: str) -> str:
    """Text of anyone, made safe to print and to stand in Markdown."""
    return _MEANING.sub(lambda sign: f"\\{sign[0]}", line(text))
