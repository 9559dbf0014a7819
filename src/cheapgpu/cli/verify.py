"""`cheapgpu verify`: judges what is in files, by the same rules and code as a live check."""

import shlex
from typing import Annotated

import typer

from cheapgpu.cli import options
from cheapgpu.cli.exit_codes import exit_code
from cheapgpu.cli.inputs import STDIN, Input
from cheapgpu.cli.judging import judged, read_inputs
from cheapgpu.cli.output import say
from cheapgpu.cli.report_files import prints_report, report_files, write_reports
from cheapgpu.cli.selection import terms_of
from cheapgpu.cli.tokenizer import counter, tokenizer_argument
from cheapgpu.report.document import document, to_json
from cheapgpu.report.terminal import terminal_report


def verify(
    files: Annotated[list[str], typer.Argument(metavar="FILE", hidden=True)],
    *,
    only: options.Only = None,
    skip: options.Skip = None,
    known: options.Known = None,
    strict: options.Strict = False,
    tokenizer: options.Tokenizer = None,
    html: options.Html = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    json_file: options.JsonFile = None,
    md: options.Md = None,
    badge: options.BadgeFile = None,
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
    terms = terms_of(only, skip, known, strict=strict)
    written = report_files(
        keep=files, html=html, junit=junit, sarif=sarif, json=json_file, md=md, badge=badge
    )
    printed = prints_report(written, json=json)
    count_tokens = counter(tokenizer) if tokenizer is not None else None
    given = tokenizer_argument(tokenizer)
    runs = [
        judged(
            file,
            terms,
            *([] if detail == "full" else _next(file, given)),
            count_tokens=count_tokens,
        )
        for file in read_inputs(files)
    ]
    style = options.style_of(color, ascii_only=ascii)
    if json:
        for run in runs:
            say(to_json(document(run)))
    elif printed:
        between = "" if detail == "brief" else "\n"
        say(between.join(terminal_report(run, style, detail) for run in runs))
    write_reports(runs, written)
    return exit_code(run.standing for run in runs)


def _next(file: Input, given: str) -> list[tuple[str, str]]:
    """The command that shows more of a file; `given` are options that change what is judged."""
    if file.name == STDIN:
        return []
    more = f"cheapgpu verify -v{given} {shlex.quote(file.name)}"
    return [(more, "what holds, and what was left out")]
