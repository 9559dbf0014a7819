"""`cheapgpu verify`: from files and pipes to reports and exit codes."""

import json
import subprocess
from pathlib import Path

import pytest

from cheapgpu.cli import run
from cheapgpu.core.examples import STREAM, WHOLE
from cheapgpu.core.exchange import Exchange
from cheapgpu.core.recording import Recorder
from tests.cli.commands import PROGRAM, cheapgpu, environment
from tests.cli.test_har import entry, har
from tests.report.runs import CORPUS, example

QUIRKS = CORPUS / "quirks"
CONFORMS = str(QUIRKS / "q024.jsonl")
FAILS = str(QUIRKS / "q009.jsonl")
OPEN = str(QUIRKS / "q133.jsonl")


def recording_of(*exchanges: Exchange) -> bytes:
    """A recording that holds these exchanges."""
    recorder = Recorder()
    begin = recorder.begin(tool="test", started="2026-11-30T12:00:00Z", target="https://x.example/")
    lines = [begin, *(recorder.exchange(exchange) for exchange in exchanges), recorder.end()]
    return b"".join(lines)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ([CONFORMS], 0),
        ([FAILS], 1),
        ([OPEN], 3),
        ([CONFORMS, OPEN], 3),
        ([OPEN, FAILS, CONFORMS], 1),
    ],
)
def test_the_exit_code_is_the_worst_verdict(files: list[str], code: int) -> None:
    """Each file is judged by itself, and all are reported."""
    done = cheapgpu("verify", *files)
    assert done.returncode == code
    assert done.stderr == b""
    assert done.stdout.count(b"openai-chat-text-v1-draft.1") == len(files)


def test_one_file_that_cannot_be_used_stops_all(tmp_path: Path) -> None:
    """Nothing is judged, every problem is named, and the exit code is 2."""
    empty = tmp_path / "empty.sse"
    empty.write_bytes(b"")
    done = cheapgpu("verify", CONFORMS, str(tmp_path / "missing.jsonl"), str(empty))
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"missing.jsonl: no such file" in done.stderr
    assert b"empty.sse: nothing is in it" in done.stderr


@pytest.mark.parametrize(
    ("data", "about", "code"),
    [
        (STREAM.partition(b"\r\n\r\n")[2], b"a body alone", 0),
        (WHOLE.partition(b"\r\n\r\n")[2], b"a body alone", 0),
        (STREAM, b"an answer with its head", 0),
        (Path(FAILS).read_bytes(), b"recorded 2026-11-30", 1),
        (har(entry()), b"a HAR", 0),
    ],
)
def test_standard_input_may_be_anything(data: bytes, about: bytes, code: int) -> None:
    """What came through the pipe is told by its first bytes."""
    done = cheapgpu("verify", "-", stdin=data)
    assert done.returncode == code
    assert about in done.stdout
    assert b"standard input" in done.stdout


def test_standard_input_is_read_once() -> None:
    """Naming it twice is wrong use, and so is an empty pipe."""
    done = cheapgpu("verify", "-", "-", stdin=b"data: 1\n\n")
    assert done.returncode == 2
    assert b"standard input can be read once only" in done.stderr
    empty = cheapgpu("verify", "-", stdin=b"")
    assert empty.returncode == 2
    assert b"standard input: nothing is in it" in empty.stderr


def test_only_and_skip_decide_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """What is left out is neither shown nor decides; what is left holds."""
    assert run(["verify", FAILS, "--only", "stream/json"]) == 1
    assert "✗ stream/json" in capsys.readouterr().out
    run(["verify", FAILS, "--skip", "stream/json"])
    text = capsys.readouterr().out
    assert "✗" not in text
    assert "DOES NOT CONFORM" not in text


def test_an_unknown_rule_is_refused_before_anything_is_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A selection that matches nothing is wrong use, with the nearest ids."""
    assert run(["verify", "/missing", "--only", "stream/jso"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "did you mean stream/json" in captured.err


def test_json_is_one_document_for_each_file(capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict, the rules and where each file's came from."""
    assert run(["verify", FAILS, CONFORMS, "--json"]) == 1
    text = capsys.readouterr().out
    decoder = json.JSONDecoder()
    first, at = decoder.raw_decode(text)
    second, _ = decoder.raw_decode(text[at:].lstrip())
    assert first["verdict"] == "does not conform"
    assert first["source"] == FAILS
    assert first["exchanges"][0]["broken"] == ["stream/json"]
    assert second["verdict"] == "conforms"


def test_json_holds_the_selection_only(capsys: pytest.CaptureFixture[str]) -> None:
    """A rule that was not selected is skipped, with that as its reason, and broke nothing."""
    run(["verify", FAILS, "--skip", "stream/json", "--json"])
    found = json.loads(capsys.readouterr().out)
    rule = next(rule for rule in found["rules"] if rule["id"] == "stream/json")
    assert rule["outcome"] == "skip"
    assert rule["reason"] == "not selected"
    assert rule["findings"] == []
    assert found["exchanges"][0]["broken"] == []


def test_quiet_is_one_line_for_each_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Verdict and file, however narrow the terminal."""
    run(["verify", "-q", CONFORMS, FAILS])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"CONFORMS · {CONFORMS} · ")
    assert lines[1].startswith(f"DOES NOT CONFORM · {FAILS} · ")
    assert len(lines) == 2


def test_verbose_shows_what_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """Passes, skips with their reasons, and measurements."""
    run(["verify", "-v", CONFORMS])
    text = capsys.readouterr().out
    assert "pass  stream/status" in text
    assert "skip  no exchange called for it:" in text
    assert "first content ms" in text
    assert "verify -v" not in text


def test_a_command_of_the_report_can_be_pasted(tmp_path: Path) -> None:
    """A file's name is quoted as the shell needs it."""
    path = tmp_path / "a b's.jsonl"
    path.write_bytes(Path(FAILS).read_bytes())
    text = cheapgpu("verify", str(path)).stdout.decode()
    (line,) = [line for line in text.splitlines() if line.startswith("  cheapgpu verify -v ")]
    assert f"'{tmp_path}/a b'\"'\"'s.jsonl'" in line


@pytest.mark.parametrize(
    ("arguments", "changes", "coloured"),
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {}, False),
    ],
)
def test_colour_is_for_terminals_or_on_demand(
    arguments: list[str], changes: dict[str, str], *, coloured: bool
) -> None:
    """A pipe gets none unless it is asked for."""
    done = cheapgpu("verify", FAILS, *arguments, changes=changes)
    assert (b"\x1b[" in done.stdout) is coloured


@pytest.mark.parametrize(
    ("arguments", "changes"), [(["--ascii"], {}), ([], {"PYTHONIOENCODING": "ascii"})]
)
def test_ascii_on_demand_or_where_nothing_else_can_be_written(
    arguments: list[str], changes: dict[str, str]
) -> None:
    """A report is written in what its reader can take."""
    done = cheapgpu("verify", FAILS, *arguments, changes=changes)
    assert done.returncode == 1
    assert done.stdout.isascii()
    assert b"x stream/json" in done.stdout


def test_a_reader_who_leaves_early_changes_no_verdict() -> None:
    """`cheapgpu verify … | head` still ends with the verdict's exit code, in silence."""
    with subprocess.Popen(
        [*PROGRAM, "verify", FAILS],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_no_file_of_the_corpus_makes_it_stumble() -> None:
    """All recordings in one command: each has its verdict."""
    files = sorted(str(path) for path in CORPUS.rglob("*.jsonl"))
    done = cheapgpu("verify", "-q", *files)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == len(files)
    assert done.stderr == b""


KNOWN = '[[known]]\nid = "stream/json"\nbecause = "the proxy cuts events"\n'


@pytest.mark.parametrize(
    ("file", "known", "code"),
    [
        (FAILS, KNOWN, 0),
        (FAILS, KNOWN + "until = 9999-12-31\n", 0),
        (FAILS, KNOWN + "until = 2020-01-01\n", 1),
        (CONFORMS, KNOWN, 1),
        (OPEN, KNOWN.replace("stream/json", "whole/json"), 3),
        (FAILS, KNOWN.replace("stream/json", "whole/json"), 1),
        (FAILS, KNOWN.replace("json", "jsno"), 2),
    ],
)
def test_known_failures_decide_the_exit_code(
    file: str, known: str, code: int, tmp_path: Path
) -> None:
    """Accepted while they fail and their date is not over; one that passes fails the run."""
    path = tmp_path / "known.toml"
    path.write_text(known)
    assert run(["verify", file, "--known", str(path)]) == code


def test_strict_lets_advice_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict stays, and the report says why the exit code does not follow it."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(recording_of(example("stream/closes-after-done")))
    assert run(["verify", str(path)]) == 0
    assert "for the exit code" not in capsys.readouterr().out
    assert run(["verify", str(path), "--strict"]) == 1
    text = capsys.readouterr().out
    assert "CONFORMS · " in text
    assert "advice counts, as asked: stream/closes-after-done" in text
