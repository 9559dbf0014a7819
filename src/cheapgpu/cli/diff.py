"""`cheapgpu diff`: what changed at an endpoint between two recordings."""

from typing import Annotated, Final

import typer

from cheapgpu.cli import options
from cheapgpu.cli.exit_codes import CONFORMS, DOES_NOT_CONFORM, NOT_ESTABLISHED
from cheapgpu.cli.judging import judged, read_inputs
from cheapgpu.cli.output import say
from cheapgpu.cli.selection import terms_of
from cheapgpu.report.comparison import (
    Result,
    compare,
    comparison_document,
    comparison_report,
)
from cheapgpu.report.document import to_json

_CODES: Final[dict[Result, int]] = {
    "not worse": CONFORMS,
    "worse": DOES_NOT_CONFORM,
    "not established": NOT_ESTABLISHED,
}


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", hidden=True)],
    new: Annotated[str, typer.Argument(metavar="NEW", hidden=True)],
    *,
    only: options.Only = None,
    skip: options.Skip = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    color: options.ColourOption = "auto",
    ascii: options.Ascii = False,  # noqa: A002 -- the option's name
) -> int:
    """Compare two recordings: rules that broke, healed or changed, and exchanges.

    OLD and NEW are anything that `cheapgpu verify` takes; both are judged by the rules of this
    version. Exits 0 if nothing got worse, 1 if a MUST rule fails now that did not, 3 if one that
    was looked at cannot be told any more (or no success is seen now), 2 if a file cannot be used.
    """
    terms = terms_of(only, skip, None, strict=False)
    before, after = (judged(file, terms) for file in read_inputs([old, new]))
    comparison = compare(before, after)
    if json:
        say(to_json(comparison_document(comparison)))
    else:
        text = comparison_report(comparison, options.style_of(color, ascii_only=ascii))
        say(text.splitlines()[-1] + "\n" if quiet else text)
    return _CODES[comparison.result]
