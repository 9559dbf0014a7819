"""`cheapgpu report`: shows recordings in the formats that people and servers read."""

from typing import Annotated

import typer

from cheapgpu.cli import options
from cheapgpu.cli.exit_codes import CONFORMS
from cheapgpu.cli.judging import judged, read_inputs
from cheapgpu.cli.output import say
from cheapgpu.cli.report_files import report_files, write_reports
from cheapgpu.cli.selection import terms_of
from cheapgpu.cli.tokenizer import counter
from cheapgpu.report.terminal import terminal_report


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", hidden=True)],
    *,
    html: options.Html = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    json: Annotated[
        str | None,
        typer.Option("--json", "--json-file", metavar="FILE", help="Write the JSON document."),
    ] = None,
    md: options.Md = None,
    badge: options.BadgeFile = None,
    only: options.Only = None,
    skip: options.Skip = None,
    known: options.Known = None,
    strict: options.Strict = False,
    tokenizer: options.Tokenizer = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    color: options.ColourOption = "auto",
    ascii: options.Ascii = False,  # noqa: A002 -- the option's name
) -> int:
    """Show recordings: as a page, for CI servers, as a badge, or on the terminal.

    RUN is anything that `cheapgpu verify` takes, old recordings too; it is judged anew, by the
    rules of this version. Several runs stand side by side in one report. FILE may be - for
    standard output. Without any of the formats, the report of the terminal is printed.

    Exits 0 once the reports are written, whatever they say: `cheapgpu verify` is for verdicts.
    """
    detail = options.detail_of(verbose=verbose, quiet=quiet)
    terms = terms_of(only, skip, known, strict=strict)
    files = report_files(
        keep=runs, html=html, junit=junit, sarif=sarif, json=json, md=md, badge=badge
    )
    count_tokens = counter(tokenizer) if tokenizer is not None else None
    shown = [judged(file, terms, count_tokens=count_tokens) for file in read_inputs(runs)]
    if not files:
        style = options.style_of(color, ascii_only=ascii)
        between = "" if detail == "brief" else "\n"
        say(between.join(terminal_report(run, style, detail) for run in shown))
    write_reports(shown, files)
    return CONFORMS
