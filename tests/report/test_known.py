"""Known failures: what a list may hold, and what each mistake is told."""

from datetime import date

import pytest

from cheapgpu.core.rules import RULES
from cheapgpu.report.known import KnownFailure, KnownFailureError, read_known

TODAY = date(2026, 11, 30)
ENTRY = '[[known]]\nid = "stream/usage-alone"\nbecause = "mended in the next release"\n'


def test_an_entry_has_a_rule_a_reason_and_perhaps_a_date() -> None:
    """The date is the last day on which the entry holds."""
    text = ENTRY + "until = 2026-11-30\n\n" + ENTRY.replace("alone", "once")
    assert read_known(text, today=TODAY) == (
        KnownFailure(id="stream/usage-alone", because="mended in the next release", until=TODAY),
        KnownFailure(id="stream/usage-once", because="mended in the next release"),
    )


@pytest.mark.parametrize(
    ("until", "expired"), [("2026-11-29", True), ("2026-11-30", False), ("2026-12-01", False)]
)
def test_a_date_holds_for_its_whole_day(until: str, *, expired: bool) -> None:
    """An entry is expired from the day after its date."""
    (entry,) = read_known(f"{ENTRY}until = {until}\n", today=TODAY)
    assert entry.expired is expired
    assert entry.reason == f"mended in the next release (until {until})"


def test_a_reason_is_one_line() -> None:
    """Line ends in a reason would break tables."""
    text = '[[known]]\nid = "stream/json"\nbecause = """\n  two\n  lines\n"""\n'
    assert read_known(text, today=TODAY)[0].because == "two lines"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no entry; write"),
        ("known = []", "no entry; write"),
        ("known = 1", "no entry; write"),
        ("[known]\nid = 1", "no entry; write"),
        ("[[know]]\n", "'know' is not known here"),
        ("[[known]\n", "not TOML: "),
        ("a = " + "[" * 5000 + "]" * 5000, "not TOML: "),
        ("known = [1]", "entry 1: not a table"),
        (ENTRY + 'untill = "x"', "entry 1: 'untill' is none of id, because, until"),
        ('[[known]]\nbecause = "x"', "entry 1: id: must be the id of a rule"),
        (ENTRY.replace("alone", "alon"), "did you mean stream/usage-alone"),
        (ENTRY.replace("usage-alone", "*"), "'stream/*' is a pattern; name each rule"),
        (ENTRY + ENTRY, "entry 2: stream/usage-alone is listed twice"),
        ('[[known]]\nid = "stream/json"', "entry 1: because: is missing"),
        ('[[known]]\nid = "stream/json"\nbecause = " "', "entry 1: because: is missing"),
        ('[[known]]\nid = "stream/json"\nbecause = 1', "entry 1: because: is missing"),
        (f'[[known]]\nid = "stream/json"\nbecause = "{"x" * 501}"', "501 characters; 500 must do"),
        (ENTRY + 'until = "2026-12-01"', "entry 1: until: must be a date without quotes"),
        (ENTRY + "until = 2026-12-01T00:00:00Z", "entry 1: until: must be a date"),
        (ENTRY + "until = 12:00:00", "entry 1: until: must be a date"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    """The message names the entry, the member and the remedy."""
    with pytest.raises(KnownFailureError) as caught:
        read_known(text, today=TODAY)
    assert message in str(caught.value)


def test_a_retired_rule_names_its_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is older than a rule's new name is told the name."""
    monkeypatch.setitem(
        __import__("cheapgpu.core.rules", fromlist=["RETIRED"]).RETIRED, "stream/old", RULES[0].id
    )
    with pytest.raises(KnownFailureError, match=f"retired; {RULES[0].id} took its place"):
        read_known(ENTRY.replace("stream/usage-alone", "stream/old"), today=TODAY)
