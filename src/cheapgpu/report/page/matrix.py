"""The matrix: rules down, and across the cases of one endpoint, or several endpoints.

Where there are many cases, each area has a table of its own, with the cases that looked at it;
where even those are too many for columns, a rule names its cases instead.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cheapgpu.core.findings import Judgement, Outcome
from cheapgpu.core.rules import AREAS, RULES, Rule
from cheapgpu.report.page.answer import Answer
from cheapgpu.report.page.rule_section import Shown
from cheapgpu.report.page.safe_text import cut
from cheapgpu.report.run import Run

#: Letters of a name that stands above a column.
_NAME: Final = 26
#: Columns that all areas may share, and that one area may have.
_SHARED: Final = 24
_COLUMNS: Final = 40
#: Cases that a rule names where they have no column: any that are not as they should be come first.
_NAMED: Final = 12
_SCHEME: Final = re.compile(r"^https?://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What looking gave, and where the evidence is; "" where the page does not show it."""

    outcome: Outcome
    #: The name of the case or endpoint.
    name: str
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A rule with a cell for each column; None where nothing was looked at."""

    rule: Rule
    outcome: Outcome
    #: Where its own section is; "" for a rule that has none.
    anchor: str
    cells: tuple[Cell | None, ...]

    @property
    def spanned(self) -> Iterator[Cell | int]:
        """The cells, and how many are empty between them: one cell spans those."""
        for empty, group in itertools.groupby(self.cells, lambda cell: cell is None):
            cells = list(group)
            yield from [len(cells)] if empty else [cell for cell in cells if cell]

    @property
    def looked_at(self) -> list[Cell]:
        """The cases in which it was looked at, the worst first."""
        cells = [cell for cell in self.cells if cell and cell.outcome is not Outcome.SKIP]
        return sorted(cells, key=lambda cell: -cell.outcome)

    @property
    def named(self) -> list[Cell]:
        """As many of those as are named."""
        return self.looked_at[:_NAMED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The rules of an area that were looked at, and how many were not."""

    name: str
    about: str
    rows: tuple[Row, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Areas that share columns; without any, each rule names its cases."""

    #: A name, and the anchor of what it names.
    columns: tuple[tuple[str, str], ...]
    areas: tuple[Area, ...]

    @property
    def longest(self) -> int:
        """The letters of the longest name above a column, as far as there is room for them."""
        return min(max((len(name) for name, _ in self.columns), default=0), _NAME)


def case_matrix(run: Run, shown: Mapping[int, Answer]) -> list[Table]:
    """Return the matrix of one endpoint: a column for each exchange, as far as they fit."""
    judgements = run.report.judgements
    columns = tuple(
        (cut(judgement.case, 40), shown[index].anchor if index in shown else "")
        for index, judgement in enumerate(judgements)
    )
    rows = [
        Row(
            rule=rule,
            outcome=run.report.rules[rule.id],
            anchor=rule.id if run.report.rules[rule.id] > Outcome.PASS else "",
            cells=tuple(
                _case_cell(judgement, rule.id, shown.get(index))
                for index, judgement in enumerate(judgements)
            ),
        )
        for rule in RULES
    ]
    areas = _areas(rows)
    if len(columns) <= _SHARED:
        return [Table(columns=columns, areas=areas)]
    return [_table(area, columns) for area in areas]


def run_matrix(runs: Sequence[Run], names: Sequence[str], shown: Shown) -> list[Table]:
    """Return the matrix of several endpoints: a column for each."""

    def cell(index: int, run: Run, rule: Rule) -> Cell | None:
        outcome = run.report.rules[rule.id]
        if outcome is Outcome.SKIP:
            return None
        first = next(
            (
                shown[index][position].anchor
                for position, judgement in enumerate(run.report.judgements)
                if judgement.rules.get(rule.id) is outcome and position in shown[index]
            ),
            "",
        )
        anchor = f"{rule.id}@{index + 1}" if outcome > Outcome.PASS else first
        return Cell(outcome=outcome, name=names[index], anchor=anchor)

    rows = []
    for rule in RULES:
        worst = max(run.report.rules[rule.id] for run in runs)
        rows.append(
            Row(
                rule=rule,
                outcome=worst,
                anchor=rule.id if worst > Outcome.PASS else "",
                cells=tuple(cell(index, run, rule) for index, run in enumerate(runs)),
            )
        )
    columns = tuple((_short(name), f"r{index}") for index, name in enumerate(names, 1))
    return [Table(columns=columns, areas=_areas(rows))]


def _table(area: Area, columns: Sequence[tuple[str, str]]) -> Table:
    """One area with the columns in which any of its rules was looked at, if they fit."""
    kept = [
        index
        for index in range(len(columns))
        if any((cell := row.cells[index]) and cell.outcome is not Outcome.SKIP for row in area.rows)
    ]
    if len(kept) > _COLUMNS:
        return Table(columns=(), areas=(area,))
    rows = tuple(
        Row(
            rule=row.rule,
            outcome=row.outcome,
            anchor=row.anchor,
            cells=tuple(row.cells[index] for index in kept),
        )
        for row in area.rows
    )
    narrow = Area(name=area.name, about=area.about, rows=rows, left_out=area.left_out)
    return Table(columns=tuple(columns[index] for index in kept), areas=(narrow,))


def _short(name: str) -> str:
    """A name that stands above a column: an address without what all of them have."""
    return cut(_SCHEME.sub("", name).removesuffix("/v1/chat/completions"), 40)


def _case_cell(judgement: Judgement, rule: str, answer: Answer | None) -> Cell | None:
    """The outcome of a rule in one exchange, and the event or the section that shows it."""
    outcome = judgement.rules.get(rule)
    name = cut(judgement.case, 40)
    if outcome is None:
        skipped = rule in judgement.skipped
        return Cell(outcome=Outcome.SKIP, name=name) if skipped else None
    if answer is None:
        return Cell(outcome=outcome, name=name)
    events = (f.event for f in judgement.findings if f.rule == rule and f.outcome is outcome)
    anchor = answer.event_anchor(next(events, None)) or answer.anchor
    return Cell(outcome=outcome, name=name, anchor=anchor)


def _areas(rows: Sequence[Row]) -> tuple[Area, ...]:
    areas: list[Area] = []
    for name, about in AREAS.items():
        own = [row for row in rows if row.rule.area == name]
        kept = tuple(row for row in own if row.outcome is not Outcome.SKIP)
        areas.append(Area(name=name, about=about, rows=kept, left_out=len(own) - len(kept)))
    return tuple(areas)
