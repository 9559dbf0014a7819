"""Writes reports where the options say, and the summary of a GitHub job where its variable says."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from cheapgpu.cli.options import OptionError
from cheapgpu.cli.output import complain, say_utf8
from cheapgpu.core.errors import CheapGPUError
from cheapgpu.report.run import Run

Format = Literal["html", "junit", "sarif", "json", "md", "badge"]

#: Format → the file that was asked for, `-` for standard output; only those that were.
ReportFiles = Mapping[Format, str]

STDOUT: Final = "-"
#: Names the file whose Markdown GitHub Actions shows on the page of a run.
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


class ReportFileError(CheapGPUError):
    """A report could not be written; the message names each, and why."""


def report_files(*, keep: Iterable[str] = (), **files: str | None) -> ReportFiles:
    """Return the files that were asked for, once it is known that they can be meant.

    `keep` names the files that must not be overwritten: recordings. Raises OptionError if two
    reports, or a report and a recording, would be one file, or where no file can be.
    """
    wanted: dict[Format, str] = {}
    taken = {_identity(path): f"the recording {path}" for path in keep if path != STDOUT}
    for name in _WRITERS:
        path = files.get(name)
        if path is None:
            continue
        option = _option(name)
        if path != STDOUT:
            _check(option, path)
        identity = STDOUT if path == STDOUT else _identity(path)
        if identity in taken:
            raise OptionError(f"{option}: {path} is {taken[identity]}, too; give another file")
        taken[identity] = f"the file of {option}"
        wanted[name] = path
    return wanted


def prints_report(files: ReportFiles, *, json: bool) -> bool:
    """Whether standard output is left for the report of the terminal.

    Raises OptionError if `--json` and another report would both be printed.
    """
    named = next((name for name, path in files.items() if path == STDOUT), None)
    if named is not None and json:
        raise OptionError(
            f"--json and {_option(named)} - would both be printed; give one of them a file"
        )
    return named is None


def write_reports(runs: Sequence[Run], files: ReportFiles) -> None:
    """Write every report that was asked for; raises one ReportFileError for all that could not be.

    Where a GitHub job shows summaries, one is appended; that it cannot be is said, and no more.
    """
    problems: list[str] = []
    for name, path in files.items():
        text = _WRITERS[name](runs)
        if path == STDOUT:
            say_utf8(text)
            continue
        try:
            Path(path).write_bytes(text.encode())
        except OSError as error:
            problems.append(f"{_option(name)}: {path}: {error.strerror}")
    _append_summary(runs)
    if problems:
        rest = ["the other reports are written"] if len(problems) < len(files) else []
        raise ReportFileError("\n".join(problems + rest))


def _append_summary(runs: Sequence[Run]) -> None:
    path = os.environ.get(_SUMMARY)
    if not path:
        return
    try:
        with Path(path).open("ab") as file:
            file.write(_markdown(runs).encode())
    except OSError as error:
        complain(f"cheapgpu: {_SUMMARY} cannot be written: {error.strerror}\n")


def _option(name: Format) -> str:
    """How a format is asked for: `--json` alone prints, where a command judges."""
    return "--json-file" if name == "json" else f"--{name}"


def _check(option: str, path: str) -> None:
    place = Path(path)
    if not path or place.is_dir():
        raise OptionError(f"{option}: {path or 'nothing'} is no file; name the file to write")
    if not place.parent.is_dir():
        raise OptionError(f"{option}: {path}: there is no directory {place.parent}; make it first")


def _identity(path: str) -> str:
    return str(Path(path).resolve())


def _html(runs: Sequence[Run]) -> str:
    from cheapgpu.report.html import html_report

    return html_report(runs)


def _junit(runs: Sequence[Run]) -> str:
    from cheapgpu.report.junit import junit

    return junit(runs)


def _sarif(runs: Sequence[Run]) -> str:
    from cheapgpu.report.sarif import sarif

    return sarif(runs, docs=rules_page())


def _json(runs: Sequence[Run]) -> str:
    from cheapgpu.report.document import document, to_json

    return "".join(to_json(document(run)) for run in runs)


def _markdown(runs: Sequence[Run]) -> str:
    from cheapgpu.report.markdown import markdown

    return markdown(runs)


def _badge(runs: Sequence[Run]) -> str:
    from cheapgpu.report.badge import badge

    return badge(runs)


_WRITERS: Final[dict[Format, Callable[[Sequence[Run]], str]]] = {
    "html": _html,
    "junit": _junit,
    "sarif": _sarif,
    "json": _json,
    "md": _markdown,
    "badge": _badge,
}


def rules_page() -> str:
    """The address of the page with the rules, if the package declares a URL called `Rules`."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        declared: list[str] = metadata("cheapgpu").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    return next((url.strip() for label, _, url in map(_split, declared) if label == "Rules"), "")


def _split(declared: str) -> tuple[str, str, str]:
    return declared.partition(",")
