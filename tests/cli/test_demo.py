"""The demo: a real engine, judged, and gone afterwards."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cheapgpu.cli import run
from cheapgpu.core.findings import Outcome
from cheapgpu.core.recording import read_recording
from cheapgpu.core.verify import verify

MAIN = [sys.executable, "-c", "from cheapgpu.cli import main; main()", "demo", "--tiny"]


def engines_of(parent: int) -> list[int]:
    """The processes that a process started and that are still there."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in children.read_text().split()] if children.exists() else []


def test_the_demo_judges_a_real_engine_and_the_endpoint_before_it(tmp_path: Path) -> None:
    """Both are asked, the engine's faults are shown with their bytes, both recordings are whole."""
    shown = subprocess.run(
        [*MAIN, "-o", "run.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert "starting llama.cpp with tiny-random" in shown.stderr
    assert "DOES NOT CONFORM" in shown.stdout
    for rule in ("stream/chunk-schema", "refuse/unknown-field", "error/schema"):
        assert rule in shown.stdout
    names = ["run-endpoint.jsonl", "run.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert "cheapgpu report run.jsonl run-endpoint.jsonl --html demo.html" in shown.stdout
    broken = []
    for name in names:
        recording = read_recording((tmp_path / name).read_bytes())
        assert {"stream-short", "whole-short", "no-key"} <= {e.case for e in recording.exchanges}
        report = verify(recording.exchanges)
        broken.append([r for r, outcome in report.rules.items() if outcome is Outcome.FAIL])
    assert broken[0] == []
    assert len(broken[1]) > 50
    again = subprocess.run(
        [*MAIN, "-o", "run.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert again.returncode == 2
    assert "exists already" in again.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="children are read from /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """However it is ended, the engine is gone, and what was recorded can be read."""
    demo = subprocess.Popen(
        [*MAIN, "-o", "run.jsonl"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stderr is not None
    with demo, demo.stderr as lines:
        line = next(line for line in lines if "it is ready" in line)
        engines = engines_of(demo.pid)
        demo.send_signal(number)
        lines.read()
    assert engines, line
    assert demo.returncode == 130
    read_recording((tmp_path / "run.jsonl").read_bytes())
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in engines) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in engines if Path(f"/proc/{pid}").exists()]


def test_a_model_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is missing or no GGUF is wrong use, told in one line, and records nothing."""
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--gguf", "nothing.gguf"]) == 2
    assert "nothing.gguf" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
