"""The commands: arguments to calls, outcomes to exit codes. One file for each family of commands.

A command is a function that typer understands, named as the command is, in the module that
`COMMANDS` names; it returns its exit code. Only the module of the command that was asked for is
imported, so that each command starts as fast as it can.
"""

import importlib
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

from cheapgpu import __version__
from cheapgpu.cli.exit_codes import INTERNAL_ERROR, INTERRUPTED, OUTPUT_LOST, WRONG_USE
from cheapgpu.cli.output import OutputError, complain, open_streams, say, settle_output

if TYPE_CHECKING:
    import typer

#: Command → the module that has a function, or an app of commands, of that name; and what it does.
COMMANDS: Final = {
    "demo": (
        "demo",
        "Check a real engine on this machine, as it comes and behind `cheapgpu endpoint`.",
    ),
    "check": ("check", "Ask an endpoint, judge its answers, and keep the recording."),
    "verify": ("verify", "Judge recordings and saved answers, without the network."),
    "report": (
        "report",
        "Show recordings: as a page, for CI servers, as a badge, or on the terminal.",
    ),
    "diff": ("diff", "Compare two recordings: rules that broke, healed or changed, and exchanges."),
    "rules": ("rules", "List the rules."),
    "explain": ("rules", "Explain one rule, with good and bad bytes."),
    "endpoint": ("endpoint", "Stand before a model server, and answer by the profile."),
    "simulate": ("simulate", "Serve an endpoint that is wrong on purpose."),
}

_NAME: Final = "cheapgpu"
_VERSION: Final = f"{_NAME} {__version__}\n"
_ABOUT: Final = """Judge chat endpoints and their answers by the OpenAI Chat text profile.

Exit codes: 0 conforms, 1 does not conform, 2 wrong use (nothing was judged), 3 not established,
70 a fault of this program, 74 its output is lost, 130 interrupted."""


def main() -> None:
    """Run the command that the command line names, and end the process with its exit code."""
    open_streams()
    code = run(sys.argv[1:])
    try:
        settle_output()
    except OutputError as error:
        code = _lost(error)
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process, also where a thread that was given up still works.

    At its usual end Python unwinds such a thread, and one within native code, such as that of
    jsonschema-rs, then aborts the process: its exit code would be lost.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line, without the program's name, and return the exit code."""
    try:
        if list(arguments) == ["--version"]:
            say(_VERSION)
            return 0
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OutputError as error:
        return _lost(error)
    except Exception as error:  # noqa: BLE001 -- the last resort: no fault may pass as a verdict
        try:
            settle_output()  # typer writes its help texts itself
        except OutputError as lost:
            return _lost(lost)
        return _internal_error(error)


def _run(arguments: Sequence[str]) -> int:
    import typer

    from cheapgpu.core.errors import CheapGPUError

    command = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    app = _app(command)
    try:
        code = app(args=list(arguments) or ["--help"], prog_name=_NAME, standalone_mode=False)
    except CheapGPUError as error:
        _refuse(command, str(error))
        return WRONG_USE
    except typer.TyperException as error:
        asked = f"{_NAME} {command}".rstrip()
        _refuse(command, f"{_unquoted(error)}\n`{asked} --help` says what it takes")
        return WRONG_USE
    except SystemExit:  # so typer ends where the reader of a help text has left
        return 0
    if not arguments:
        return WRONG_USE
    return code if isinstance(code, int) else 0


def _app(command: str) -> "typer.Typer":
    """The app with the command that was asked for; the others are known by name only."""
    import typer

    def every_command(
        *, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
    ) -> None:
        if version:
            say(_VERSION)
            raise typer.Exit

    app = typer.Typer(
        name=_NAME,
        help=_ABOUT,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(every_command)
    for name, (module, does) in COMMANDS.items():
        if name != command:
            app.command(name, help=does)(_named_only)
            continue
        loaded: Any = getattr(importlib.import_module(f"cheapgpu.cli.{module}"), name)
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name)
        else:
            app.command(name)(loaded)
    return app


def _named_only() -> None:
    """Stand for a command that the help text names and that is not the one to run."""


def _refuse(command: str, message: str) -> None:
    """Say on standard error, safe to print, what is wrong with what was given."""
    from cheapgpu.report.style import Style

    first, *others = message.splitlines() or [""]
    style = Style(ascii=not sys.stderr.encoding.lower().startswith("utf"))
    lines = [f"{_NAME} {command}".rstrip() + f": {first}", *(f"  {line}" for line in others)]
    complain("".join(f"{style.text(line)}\n" for line in lines))


def _unquoted(error: "typer.TyperException") -> str:
    """What is wrong with a command line, without an argument too many, which may be a key."""
    message = error.format_message()
    return "it got more arguments than it takes" if "unexpected extra" in message else message


def _lost(error: OutputError) -> int:
    """Say that standard output took no more: its reader has not seen what there was to see."""
    complain(f"{_NAME}: standard output cannot be written: {error}; what it was to show is lost\n")
    return OUTPUT_LOST


def _internal_error(error: Exception) -> int:
    """Own up to a fault of this program. Its message is left out: it may quote what was read."""
    if os.environ.get("CHEAPGPU_TRACEBACK") == "1":
        traceback.print_exception(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    file = place.filename.rpartition(os.sep)[2]
    complain(
        f"{_NAME}: internal error, {type(error).__name__} in {file} line {place.lineno}: a fault of"
        f" {_NAME} {__version__}, not of what it was given; CHEAPGPU_TRACEBACK=1 shows more\n"
    )
    return INTERNAL_ERROR
