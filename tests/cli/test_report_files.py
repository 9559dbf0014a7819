"""Where reports are written: files, standard output, and the summary of a GitHub job."""

import json
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cheapgpu.cli import report_files as module
from cheapgpu.cli import run
from cheapgpu.cli.report_files import report_files, rules_page
from tests.check.servers import HANG, STREAM_HEAD, answering, served
from tests.cli.commands import PROGRAM, cheapgpu, environment
from tests.report.runs import CORPUS

CONFORMS = str(CORPUS / "quirks/q024.jsonl")
FAILS = str(CORPUS / "quirks/q009.jsonl")
OPEN = str(CORPUS / "quirks/q133.jsonl")
FILES = {
    "--html": "report.html",
    "--junit": "junit.xml",
    "--sarif": "report.sarif",
    "--json-file": "report.json",
    "--md": "report.md",
    "--badge": "badge.json",
}
OPTIONS = [part for pair in FILES.items() for part in pair]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test writes into a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for path in (CONFORMS, FAILS, OPEN):
        (tmp_path / Path(path).name).write_bytes((ROOT / path).read_bytes())


ROOT = Path.cwd()


@pytest.mark.parametrize(
    ("name", "code"), [("q024.jsonl", 0), ("q009.jsonl", 1), ("q133.jsonl", 3)]
)
def test_verify_writes_every_report_whatever_the_verdict(
    name: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command is enough for CI: all files are there, and the exit code is the verdict's."""
    assert run(["verify", name, *OPTIONS]) == code
    assert "rules looked at" in capsys.readouterr().out
    assert Path("report.html").read_text().startswith("<!")
    assert ET.parse("junit.xml").getroot().tag == "testsuites"  # noqa: S314 -- our own output
    assert json.loads(Path("report.sarif").read_bytes())["version"] == "2.1.0"
    assert json.loads(Path("report.json").read_bytes())["source"] == name
    assert Path("report.md").read_text().startswith("### ")
    assert json.loads(Path("badge.json").read_bytes())["label"] == "openai-chat-text"


def test_the_json_file_is_the_document_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Byte for byte, of several runs too; and --json stays what is printed."""
    run(["verify", "q009.jsonl", "q024.jsonl", "--json", "--json-file", "a.json"])
    assert Path("a.json").read_text() == capsys.readouterr().out


@pytest.mark.parametrize("command", ["verify", "report"])
def test_a_dash_is_standard_output(command: str) -> None:
    """The report that was asked for is all that is printed, in UTF-8 wherever it goes."""
    done = cheapgpu(command, "q009.jsonl", "--md", "-", changes={"PYTHONIOENCODING": "ascii"})
    assert done.stdout.decode().startswith("### ❌ DOES NOT CONFORM")
    assert "rules looked at\n" in done.stdout.decode()
    assert done.stderr == b""
    assert done.returncode == (1 if command == "verify" else 0)


def test_a_reader_who_leaves_early_changes_nothing() -> None:
    """`cheapgpu report … --sarif - | head` ends in silence."""
    with subprocess.Popen(
        [*PROGRAM, "report", "q009.jsonl", "--sarif", "-"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--junit", "-", "--md", "-"], "--md: - is the file of --junit, too"),
        (["--junit", "a", "--md", "./a"], "--md: ./a is the file of --junit, too"),
        (["--md", "q009.jsonl"], "--md: q009.jsonl is the recording q009.jsonl, too"),
        (["--html", "gone/a.html"], "there is no directory gone; make it first"),
        (["--html", "."], "--html: . is no file"),
        (["--html", ""], "--html: nothing is no file"),
        (["--json", "--md", "-"], "--json and --md - would both be printed"),
        (["--known", "gone.toml"], "--known: gone.toml: No such file"),
        (["--known", "."], "--known: .: Is a directory"),
        (["--known", "latin.toml"], "--known: latin.toml is not UTF-8"),
        (["--known", "long.toml"], "--known: long.toml is over 1 MiB"),
        (["--known", "bad.toml"], "--known: bad.toml: entry 1: id: no rule matches 'no/such'"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_judged(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, the option's name, and no file is touched."""
    Path("latin.toml").write_bytes(b"\xff")
    Path("long.toml").write_bytes(b"#" * ((1 << 20) + 1))
    Path("bad.toml").write_text('[[known]]\nid = "no/such"\nbecause = "x"\n')
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert run(["verify", "q009.jsonl", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_a_report_that_cannot_be_written_is_told_and_the_others_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The verdict is on the terminal, the exit code says that something is missing."""
    if sys.platform != "linux":
        pytest.skip("the device that is always full is Linux's")
    assert run(["verify", "q024.jsonl", "--junit", "/dev/full", "--md", "a.md"]) == 2
    captured = capsys.readouterr()
    assert "CONFORMS" in captured.out
    assert "--junit: /dev/full: No space left on device" in captured.err
    assert "the other reports are written" in captured.err
    assert Path("a.md").exists()


@pytest.mark.parametrize("arguments", [["verify"], ["report"], ["report", "--badge", "b.json"]])
def test_a_github_job_gets_its_summary(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appended to what earlier steps wrote, whatever else was asked for."""
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    command, *options = arguments
    run([command, "q009.jsonl", "-q", *options])
    text = Path("summary.md").read_text()
    assert text.startswith("before\n### ❌ DOES NOT CONFORM")
    assert "`stream/json`" in text


def test_a_summary_that_cannot_be_written_changes_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said; an empty variable is none."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "gone/summary.md")
    assert run(["verify", "q024.jsonl", "-q"]) == 0
    assert "GITHUB_STEP_SUMMARY cannot be written: No such file" in capsys.readouterr().err
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "")
    assert run(["verify", "q024.jsonl", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_the_rules_have_an_address_where_the_package_declares_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is the project URL called `Rules`, and else there is none."""

    class Metadata:
        """What a package declares."""

        urls: list[str] | None = None

        def get_all(self, _: str) -> list[str] | None:
            """The project URLs."""
            return self.urls

    found = Metadata()
    monkeypatch.setattr("importlib.metadata.metadata", lambda _: found)
    assert rules_page() == ""
    found.urls = ["Homepage, https://a.example", "Rules, https://a.example/rules"]
    assert rules_page() == "https://a.example/rules"

    def missing(_: str) -> Metadata:
        raise PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.metadata", missing)
    assert rules_page() == ""


def test_formats_have_one_list() -> None:
    """What can be asked for is what can be written."""
    wanted = report_files(html="a", junit="b", sarif="c", json="d", md="e", badge="f")
    assert set(wanted) == set(module._WRITERS)  # noqa: SLF001 -- the table itself


def test_an_interrupted_check_writes_its_reports(tmp_path: Path) -> None:
    """The evidence is kept on every outcome: exit code 130, and what was seen until then."""
    path = tmp_path / "run.jsonl"
    with served(answering(STREAM_HEAD, HANG)) as url:
        process = subprocess.Popen(
            [*PROGRAM, "check", f"{url}/v1", "--model", "m", "-o", str(path), *OPTIONS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=tmp_path,
        )
        end = time.monotonic() + 30
        while not (path.exists() and b'"head"' in path.read_bytes()):
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert all((tmp_path / name).stat().st_size for name in FILES.values())
    assert json.loads((tmp_path / "report.json").read_bytes())["verdict"] == "not established"
