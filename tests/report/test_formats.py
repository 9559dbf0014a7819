"""Golden files of every format but the terminal's, for the gallery of wrong and right endpoints.

They are in tests/data/formats. To renew them after a change that is meant, run
`CHEAPGPU_RENEW=1 ./dev test tests/report/test_formats.py` and read what changed.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from cheapgpu import __version__
from cheapgpu.report.badge import badge
from cheapgpu.report.document import document, to_json
from cheapgpu.report.junit import junit
from cheapgpu.report.markdown import markdown
from cheapgpu.report.run import Run
from cheapgpu.report.sarif import sarif
from tests.report.known_runs import KNOWN, PASSING, UNSEEN, known_run
from tests.report.runs import DATA, everything_right, everything_wrong, nothing_established

GOLDEN = DATA / "formats"


def sarif_results(runs: Sequence[Run]) -> str:
    """SARIF without the rules, which are the same in every log."""
    log = json.loads(sarif(runs))
    for run in log["runs"]:
        del run["tool"]["driver"]["rules"]
    return to_json(log)


def json_documents(runs: Sequence[Run]) -> str:
    """One document after another."""
    return "".join(to_json(document(run)) for run in runs)


FORMATS: dict[str, Callable[[Sequence[Run]], str]] = {
    "junit.xml": junit,
    "sarif": sarif_results,
    "json": json_documents,
    "md": markdown,
    "badge.json": badge,
}
STARTED = "2026-11-30T12:00:00Z"
RUNS = {
    "everything-wrong": [everything_wrong()],
    "everything-right": [everything_right()],
    "nothing-established": [nothing_established()],
    "known": [known_run(KNOWN, PASSING, UNSEEN, strict=True)],
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", RUNS)
def test_formats_are_as_they_were_agreed(name: str, form: str) -> None:
    """A report that is not equal to its golden file is a change that someone has to want."""
    text = FORMATS[form]([replace(run, started=STARTED) for run in RUNS[name]])
    text = text.replace(f"cheapgpu {__version__}", "cheapgpu X.Y.Z")
    text = text.replace(f'"semanticVersion": "{__version__}"', '"semanticVersion": "X.Y.Z"')
    golden = GOLDEN / f"{name}.{form}"
    if os.environ.get("CHEAPGPU_RENEW") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_golden_files_are_all_of_a_format() -> None:
    """A golden file whose report is gone is gone, too."""
    wanted = {f"{name}.{form}" for name in RUNS for form in FORMATS}
    assert {path.name for path in GOLDEN.iterdir()} == wanted
