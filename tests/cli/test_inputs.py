"""Files to exchanges."""

from pathlib import Path

import pytest

from cheapgpu.cli import inputs
from cheapgpu.cli.inputs import InputError, read_input
from cheapgpu.core.examples import STREAM, WHOLE
from tests.cli.test_har import entry, har
from tests.report.runs import CORPUS

RECORDING = CORPUS / "quirks" / "q024.jsonl"


def written(folder: Path, name: str, data: bytes) -> str:
    """A file of these bytes; its path."""
    path = folder / name
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize(
    ("name", "data", "about"),
    [
        ("run.jsonl", RECORDING.read_bytes(), "recorded 2026-11-30T00:00:00Z by corpus"),
        ("run.txt", RECORDING.read_bytes(), "recorded 2026-11-30T00:00:00Z by corpus"),
        ("page.har", har(entry()), "a HAR: no times within the answers"),
        ("page.json", har(entry()), "a HAR: no times within the answers"),
        ("a.sse", b"data: [DONE]\n\n", "a body alone: no head, no times"),
        ("a.json", b'{"id":"x"}', "a body alone: no head, no times"),
        ("a", b"\xef\xbb\xbfdata: 1\n\n", "a body alone: no head, no times"),
        ("a.sse", STREAM, "an answer with its head: no request, no times"),
        ("a.json", WHOLE, "an answer with its head: no request, no times"),
    ],
)
def test_each_kind_of_file_is_known(tmp_path: Path, name: str, data: bytes, about: str) -> None:
    """By its name where that says it, and by its first bytes otherwise."""
    found = read_input(written(tmp_path, name, data))
    assert found.about == about
    assert len(found.exchanges) == 1


def test_a_bare_body_has_neither_head_nor_times(tmp_path: Path) -> None:
    """Nothing is made up for what a file does not hold."""
    (exchange,) = read_input(written(tmp_path, "a.sse", b"data: 1\n\n")).exchanges
    assert exchange.head is None
    assert exchange.request is None
    assert not exchange.timed
    assert exchange.body == b"data: 1\n\n"
    assert exchange.closed.how == "unstated"


def test_a_recording_keeps_its_target_and_time() -> None:
    """What the first line says is known of the run."""
    found = read_input(str(RECORDING))
    assert found.target == "https://endpoint.example/v1/chat/completions"
    assert found.started == "2026-11-30T00:00:00Z"


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.sse", b"", r"a\.sse: nothing is in it"),
        ("a.jsonl", b"{}\n", r"a\.jsonl: line 1: .*record it again"),
        ("a.jsonl", RECORDING.read_bytes()[:2000], r"a\.jsonl: line \d+: .*cut short"),
        ("a.har", b"[]", r"a\.har: not a HAR"),
        ("a.txt", b"HTTP/1.1 200 OK\r\n", r"a\.txt: its head does not end"),
    ],
)
def test_a_file_that_cannot_be_judged_is_refused(
    tmp_path: Path, name: str, data: bytes, problem: str
) -> None:
    """The message names the file, the line and the remedy."""
    with pytest.raises(InputError, match=problem):
        read_input(written(tmp_path, name, data))


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """Missing files and directories have their messages, and so has whatever else fails."""
    with pytest.raises(InputError, match="missing: no such file"):
        read_input(str(tmp_path / "missing"))
    with pytest.raises(InputError, match="a directory; name the files in it"):
        read_input(str(tmp_path))
    with pytest.raises(InputError, match="it cannot be read"):
        read_input("x" * 5000)


def test_a_file_over_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the limit is read of it."""
    monkeypatch.setattr(inputs, "FILE_BYTES", 1 << 20)
    path = written(tmp_path, "a.sse", b"x" * ((1 << 20) + 1))
    with pytest.raises(InputError, match="over 1 MiB"):
        read_input(path)
