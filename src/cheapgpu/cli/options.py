"""The options that several commands share, so that they are spelled and explained alike."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from cheapgpu.cli.output import can_write
from cheapgpu.core.errors import CheapGPUError
from cheapgpu.report.style import LEAST_WIDTH, MOST_WIDTH, Style
from cheapgpu.report.terminal import Detail

Colour = Literal["auto", "always", "never"]

Only = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Look at these rules only, such as stream/*; repeatable."),
]
Skip = Annotated[
    list[str] | None, typer.Option(metavar="GLOB", help="Leave these rules out; repeatable.")
]
Known = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Failures that are known (TOML): accepted, each with its reason."
    ),
]
Tokenizer = Annotated[
    Path | None,
    typer.Option(
        "--tokenizer", metavar="FILE", help="The model's tokenizer.json, to count its tokens again."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Let advice fail the run, for the exit code.")
]
Html = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write a page to read; - is standard output."),
]
Junit = Annotated[
    str | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, for a CI server.")
]
Sarif = Annotated[
    str | None, typer.Option("--sarif", metavar="FILE", help="Write SARIF, for code scanning.")
]
JsonFile = Annotated[
    str | None,
    typer.Option("--json-file", metavar="FILE", help="Write the document of --json to a file."),
]
Md = Annotated[
    str | None, typer.Option("--md", metavar="FILE", help="Write a summary in Markdown.")
]
BadgeFile = Annotated[
    str | None,
    typer.Option("--badge", metavar="FILE", help="Write a badge, as JSON for shields.io."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show what holds and what was not looked at, too.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict alone.")]
ColourOption = Annotated[
    Colour,
    typer.Option(
        "--color", help="Colour the glyphs and carets; auto: on a terminal, unless NO_COLOR is set."
    ),
]
Ascii = Annotated[bool, typer.Option("--ascii", help="Write ASCII only.")]


class OptionError(CheapGPUError):
    """Options that do not go together."""


def key_of(variable: str) -> str:
    """Return the key in an environment variable; raises OptionError if there is none.

    The message leaves the name out: by mistake it may be the key.
    """
    key = os.environ.get(variable)
    if not key:
        state = "is empty; put the key into it" if key == "" else "is not set"
        raise OptionError(
            f"--key-env: the environment variable that it names {state}; give its name, not the key"
        )
    return key


def detail_of(*, verbose: bool, quiet: bool) -> Detail:
    """Return how much a report shows; raises OptionError if both are asked for."""
    if verbose and quiet:
        raise OptionError("-v and -q exclude each other; leave one out")
    return "full" if verbose else "brief" if quiet else "usual"


def style_of(color: Colour = "auto", *, ascii_only: bool = False) -> Style:
    """Return how to write to standard output, from the options and from what it is.

    Honours COLUMNS, NO_COLOR (set and not empty) and TERM=dumb; `--color always` has its way.
    """
    terminal = sys.stdout.isatty()
    wanted = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size(fallback=(MOST_WIDTH, 24)).columns
    return Style(
        width=min(max(width, LEAST_WIDTH), MOST_WIDTH),
        colour=color == "always" or (color == "auto" and wanted),
        ascii=ascii_only or not can_write("✗·…§¶↳⏎"),
    )
