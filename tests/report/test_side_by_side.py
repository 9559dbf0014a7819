"""Several runs next to each other on the terminal."""

from cheapgpu.report.side_by_side import side_by_side
from cheapgpu.report.style import Style
from tests.report.known_runs import advised_run, known_run

SHOWN = """\
            before             after
  stream    24 pass - 1 fail   24 pass - 1 advice
  honesty   3 pass             3 pass

            DOES NOT CONFORM   CONFORMS
"""


def test_runs_have_a_column_each_and_areas_a_row() -> None:
    """Titles, counts of what was looked at, and the verdicts stand under each other."""
    runs = [("before", known_run()), ("after", advised_run())]
    assert side_by_side(runs, Style(ascii=True)) == SHOWN


def test_what_strangers_named_is_made_safe() -> None:
    """A title with control characters cannot change the terminal."""
    assert "\x1b" not in side_by_side([("\x1b[31mred", known_run())], Style())
