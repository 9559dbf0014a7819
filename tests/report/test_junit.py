"""JUnit XML: well-formed whatever an endpoint sends, and each ending where a CI server looks."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import AREAS, RULES
from cheapgpu.report.junit import junit
from cheapgpu.report.run import Run
from tests.report.known_runs import EXPIRED, KNOWN, PASSING, UNSEEN, advised_run, known_run
from tests.report.runs import (
    all_runs,
    everything_right,
    everything_wrong,
    nothing_established,
)
from tests.report.test_terminal import hostile_runs


def parsed(*runs: Run) -> ET.Element:
    """The document, read by a parser that refuses what XML forbids."""
    return ET.fromstring(junit(runs))  # noqa: S314 -- our own output


def case_of(root: ET.Element, rule: str) -> ET.Element:
    """The one test case of a rule."""
    (case,) = root.iterfind(f".//testcase[@name='{rule}']")
    return case


def test_there_is_a_suite_for_each_area_and_a_case_for_each_rule() -> None:
    """The name of a case is the rule, its class the profile, its file the recording."""
    root = parsed(everything_wrong())
    assert [suite.get("name") for suite in root] == list(AREAS)
    cases = list(root.iter("testcase"))
    assert [case.get("name") for case in cases] == [rule.id for rule in RULES]
    assert {case.get("classname") for case in cases} == {"openai-chat-text-v1-draft.1"}
    assert {case.get("file") for case in cases} == {"run.jsonl"}


@pytest.mark.parametrize("run", [everything_wrong(), everything_right(), nothing_established()])
def test_counts_are_those_of_the_cases(run: Run) -> None:
    """Of each suite, and of all."""
    root = parsed(run)
    for element, suites in [(root, root.findall("testsuite")), *((s, [s]) for s in root)]:
        cases = [case for suite in suites for case in suite.iter("testcase")]
        assert int(element.get("tests", "")) == len(cases)
        for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped",) * 2):
            found = sum(case.find(kind) is not None for case in cases)
            assert int(element.get(attribute, "")) == found


def test_every_outcome_has_its_element() -> None:
    """Failures fail, what could not be told is an error, what was not looked at is skipped."""
    kinds = {
        Outcome.FAIL: "failure",
        Outcome.ERROR: "error",
        Outcome.UNKNOWN: "error",
        Outcome.SKIP: "skipped",
        Outcome.ADVICE: "system-out",
    }
    for run in (everything_wrong(), nothing_established()):
        root = parsed(run)
        for rule, outcome in run.report.rules.items():
            inside = [child.tag for child in case_of(root, rule)]
            assert inside == ([kinds[outcome]] if outcome in kinds else []), rule


def test_a_failure_is_told_in_one_line_and_in_full() -> None:
    """The message is a line that is enough by itself, the text the block of the terminal."""
    failure = case_of(parsed(known_run()), "stream/usage-alone").find("failure")
    assert failure is not None
    assert failure.get("message") == (
        "usage beside the choice with the finish reason (stream-short, body 781)"
    )
    assert (failure.text or "").startswith("✗ stream/usage-alone")
    assert "^^^" in (failure.text or "")


def test_properties_say_what_was_checked() -> None:
    """Target, model, tool, verdict and time, in every suite."""
    run = replace(known_run(strict=True), started="2026-11-30T13:00:00+01:00")
    for suite in parsed(run):
        found = {p.get("name"): p.get("value") for p in suite.iter("property")}
        assert found["target"] == "https://gpu7.example/v1/chat/completions"
        assert found["model"] == "example-local-model"
        assert (found["tool"] or "").startswith("cheapgpu ")
        assert found["verdict"] == "does not conform"
        assert found["strict"] == "yes"
        assert suite.get("timestamp") == "2026-11-30T12:00:00"


@pytest.mark.parametrize("started", [None, "yesterday", "2026-11-30T12:00:00"])
def test_a_time_that_is_not_known_is_left_out(started: str | None) -> None:
    """A time without its zone is not a time of day."""
    suites = parsed(replace(known_run(), started=started))
    assert {suite.get("timestamp") for suite in suites} == {None}


def test_known_failures_are_skipped_with_their_reason() -> None:
    """And shown in full; outdated ones fail, whatever the rule came to."""
    skipped = case_of(parsed(known_run(KNOWN, UNSEEN)), "stream/usage-alone").find("skipped")
    assert skipped is not None
    reason = "known failure: mended in the next release (until 2026-12-01)"
    assert skipped.get("message") == reason
    assert "stream/usage-alone" in (skipped.text or "")
    for entry, rule in ((PASSING, "stream/json"), (EXPIRED, "stream/usage-alone")):
        failure = case_of(parsed(known_run(entry)), rule).find("failure")
        assert failure is not None
        assert "known failure" in (failure.get("message") or "")


def test_strict_makes_advice_a_failure() -> None:
    """Otherwise it is output of a case that passes."""
    rule = "stream/closes-after-done"
    assert case_of(parsed(advised_run()), rule).find("system-out") is not None
    assert case_of(parsed(advised_run(strict=True)), rule).find("failure") is not None


def test_several_runs_are_told_apart() -> None:
    """Each suite has the name of its recording then."""
    names = [suite.get("name") for suite in parsed(known_run(), everything_right())]
    assert names[0] == "auth · run.jsonl"
    assert len(names) == 2 * len(AREAS)


def test_the_document_is_well_formed_whatever_was_sent() -> None:
    """Controls, broken UTF-8, surrogates, markup: no character is left that XML forbids."""
    for name, run in [*all_runs(), *(("hostile", run) for run in hostile_runs())]:
        text = junit([run])
        assert text.replace("\n", "").isprintable(), name
        assert ET.fromstring(text).tag == "testsuites"  # noqa: S314 -- our own output
