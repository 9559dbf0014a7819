"""`cheapgpu rules` and `cheapgpu explain`."""

import base64
import json

import pytest

from cheapgpu.cli import run
from cheapgpu.core.rules import RULES


def test_all_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a pattern, every rule is there with its sentence and citation."""
    assert run(["rules"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for rule in RULES:
        assert f" {rule.id} {rule.level} {' '.join(rule.sentence.split())}" in text
        assert rule.citation in text


def test_rules_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A program gets the same, in the same order."""
    assert run(["rules", "stream/usage-*", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [rule["id"] for rule in listed] == [
        rule.id for rule in RULES if rule.id.startswith("stream/usage-")
    ]
    assert set(listed[0]) == {"id", "level", "sentence", "why", "citation", "judge"}


def test_a_pattern_without_a_rule_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest ids are named, and the exit code is that of wrong use."""
    assert run(["rules", "straem/json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "did you mean stream/json" in captured.err


def test_a_rule_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Sentence, reason, citation, both examples, and what is found in the bad one."""
    assert run(["explain", "stream/done-last"]) == 0
    text = capsys.readouterr().out
    for part in ("Clients have gone by then.", "profile §", "\ngood\n", "\nbad", "\nwhat breaks\n"):
        assert part in text


def test_a_glob_that_names_one_rule_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern with one match is as good as the id; with several it is refused."""
    assert run(["explain", "stream/done-l*"]) == 0
    assert capsys.readouterr().out.startswith("stream/done-last")
    assert run(["explain", "stream/done-*"]) == 2
    assert "stream/done-present" in capsys.readouterr().err


def test_an_explanation_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    """The examples are whole, as bytes with their times."""
    assert run(["explain", "auth/wrong-refused", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["request"]["credential"] == "wrong"
    assert json.loads(base64.b64decode(page["request"]["body_base64"]))["stream"] is False
    assert base64.b64decode(page["bad"][0]["base64"]).startswith(b"HTTP/1.1 200 OK")
    assert page["findings"][0]["outcome"] == "fail"


def test_ascii_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    """Both commands honour it."""
    assert run(["rules", "--ascii"]) == run(["explain", "accepted/unicode", "--ascii"]) == 0
    assert capsys.readouterr().out.isascii()


def test_a_glob_that_names_several_rules_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """One id is wanted, and one that the glob names is given."""
    assert run(["explain", "auth/*"]) == 2
    assert "rules; give one id, such as auth/" in capsys.readouterr().err
