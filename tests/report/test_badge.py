"""The badge: three things that it may say, and no share of anything."""

import json
from dataclasses import replace

import pytest

from cheapgpu.cli.selection import narrow, selected
from cheapgpu.report.badge import badge
from cheapgpu.report.run import Run
from tests.report.known_runs import KNOWN, known_run
from tests.report.runs import (
    all_runs,
    everything_right,
    everything_wrong,
    example,
    nothing_established,
    run_of,
)


def shown(*runs: Run) -> tuple[str, str]:
    """The message and the colour."""
    found = json.loads(badge(runs))
    assert found["schemaVersion"] == 1
    assert found["label"] == "openai-chat-text"
    assert found["isError"] is (found["color"] == "red")
    return found["message"], found["color"]


def dated(run: Run, day: str) -> Run:
    """A run of some day."""
    return replace(run, started=f"{day}T12:00:00Z")


def test_a_run_that_conforms_has_the_date_of_its_recording() -> None:
    """Of several, that of the oldest; none where it is not known."""
    right = everything_right()
    assert shown(dated(right, "2026-11-30")) == ("conforms · 2026-11-30", "brightgreen")
    assert shown(right) == ("conforms", "brightgreen")
    both = (dated(right, "2026-11-30"), dated(right, "2026-10-01"))
    assert shown(*both) == ("conforms · 2026-10-01", "brightgreen")
    assert shown(dated(right, "2026-11-30"), right) == ("conforms", "brightgreen")


def test_failures_are_counted_known_ones_too() -> None:
    """Each rule once, however many runs break it."""
    assert shown(known_run()) == ("1 rule fails", "red")
    assert shown(known_run(KNOWN)) == ("1 rule fails", "red")
    assert shown(known_run(), known_run(), everything_right())[0] == "1 rule fails"
    message, colour = shown(everything_wrong())
    assert message.endswith(" rules fail")
    assert colour == "red"


def test_what_is_not_established_says_so() -> None:
    """And so does nothing at all."""
    assert shown(nothing_established()) == ("not established", "lightgrey")
    assert shown(everything_right(), nothing_established())[0] == "not established"
    assert shown() == ("not established", "lightgrey")


def test_a_part_is_not_the_whole() -> None:
    """A badge promises the whole profile: one stream, or a selection, is a part of it."""
    stream = run_of(example("stream/json", good=True))
    assert stream.report.verdict == "conforms"
    assert shown(dated(stream, "2026-11-30")) == ("conforms in part · 2026-11-30", "green")
    right = everything_right()
    chosen = selected([], ["stream/incremental"])
    assert shown(replace(right, report=narrow(right.report, chosen)))[0] == "conforms in part"


@pytest.mark.parametrize("run", [run for _, run in all_runs()][:40])
def test_no_badge_has_a_percentage(run: Run) -> None:
    """40 of 41 rules is not 97 % conforming."""
    assert "%" not in badge([run])
