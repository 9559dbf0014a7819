"""Runs the command as a user does: a process of its own, its streams, its exit code."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

#: The program, however the package is installed.
PROGRAM = (sys.executable, "-c", "from cheapgpu.cli import main; main()")

#: Variables that change what a command writes.
_CHANGING = (
    "NO_COLOR",
    "COLUMNS",
    "TERM",
    "CHEAPGPU_TRACEBACK",
    "PYTHONIOENCODING",
    "GITHUB_STEP_SUMMARY",
)


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: nothing that changes its output but what a test sets."""
    kept = {name: value for name, value in os.environ.items() if name not in _CHANGING}
    return kept | dict(changes or {})


def cheapgpu(
    *arguments: str,
    stdin: bytes | None = None,
    program: Sequence[str] = PROGRAM,
    changes: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run one command line to its end; `changes` are made to its environment."""
    return subprocess.run(
        [*program, *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env=environment(changes),
        timeout=60,
        check=False,
    )
