"""The list of rules, and each rule explained."""

import pytest

from cheapgpu.cli.rules import judged_example
from cheapgpu.core.rules import BY_ID, RULES
from cheapgpu.report.rule_page import rule_list, rule_page
from cheapgpu.report.style import Style, columns


def page(rule: str, style: Style) -> str:
    """One rule explained."""
    known = BY_ID[rule]
    return rule_page(known, judged_example(known, known.bad), style)


@pytest.mark.parametrize("rule", BY_ID)
def test_every_rule_shows_what_breaks(rule: str) -> None:
    """Each page ends with what the rule's own bad example is found to be."""
    text = page(rule, Style())
    assert text.startswith(rule)
    assert BY_ID[rule].why.split()[0] in text
    _, found, what = text.partition("\nwhat breaks\n")
    if not found:
        assert BY_ID[rule].level == "SHOULD"
        _, found, what = text.partition("\nwhat is amiss\n")
    assert "observed" in what


@pytest.mark.parametrize("width", [40, 60, 100])
def test_every_page_keeps_its_width(width: int) -> None:
    """No line is wider than the terminal, in the list and on the pages."""
    style = Style(width=width)
    texts = [rule_list(RULES, style), *(page(rule, style) for rule in BY_ID)]
    lines = [line for text in texts for line in text.splitlines()]
    assert [line for line in lines if columns(line) > width] == []


def test_ascii_pages_are_ascii() -> None:
    """Examples and citations, too."""
    style = Style(ascii=True)
    assert rule_list(RULES, style).isascii()
    assert all(page(rule, style).isascii() for rule in BY_ID)


def test_the_list_has_every_rule_once() -> None:
    """Each rule stands on one line of its area, with its level."""
    lines = rule_list(RULES, Style()).splitlines()
    for rule in RULES:
        (line,) = [line for line in lines if line.startswith(f"    {rule.id} ")]
        assert f" {rule.level} " in line


def test_areas_without_rules_are_left_out() -> None:
    """A selection shows its own areas only."""
    chosen = [rule for rule in RULES if rule.area == "auth"]
    assert "stream:" not in rule_list(chosen, Style())


def test_an_unusual_request_is_shown() -> None:
    """Where the request makes the rule, the page has it, and what its sender knew."""
    text = page("auth/wrong-refused", Style())
    assert '\nrequest with a wrong key\n  {"model"' in text
    assert "declared text/plain" in page("refuse/content-type", Style())
    assert "(no body)" in page("refuse/empty-body", Style())


def test_what_the_bad_example_adds_is_marked() -> None:
    """Lines that the good example does not have begin with a sign, in colour where there is any."""
    text = page("stream/usage-alone", Style(colour=True))
    marked = [line for line in text.splitlines() if line.startswith("\x1b[31m>\x1b[0m ")]
    assert any('"finish_reason":"stop"' in line or '"chatcmpl-1"' in line for line in marked)


def test_long_examples_lose_their_middle() -> None:
    """A stream of eighty words is not printed whole, and when each part came is."""
    text = page("stream/incremental", Style())
    assert "lines left out" in text
    assert "+0.020 s" in text
    assert len(text.splitlines()) < 140
