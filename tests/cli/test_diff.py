"""`cheapgpu diff`: what changed, and its exit codes."""

import json

import pytest

from cheapgpu.cli import run
from tests.report.runs import CORPUS

CONFORMS = str(CORPUS / "quirks/q024.jsonl")
FAILS = str(CORPUS / "quirks/q009.jsonl")
OPEN = str(CORPUS / "quirks/q133.jsonl")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (CONFORMS, CONFORMS, 0),
        (FAILS, FAILS, 0),
        (FAILS, CONFORMS, 0),
        (OPEN, CONFORMS, 0),
        (CONFORMS, FAILS, 1),
        (OPEN, FAILS, 1),
        (CONFORMS, OPEN, 3),
        (CONFORMS, "/missing.jsonl", 2),
    ],
)
def test_the_exit_code_says_whether_it_got_worse(old: str, new: str, code: int) -> None:
    """0 no worse, 1 something fails that did not, 3 something cannot be told any more."""
    assert run(["diff", old, new, "-q"]) == code


def test_the_report_names_rules_and_exchanges(capsys: pytest.CaptureFixture[str]) -> None:
    """And its last line is all that -q prints."""
    run(["diff", CONFORMS, FAILS])
    lines = capsys.readouterr().out.splitlines()
    assert "broken: fails now" in lines
    assert "  stream/json MUST pass -> fail" in lines
    run(["diff", CONFORMS, FAILS, "-q"])
    assert capsys.readouterr().out.splitlines() == lines[-1:]


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """For programs."""
    assert run(["diff", CONFORMS, FAILS, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["result"] == "worse"
    assert "stream/json" in [one["id"] for one in found["rules"] if one["change"] == "broken"]


def test_what_is_not_selected_does_not_differ(capsys: pytest.CaptureFixture[str]) -> None:
    """In either run."""
    assert run(["diff", CONFORMS, FAILS, "--skip", "stream/json", "--json"]) in (0, 3)
    found = json.loads(capsys.readouterr().out)
    assert "stream/json" not in [one["id"] for one in found["rules"]]


def test_standard_input_may_be_one_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    """Not both."""
    assert run(["diff", "-", "-"]) == 2
    assert "name - once" in capsys.readouterr().err
