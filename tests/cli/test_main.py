"""The program: its commands, its help, and how it fails."""

import importlib
import os
import pty
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest
import typer

import cheapgpu
from cheapgpu.cli import COMMANDS, run
from tests.cli.commands import PROGRAM, environment
from tests.cli.commands import cheapgpu as command


def test_the_version_is_told() -> None:
    """As the only argument, and before a command."""
    assert command("--version").stdout == f"cheapgpu {cheapgpu.__version__}\n".encode()
    assert command("--version", "rules").stdout == f"cheapgpu {cheapgpu.__version__}\n".encode()


def test_the_version_needs_no_imports() -> None:
    """`--version` must be quick: no framework is loaded for it."""
    script = (
        "import sys; from cheapgpu.cli import run; run(['--version']);"
        " print([m for m in ('typer', 'rich', 'pydantic', 'asyncio') if m in sys.modules])"
    )
    assert command(program=(PROGRAM[0], "-c", script)).stdout.endswith(b"\n[]\n")


def test_a_command_loads_its_own_module_only() -> None:
    """`verify` waits neither for rich nor for the modules of other commands."""
    script = (
        "import sys; from cheapgpu.cli import run; run(['verify', '/missing']);"
        " print([m for m in ('rich', 'asyncio', 'cheapgpu.cli.rules', 'cheapgpu.cli.check')"
        " if m in sys.modules])"
    )
    assert command(program=(PROGRAM[0], "-c", script)).stdout == b"[]\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["verify", "--help"], ["rules", "-h"]])
def test_help_is_plain_text_and_exits_0(arguments: list[str]) -> None:
    """Help has no frames, no colour, and names every command."""
    done = command(*arguments, changes={"COLUMNS": "80"})
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert done.stdout.startswith(b"Usage: cheapgpu ")
    if arguments[0].startswith("-"):
        assert all(name.encode() in done.stdout for name in COMMANDS)


def test_no_command_is_wrong_use() -> None:
    """The help text is shown, and the exit code says that nothing was judged."""
    done = command()
    assert done.returncode == 2
    assert b"Usage: cheapgpu " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verfy"], b"cheapgpu: No such command 'verfy'. Did you mean 'verify'"),
        (["verify"], b"cheapgpu verify: Missing argument 'FILE'."),
        (["verify", "--colour", "x"], b"cheapgpu verify: No such option: --colour"),
        (["verify", "-v", "-q", "x"], b"cheapgpu verify: -v and -q exclude each other"),
        (["explain", "stream/usage-alon"], b"did you mean stream/usage-alone"),
    ],
)
def test_wrong_use_exits_2(arguments: list[str], message: bytes) -> None:
    """One message on standard error, nothing on standard output."""
    done = command(*arguments)
    assert done.returncode == 2
    assert done.stdout == b""
    assert message in done.stderr


def test_arguments_cannot_act_on_the_terminal() -> None:
    """What is quoted from the command line is made safe, as everything is."""
    done = command("verify", "\x1b[2Jmissing\u202e")
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr
    assert b"<1B>[2Jmissing<U+202E>: no such file" in done.stderr


def test_a_fault_of_the_program_exits_70() -> None:
    """It is owned up to in one line, without the exception's words, which may quote a body."""
    script = (
        "import cheapgpu.cli as cli; cli.COMMANDS['verify'] = ('no_such_secret_module', '');"
        " cli.main()"
    )
    program = (PROGRAM[0], "-c", script)
    done = command("verify", "x", program=program)
    assert done.returncode == 70
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert b"internal error, ModuleNotFoundError in " in done.stderr
    assert b"secret" not in done.stderr
    shown = command("verify", "x", program=program, changes={"CHEAPGPU_TRACEBACK": "1"})
    assert shown.returncode == 70
    assert b"Traceback" in shown.stderr


def test_an_interrupt_exits_130() -> None:
    """Ctrl-C while waiting for standard input ends the program without a verdict."""
    primary, secondary = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, "verify", "-"],
        stdin=secondary,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stderr is not None
        assert b"reading from the terminal" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    os.close(primary)
    os.close(secondary)
    assert process.returncode == 130
    assert output == b""
    assert errors == b""


@pytest.mark.parametrize("argument", ["rules", "--help"])
def test_a_reader_who_leaves_early_is_no_error(argument: str) -> None:
    """`cheapgpu rules | head` says nothing, and no more does the help: Typer's 1 is a verdict."""
    with subprocess.Popen(
        [*PROGRAM, argument],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("verify {file} >/dev/full", 74),
        ("verify {file} --json >/dev/full", 74),
        ("verify {file} --html - >/dev/full", 74),
        ("verify {file} >&-", 74),
        ("--help >/dev/full", 74),
        ("--help >&-", 74),
        ("--version >&-", 74),
        ("verify missing 2>&-", 2),
        ("verify missing 2>/dev/full", 2),
        ("verify - <&-", 2),
        ("verify - <&- >&- 2>&-", 2),
        ("verify {file} 2>&-", 1),
    ],
)
def test_no_verdict_without_streams(line: str, code: int, tmp_path: Path) -> None:
    """Where standard output is closed or full the code is no verdict; nothing else gets in its way.

    No traceback is shown, and what is wrong is said in one line, where there is a place for it.
    """
    file = tmp_path / "answer.sse"
    file.write_bytes(b"data: [DONE]\n\n")
    shell = f'"$0" -c "from cheapgpu.cli import main; main()" {line.format(file=file)}'
    done = subprocess.run(
        ["sh", "-c", shell, sys.executable],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr
    if code == 74:
        assert done.stderr.startswith(b"cheapgpu: standard output cannot be written: ")
        assert done.stderr.count(b"\n") == 1


def test_every_command_is_described_as_it_describes_itself() -> None:
    """The list of commands says what each command's own help says first."""
    for name, (module, does) in COMMANDS.items():
        function = getattr(importlib.import_module(f"cheapgpu.cli.{module}"), name)
        assert (function.__doc__ or "").splitlines()[0] == does


def test_a_command_line_can_be_run_in_process(capsys: pytest.CaptureFixture[str]) -> None:
    """`run` returns the exit code and leaves the process alone."""
    assert run(["rules", "auth/*"]) == 0
    assert "auth/missing-refused" in capsys.readouterr().out


def test_a_family_of_commands_may_be_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app of commands stands where a function may; its command's exit code is the program's."""
    family = typer.Typer()
    family.command("one")(lambda: 0)
    family.command("three")(lambda: 3)
    module = types.ModuleType("cheapgpu.cli.kin")
    monkeypatch.setattr(module, "kin", family, raising=False)
    monkeypatch.setitem(sys.modules, "cheapgpu.cli.kin", module)
    monkeypatch.setitem(COMMANDS, "kin", ("kin", "A family of commands."))
    assert run(["kin", "three"]) == 3
    assert run(["kin", "one"]) == 0
    assert run(["kin", "four"]) == 2


def test_an_interrupt_within_this_program_exits_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it strikes, also while a command is being loaded."""

    def interrupt(name: str) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr(importlib, "import_module", interrupt)
    assert run(["rules"]) == 130
