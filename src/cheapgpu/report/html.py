"""The report as one HTML file: no network, no script, the evidence in it.

A page is about a megabyte at most, however much was judged: `page.allowance` says what of it is
shown. The same runs give the same bytes. Text of answers is on the page, as evidence: it is the
only report that has it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from cheapgpu import __version__
from cheapgpu.core.findings import Outcome
from cheapgpu.core.schema import SCHEMA_BYTES
from cheapgpu.report.page import allowance
from cheapgpu.report.page.answer import Answer, answers
from cheapgpu.report.page.byte_view import ByteRow
from cheapgpu.report.page.event_table import EventRow
from cheapgpu.report.page.matrix import Table, case_matrix, run_matrix
from cheapgpu.report.page.rule_section import RuleSection, rule_sections
from cheapgpu.report.page.safe_text import visible
from cheapgpu.report.page.summary import MEANINGS, VERDICTS, Summary, names_of, summary
from cheapgpu.report.run import Run
from cheapgpu.report.style import number

#: Sign, word and class of each outcome; the word is there for whoever does not see the sign.
_SIGNS: Final[dict[Outcome, tuple[str, str, str]]] = {
    Outcome.PASS: ("✓", "pass", "p"),
    Outcome.FAIL: ("✗", "fail", "f"),
    Outcome.ADVICE: ("!", "advice", "a"),
    Outcome.UNKNOWN: ("?", "unknown", "k"),
    Outcome.ERROR: ("⊘", "error", "e"),
    Outcome.SKIP: ("\N{EN DASH}", "skip", "s"),
}
#: What an exchange proves, and the outcome that is coloured alike.
_PROVES: Final = {
    "complete": Outcome.PASS,
    "failed": Outcome.FAIL,
    "unknown": Outcome.UNKNOWN,
    "refused": Outcome.SKIP,
}
#: Where the standards are that citations name.
_STANDARDS: Final = {
    "WHATWG HTML": "https://html.spec.whatwg.org/multipage/server-sent-events.html",
    "RFC 8259": "https://www.rfc-editor.org/rfc/rfc8259",
    "RFC 9110": "https://www.rfc-editor.org/rfc/rfc9110",
    "RFC 9112": "https://www.rfc-editor.org/rfc/rfc9112",
    "JSON Schema 2020-12": "https://json-schema.org/draft/2020-12/json-schema-validation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One run on the page: in words, and its exchanges with a section of their own."""

    summary: Summary
    streams: tuple[Answer, ...]
    others: tuple[Answer, ...]
    #: Exchanges that have no section.
    left_out: int


def html_report(runs: Sequence[Run]) -> str:
    """Return the page for one run, or for several endpoints side by side.

    Raises ValueError where there is no run at all. Runs beyond `allowance.RUNS` are counted only.
    """
    if not runs:
        raise ValueError("a report needs at least one run")
    shown_runs = list(runs[: allowance.RUNS])
    several = len(runs) > 1
    names = names_of(shown_runs)
    sections = _answers(shown_runs, several=several)
    parts = [
        _part(run, name, f"r{index}", sections[index - 1])
        for index, (run, name) in enumerate(zip(shown_runs, names, strict=True), 1)
    ]
    matrix = (
        run_matrix(shown_runs, names, sections)
        if several
        else case_matrix(shown_runs[0], sections[0])
    )
    return _write(parts, matrix, rule_sections(shown_runs, sections), len(runs) - len(shown_runs))


def _write(
    parts: Sequence[_Part], matrix: Sequence[Table], rules: Sequence[RuleSection], more_runs: int
) -> str:
    return _page().render(
        parts=parts,
        matrix=matrix,
        broken=[one for one in rules if one.outcome is Outcome.FAIL],
        undecided=[one for one in rules if one.outcome in (Outcome.ERROR, Outcome.UNKNOWN)],
        advised=[one for one in rules if one.outcome is Outcome.ADVICE],
        more_runs=more_runs,
        several=len(parts) + more_runs > 1,
        meanings=MEANINGS,
        verdicts=VERDICTS,
        version=__version__,
        digest=hashlib.sha256(SCHEMA_BYTES).hexdigest(),
        css=_css(),
    )


def _answers(runs: Sequence[Run], *, several: bool) -> list[Mapping[int, Answer]]:
    """The sections of every run; of too many exchanges, those with something amiss."""
    rooms = allowance.share(
        [len(run.exchanges) for run in runs], allowance.EXCHANGES, allowance.EXCHANGES
    )
    return [
        answers(run, _first(run, room), f"r{index}" if several else "", len(runs))
        for index, (run, room) in enumerate(zip(runs, rooms, strict=True), 1)
    ]


def _first(run: Run, room: int) -> list[int]:
    """The exchanges that are shown, in their order: those with something amiss before others."""
    judgements = run.report.judgements
    worst = {
        index: max(judgement.rules.values(), default=Outcome.SKIP)
        for index, judgement in enumerate(judgements)
    }
    return sorted(sorted(worst, key=lambda index: (-worst[index], index))[:room])


def _part(run: Run, name: str, anchor: str, shown: Mapping[int, Answer]) -> _Part:
    return _Part(
        summary=summary(run, name, anchor),
        streams=tuple(answer for answer in shown.values() if answer.streamed),
        others=tuple(answer for answer in shown.values() if not answer.streamed),
        left_out=len(run.exchanges) - len(shown),
    )


# --- templates ------------------------------------------------------------------------------------


@cache
def _page() -> Template:
    environment = Environment(
        loader=PackageLoader("cheapgpu.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        signs=_SIGNS, proves=_PROVES, outcomes=Outcome, number=number, standard=_standard
    )
    environment.tests["byte_row"] = lambda row: isinstance(row, ByteRow)
    environment.tests["event_row"] = lambda row: isinstance(row, EventRow)
    return environment.get_template("page.html.j2")


@cache
def _css() -> Markup:
    text = files("cheapgpu.report.page").joinpath("page.css").read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 -- the project's own file


def _finalize(value: object) -> object:
    """Everything that a template writes goes through here, before it is escaped."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _standard(citation: str) -> str:
    """The address of the standard that a citation names; "" for the profile, and for ourselves."""
    return next((url for name, url in _STANDARDS.items() if citation.startswith(name)), "")
