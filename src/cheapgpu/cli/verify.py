"""`cheapgpu verify`: judges what is in files, by the same rules and code as a live check."""

import shlex
from typing import Annotated

import typer

from cheapgpu.cli import options
from cheapgpu.cli.exit_codes import exit_code
from cheapgpu.cli.inputs import STDIN, Input, InputError, read_input
from cheapgpu.cli.output import say
from cheapgpu.cli.selection import narrow, selected
from cheapgpu.core.verify import verify as judge_all
from cheapgpu.report.document import document, to_json
from cheapgpu.report.run import Run
from cheapgpu.report.terminal import terminal_report


def verify(
    files: Annotated[list[str], typer.Argument(metavar="FILE", hidden=True)],
    *,
    only: options.Only = None,
    skip: options.Skip = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    color: options.ColourOption = "auto",
    ascii: options.Ascii = False,  # noqa: A002 -- the option's name
) -> int:
    """Judge recordings and saved answers, without the network.

    FILE is a recording (.jsonl), a HAR (.har), or one answer: a body alone (.sse, .json), or head
    and body as `curl -i` saves them. - is standard input: curl -iN ... | cheapgpu verify -

    Each file is judged by itself; the worst verdict gives the exit code. If one of them cannot be
    used, none is judged.
    """
    detail = options.detail_of(verbose=verbose, quiet=quiet)
    chosen = selected(only or [], skip or [])
    runs = [_judge(file, chosen, hint=detail != "full") for file in _read_all(files)]
    style = options.style_of(color, ascii_only=ascii)
    if json:
        for run in runs:
            say(to_json(document(run)))
    else:
        between = "" if detail == "brief" else "\n"
        say(between.join(terminal_report(run, style, detail) for run in runs))
    return exit_code(run.report.verdict for run in runs)


def _read_all(files: list[str]) -> list[Input]:
    """Read every file; raises one InputError that names all that cannot be used."""
    if files.count("-") > 1:
        raise InputError("standard input can be read once only; name - once")
    inputs: list[Input] = []
    problems: list[str] = []
    for file in files:
        try:
            inputs.append(read_input(file))
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return inputs


def _judge(file: Input, chosen: frozenset[str], *, hint: bool) -> Run:
    """Judge what a file holds; `hint` says whether the report names the command that shows more."""
    more = f"cheapgpu verify -v {shlex.quote(file.name)}"
    return Run(
        report=narrow(judge_all(file.exchanges, started=file.started), chosen),
        exchanges=file.exchanges,
        target=file.target,
        source=file.name,
        about=(file.about,),
        commands=((more, "what holds, and what was left out"),)
        if hint and file.name != STDIN
        else (),
    )
