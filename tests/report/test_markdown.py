"""Markdown: the tables, and that nothing in them means more than its text."""

import html
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from cheapgpu.core.rules import AREAS, RULES
from cheapgpu.report.markdown import markdown
from tests.report.known_runs import KNOWN, PASSING, known_run
from tests.report.runs import (
    all_runs,
    everything_right,
    everything_wrong,
    example,
    nothing_established,
    run_of,
)
from tests.report.test_terminal import hostile_runs

MARKUP = "<img src=x>|`code`|[link](https://evil.example)~~gone~~*bold*_x_@someone#1&amp;$x$\\"


def test_the_verdict_comes_first_then_the_areas() -> None:
    """A heading with verdict and target, and a row for each area with its counts."""
    lines = markdown([everything_wrong()]).splitlines()
    assert lines[0].startswith("### ❌ DOES NOT CONFORM: ")
    for area in AREAS:
        (row,) = [one for one in lines if one.startswith(f"| {area} ")]
        counts = [int(cell or 0) for cell in re.split(r"\s*\|\s*", row)[2:-1]]
        assert sum(counts) == sum(rule.area == area for rule in RULES)
    assert markdown([everything_right()]).startswith("### ✅ CONFORMS: ")
    assert markdown([nothing_established()]).startswith("### ❔ NOT ESTABLISHED: ")


def test_every_table_is_a_table() -> None:
    """No text breaks a row: each has the columns of its head."""
    for name, run in [*all_runs(), *(("hostile", run) for run in hostile_runs())]:
        columns = 0
        for one in markdown([run]).splitlines():
            if not one.startswith("|"):
                columns = 0
                continue
            cells = len(re.findall(r"(?<!\\)\|", one))
            columns = columns or cells
            assert cells == columns, name


def test_what_strangers_wrote_is_text_only() -> None:
    """A reader of Markdown shows it letter by letter: no markup, no link, no call to someone."""
    run = run_of(replace(example("stream/json"), case=MARKUP))
    text = markdown([replace(run, target=f"https://evil.example/{MARKUP}", source=MARKUP)])
    shown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    tags = set(re.findall(r"<([a-z0-9]+)", shown))
    assert tags == {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert html.unescape(shown).count(MARKUP) >= 3
    assert "https://" not in text
    assert not re.search(r"(?<!\\)@", text)


def test_every_broken_rule_is_named_or_counted() -> None:
    """Rules that are broken alike share a row, and a row names eight of them at most."""
    text = markdown([everything_wrong()])
    assert "`stream/usage-alone`" in text
    refuse = [rule for rule in RULES if rule.area == "refuse"]
    rows = [one for one in text.splitlines() if one.startswith("| `refuse/")]
    assert len(rows) == 2
    assert f" and {len(refuse) - 1 - 8} more |" in rows[0]


def test_known_failures_are_struck_through_with_their_reason() -> None:
    """And outdated ones stand above the table."""
    text = markdown([known_run(KNOWN)])
    (row,) = [one for one in text.splitlines() if one.startswith("| ~~`stream/usage-alone`~~")]
    assert "| fail, known |" in row
    assert row.endswith("known: mended in the next release (until 2026-12-01) |")
    assert "all that fails is known" in text
    assert text.startswith("### ✅ DOES NOT CONFORM")
    assert "- **stream/json**: known failure that passes" in markdown([known_run(PASSING)])


def test_a_summary_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many rows, and how many more there are; several runs are several sections."""
    text = markdown([everything_wrong(), everything_right()])
    assert text.count("### ") == 2
    rows = [one for one in text.splitlines() if re.match(r"\| `", one)]
    assert len(rows) <= 60
    assert len(text) < 20_000
    assert markdown([]) == ""
    monkeypatch.setattr("cheapgpu.report.markdown._ROWS", 10)
    cut = markdown([everything_wrong()])
    assert len([one for one in cut.splitlines() if re.match(r"\| `", one)]) == 10
    assert f"and {len(rows) - 10} more: the other reports have them" in cut
