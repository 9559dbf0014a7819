"""`cheapgpu report`: recordings, old ones too, in the formats that people and servers read."""

import json
from pathlib import Path

import pytest

from cheapgpu.cli import run
from tests.report.runs import CORPUS

CONFORMS = str(CORPUS / "quirks/q024.jsonl")
FAILS = str(CORPUS / "quirks/q009.jsonl")
KNOWN = '[[known]]\nid = "stream/json"\nbecause = "the proxy cuts events"\n'


def test_without_a_format_the_terminal_s_report_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For each run; the exit code is no verdict."""
    assert run(["report", FAILS, CONFORMS]) == 0
    text = capsys.readouterr().out
    assert "✗ stream/json" in text
    assert text.count("rules looked at") == 2
    assert run(["report", "-q", FAILS, CONFORMS]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_format_takes_the_place_of_the_terminal_s_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed but what was asked for with -."""
    assert run(["report", FAILS, "--junit", str(tmp_path / "a.xml")]) == 0
    assert capsys.readouterr().out == ""
    assert run(["report", FAILS, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "does not conform"


def test_several_runs_stand_in_one_report(tmp_path: Path) -> None:
    """Side by side: a suite of each area for each, a run of the log for each."""
    junit, sarif = tmp_path / "a.xml", tmp_path / "a.sarif"
    run(["report", FAILS, CONFORMS, "--junit", str(junit), "--sarif", str(sarif)])
    text = junit.read_text()
    assert f"stream · {FAILS}" in text
    assert f"stream · {CONFORMS}" in text
    assert len(json.loads(sarif.read_bytes())["runs"]) == 2


def test_every_recording_of_the_corpus_can_be_shown(tmp_path: Path) -> None:
    """Old recordings, of other tools, cut short or without an answer: all formats take them."""
    files = sorted(str(path) for path in CORPUS.rglob("*.jsonl"))
    options = [
        part
        for name in ("html", "junit", "sarif", "json", "md", "badge")
        for part in (f"--{name}", str(tmp_path / name))
    ]
    assert run(["report", *files, *options]) == 0
    assert all((tmp_path / name.removeprefix("--")).stat().st_size for name in options[::2])


def test_selection_and_known_failures_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report says the same as `verify` with the same options."""
    known = tmp_path / "known.toml"
    known.write_text(KNOWN)
    run(["report", FAILS, "--known", str(known), "--json", "-"])
    shown = json.loads(capsys.readouterr().out)
    assert (shown["verdict"], shown["standing"]) == ("does not conform", "conforms")
    run(["report", FAILS, "--only", "auth/*", "--strict", "--json", "-"])
    shown = json.loads(capsys.readouterr().out)
    assert (shown["verdict"], shown["strict"]) == ("not established", True)


def test_a_file_that_cannot_be_used_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is shown of the others."""
    assert run(["report", FAILS, "/missing.jsonl"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "cheapgpu report: /missing.jsonl: no such file" in captured.err
