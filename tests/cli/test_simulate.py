"""`cheapgpu simulate`: lists its gallery, serves an endpoint, and ends when it is told to."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cheapgpu.simulate.faults import FAULTS
from tests.cli.commands import PROGRAM, cheapgpu, environment

KEY = "a-key-of-this-test"


@contextmanager
def simulated(*arguments: str, **changes: str) -> Iterator[subprocess.Popen[str]]:
    """The command while it serves."""
    process = subprocess.Popen(
        [*PROGRAM, "simulate", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(changes),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> dict[str, str]:
    """The first lines that it prints: name to value."""
    assert process.stdout is not None
    lines: dict[str, str] = {}
    for line in process.stdout:
        name, _, value = line.strip().partition(" ")
        lines[name] = value.strip()
        if name == "cheapgpu":
            return lines
    return lines


def test_the_gallery_is_listed() -> None:
    """Every fault with its sentence, and what it breaks; patterns narrow it down."""
    shown = cheapgpu("simulate", "--list").stdout.decode()
    for fault in FAULTS:
        assert f"{fault.name}\n  {fault.sentence}\n" in shown
    some = cheapgpu("simulate", "--list", "stream/usage-*", "timing/stall").stdout.decode()
    assert re.findall(r"^\S+", some, re.MULTILINE) == [
        "stream/usage-present",
        "stream/usage-alone",
        "stream/usage-once",
        "stream/usage-after-terminal",
        "stream/usage-adds-up",
        "stream/usage-within-limit",
        "timing/stall",
    ]


def test_the_list_is_there_for_programs() -> None:
    """As JSON: name, sentence, what is broken, what is left undecided."""
    listed = json.loads(cheapgpu("simulate", "--list", "--json", "timing/cut-before-done").stdout)
    assert listed == [
        {
            "name": "timing/cut-before-done",
            "sentence": "Closes the connection after the usage chunk.",
            "breaks": ["stream/body-complete", "stream/done-present"],
            "leaves_undecided": [],
        }
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wrong_endpoint_is_served_until_the_signal(
    number: signal.Signals, tmp_path: Path
) -> None:
    """The check that it proposes finds its fault; then it ends, and ends well."""
    with simulated("stream/usage-once", "--key-env", "K", "--pace", "0", K=KEY) as process:
        lines = told(process)
        assert lines["fault"] == "stream/usage-once: Sends the usage chunk twice."
        command = lines["cheapgpu"].split()
        checked = cheapgpu(
            *command,
            "--only",
            "stream/usage-once",
            "-q",
            "-o",
            str(tmp_path / "run.jsonl"),
            changes={"K": KEY},
        )
        assert checked.returncode == 1, checked.stderr
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert (process.returncode, err) == (0, "")
        assert KEY not in out


def test_a_key_is_made_up_and_told_once() -> None:
    """Without --key-env the key stands on standard error, ready for the shell, and nowhere else."""
    with simulated("--port", "0", "--json") as process:
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            text += line
            if line == "}\n":
                break
        about = json.loads(text)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=10)
    assert re.fullmatch(r"export SIMULATE_KEY=simulate-[0-9a-f]{32}\n", err)
    assert about["key_env"] == "SIMULATE_KEY"
    assert about["faults"] == []
    assert about["inference_url"].startswith("http://127.0.0.1:")
    assert err.strip().partition("=")[2] not in text + out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["stream/usage-twice"], "did you mean"),
        (["--list", "nothing/*"], "there is none named 'nothing/*'"),
        (["--key-env", "NOT_SET"], "--key-env: "),
        (["--pace", "-1"], "pace: is -1 ms"),
        (["--model", ""], "model: must have"),
        (["--host", "192.0.2.1"], "give another --port"),
        (["--port", "70000"], "less than or equal to 65535"),
    ],
)
def test_wrong_use_is_refused(arguments: list[str], complaint: str) -> None:
    """What is wrong is named, and nothing is served."""
    done = cheapgpu("simulate", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr.decode()
    assert done.stdout == b""
