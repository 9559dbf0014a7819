"""Findings that are alike are told once."""

from cheapgpu.core.findings import Finding, Outcome
from cheapgpu.report.sightings import consequences, in_part, kind_of, sightings
from tests.report.runs import example, run_of


def finding(expected: str, observed: str) -> Finding:
    """A finding that says this."""
    return Finding(rule="stream/json", outcome=Outcome.FAIL, expected=expected, observed=observed)


def test_the_same_fault_in_two_cases_is_one_sighting() -> None:
    """Models differ from case to case; the fault is one, and both cases are named."""
    run = run_of(
        example("stream/model-echoed", "stream-short"), example("stream/model-echoed", "again")
    )
    (sighting,) = sightings(run, "stream/model-echoed", Outcome.FAIL)
    assert sighting.cases == ["stream-short", "again"]
    assert sighting.exchange is run.exchanges[0]


def test_what_follows_from_another_rule_is_no_sighting() -> None:
    """A missing [DONE] that a missing blank line explains is listed as its consequence."""
    run = run_of(example("stream/events-complete"))
    assert sightings(run, "stream/done-present", Outcome.FAIL) == []
    assert list(consequences(run, "stream/events-complete")) == ["stream/done-present"]


def test_ids_and_numbers_do_not_make_findings_differ() -> None:
    """Created at 1, created at 2: that is the same thing twice."""
    assert kind_of(finding('"a"', "1767225600")) == kind_of(finding('"b"', "1767225601"))


def test_statuses_make_findings_differ() -> None:
    """An answer of 200 is another fault than one of 500, and 404 may be wanted where 422 is not."""
    assert kind_of(finding("", "200 text/plain")) != kind_of(finding("", "500 text/plain"))
    assert kind_of(finding("400 or 404", "")) != kind_of(finding("400 or 422", ""))


def test_a_rule_that_some_cases_hold_is_broken_in_part() -> None:
    """The cases that broke it and those that did not are told apart, unless all broke it."""
    broken = [example("refuse/not-json", case) for case in ("not-a-number", "again", "again")]
    right = example("refuse/not-json", "half", good=True)
    assert in_part(run_of(*broken, right), "refuse/not-json") == (
        ["not-a-number", "again"],
        ["half"],
    )
    assert in_part(run_of(*broken), "refuse/not-json") == ([], [])
