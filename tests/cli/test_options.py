"""Options to style."""

import io
import sys

import pytest

from cheapgpu.cli.options import OptionError, detail_of, style_of


class Terminal(io.TextIOWrapper):
    """A standard output that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write to a terminal of 72 columns that takes colour."""
    monkeypatch.setattr(sys, "stdout", Terminal(io.BytesIO(), encoding="utf-8"))
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_terminal_has_colour_and_its_own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless told otherwise."""
    on_terminal(monkeypatch)
    style = style_of()
    assert (style.width, style.colour, style.ascii) == (72, True, False)


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR switches colour off; an empty one does not; --color always has its way."""
    on_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "")
    assert style_of().colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not style_of().colour
    assert style_of("always").colour
    assert not style_of("never").colour


def test_a_dumb_terminal_has_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM=dumb cannot show it."""
    on_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    assert not style_of().colour


def test_a_pipe_has_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads a pipe did not ask for codes."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert not style_of().colour
    assert style_of("always").colour


@pytest.mark.parametrize(("columns", "width"), [("10", 40), ("40", 40), ("99", 99), ("300", 100)])
def test_the_width_has_limits(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    """A report is never narrower than 40 columns nor wider than 100."""
    monkeypatch.setenv("COLUMNS", columns)
    assert style_of().width == width


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_an_output_without_our_signs_gets_ascii(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """A terminal that cannot spell the report is not sent what it cannot spell."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert style_of().ascii


def test_much_and_little_exclude_each_other() -> None:
    """-v and -q together are wrong use."""
    assert detail_of(verbose=True, quiet=False) == "full"
    assert detail_of(verbose=False, quiet=True) == "brief"
    assert detail_of(verbose=False, quiet=False) == "usual"
    with pytest.raises(OptionError, match="leave one out"):
        detail_of(verbose=True, quiet=True)
