"""The file of a recording, as it is written."""

import resource
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cheapgpu.check.cases import STREAM_SHORT
from cheapgpu.check.events import CaseStarted, Event, RunFinished, RunStarted, Sent
from cheapgpu.check.recording_file import RecordingFile, RecordingFileError, unused_name
from cheapgpu.core.errors import RecordingError
from cheapgpu.core.exchange import Closed, Head, Read, Request
from cheapgpu.core.recording import Recording, read_recording
from cheapgpu.core.verify import report

REQUEST = Request(method="POST", url="http://127.0.0.1/", headers=(), body=b"{}")
FINISHED = RunFinished(
    recording=Recording(tool="t", started="s", target="u", exchanges=()), report=report([])
)
EVENTS: list[Event] = [
    RunStarted(tool="cheapgpu 0", started="2026-11-30T00:00:00Z", target="http://x/", cases=()),
    CaseStarted(case=STREAM_SHORT, request=REQUEST, number=1, cases=1),
    Sent(t=0.1),
    Head(t=0.2, status=200, headers=()),
    Read(t=0.3, at=0, data=b"the-secret-key"),
    Closed(t=0.4, how="length"),
]


def test_each_line_is_in_the_file_when_it_happens(tmp_path: Path) -> None:
    """A line can be read from the file as soon as its event was told."""
    path = tmp_path / "run.jsonl"
    with RecordingFile(path, []) as listen:
        for number, event in enumerate(EVENTS, 1):
            listen(event)
            assert path.read_bytes().count(b"\n") == number


def test_file_can_be_judged_once_the_run_has_finished(tmp_path: Path) -> None:
    """Before the end the file is refused; then it reads as what happened, without secrets."""
    path = tmp_path / "run.jsonl"
    with RecordingFile(path, ["the-secret-key"]) as listen:
        for event in EVENTS:
            listen(event)
        with pytest.raises(RecordingError, match="cut short"):
            read_recording(path.read_bytes())
        listen(FINISHED)
    recording = read_recording(path.read_bytes())
    (exchange,) = recording.exchanges
    assert exchange.case == "stream-short"
    assert exchange.body == b"**************"
    assert recording.target == "http://x/"


def test_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    """Where something is, no recording is written."""
    path = tmp_path / "run.jsonl"
    path.write_text("precious")
    with pytest.raises(RecordingFileError, match="never overwritten"):
        RecordingFile(path, [])
    assert path.read_text() == "precious"


def test_place_that_takes_no_file_is_named(tmp_path: Path) -> None:
    """A folder that is not there is told by the path."""
    with pytest.raises(RecordingFileError, match=r"-o: .*gone/run\.jsonl: No such file"):
        RecordingFile(tmp_path / "gone" / "run.jsonl", [])


def test_full_disk_is_told(tmp_path: Path) -> None:
    """A disk that takes no more ends the run with a message that names the file."""
    path = tmp_path / "run.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with RecordingFile(path, []) as listen:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            with pytest.raises(RecordingFileError, match=r"run\.jsonl: File too large; the run"):
                listen(EVENTS[0])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(path.read_bytes()) == 100


def test_name_of_a_recording_tells_when_it_was_made(tmp_path: Path) -> None:
    """Two runs of the same second have two names."""
    now = datetime(2026, 11, 30, 22, 15, 30, tzinfo=UTC)
    first = unused_name(now, tmp_path)
    assert first.name == "run-20261130-221530.jsonl"
    first.touch()
    second = unused_name(now, tmp_path)
    assert second.name == "run-20261130-221530-2.jsonl"
    second.touch()
    assert unused_name(now, tmp_path).name == "run-20261130-221530-3.jsonl"
