"""From files to judged runs, for every command that reads recordings."""

from collections.abc import Sequence

from cheapgpu.cli.inputs import Input, InputError, read_input
from cheapgpu.cli.selection import Terms, decided
from cheapgpu.core.across import CountTokens
from cheapgpu.core.verify import verify
from cheapgpu.report.run import Run


def read_inputs(files: Sequence[str]) -> list[Input]:
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


def judged(
    file: Input,
    terms: Terms,
    *commands: tuple[str, str],
    count_tokens: CountTokens | None = None,
) -> Run:
    """Judge what a file holds; `commands` are worth typing next, each with what it gives."""
    run = Run(
        report=verify(file.exchanges, started=file.started, count_tokens=count_tokens),
        exchanges=file.exchanges,
        target=file.target,
        source=file.name,
        about=(file.about,),
        commands=commands,
        started=file.started,
    )
    return decided(run, terms)
