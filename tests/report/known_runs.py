"""Runs with known failures, for the tests of every format."""

from dataclasses import replace
from datetime import date

from cheapgpu.report.known import KnownFailure
from cheapgpu.report.run import Run
from tests.report.runs import example, run_of

#: Broken in the run, and accepted.
KNOWN = KnownFailure(
    id="stream/usage-alone", because="mended in the next release", until=date(2026, 12, 1)
)
#: Holds in the run, although it is listed.
PASSING = KnownFailure(id="stream/json", because="the proxy cuts events")
#: Its date is over.
EXPIRED = KnownFailure(
    id="stream/usage-alone", because="next week", until=date(2026, 11, 1), expired=True
)
#: Not looked at in the run.
UNSEEN = KnownFailure(id="whole/json", because="plain answers are broken")


def known_run(*known: KnownFailure, strict: bool = False) -> Run:
    """A run in which `stream/usage-alone` alone is broken, with this list."""
    run = run_of(example("stream/usage-alone", "stream-short"))
    return replace(run, known=known, strict=strict)


def advised_run(*known: KnownFailure, strict: bool = False) -> Run:
    """A run that conforms, with one rule that is advice."""
    run = run_of(example("stream/closes-after-done", "stream-short"))
    return replace(run, known=known, strict=strict)
