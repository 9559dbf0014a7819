"""Several runs next to each other on the terminal: a column for each, a row for each area.

The HTML report has the same as a matrix of rules; this is its gist for a terminal.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from cheapgpu.core.findings import Outcome, Verdict
from cheapgpu.core.rules import AREAS
from cheapgpu.report.run import Run
from cheapgpu.report.style import Colour, Style, columns

_ORDER: Final = (Outcome.PASS, Outcome.FAIL, Outcome.ERROR, Outcome.UNKNOWN, Outcome.ADVICE)
_COLOURS: Final[dict[Verdict, Colour]] = {
    "conforms": "cyan",
    "does not conform": "red",
    "not established": "yellow",
}
_GAP: Final = "   "
_INDENT: Final = "  "


def side_by_side(runs: Sequence[tuple[str, Run]], style: Style) -> str:
    """Return a table of titled runs as text that ends with a line end.

    Counts are of rules; a rule that was not looked at is counted nowhere.
    """
    titles = [style.text(title) for title, _ in runs]
    rows = [["", *titles]]
    for area in AREAS:
        cells = [style.text(_cell(run, area)) for _, run in runs]
        if any(cells):
            rows.append([area, *cells])
    widths = [max(columns(row[n]) for row in rows) for n in range(len(runs) + 1)]
    verdicts = [run.report.verdict for _, run in runs]
    widths[1:] = [max(w, columns(v)) for w, v in zip(widths[1:], verdicts, strict=True)]
    lines = [_line(row, widths) for row in rows]
    shown = [
        style.paint(verdict.upper(), _COLOURS[verdict]) + " " * (width - len(verdict))
        for verdict, width in zip(verdicts, widths[1:], strict=True)
    ]
    lines += ["", (_INDENT + _GAP.join([" " * widths[0], *shown])).rstrip()]
    return "\n".join(lines) + "\n"


def _cell(run: Run, area: str) -> str:
    """How the rules of an area came out, in words; "" where none was looked at."""
    counts = Counter(
        outcome for rule, outcome in run.report.rules.items() if rule.startswith(f"{area}/")
    )
    return " · ".join(f"{counts[one]} {one.word}" for one in _ORDER if counts[one])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (c + " " * (w - columns(c)) for c, w in zip(cells, widths, strict=True))
    return (_INDENT + _GAP.join(padded)).rstrip()
