"""Two runs compared: every change has its name, and only what matters decides."""

import json
from dataclasses import replace

import pytest

from cheapgpu.core.exchange import Closed, Exchange
from cheapgpu.core.findings import Outcome
from cheapgpu.report.comparison import (
    Change,
    Comparison,
    compare,
    comparison_document,
    comparison_report,
)
from cheapgpu.report.document import to_json
from cheapgpu.report.style import Style, columns
from tests.report.runs import (
    everything_right,
    everything_wrong,
    example,
    nothing_established,
    run_of,
)
from tests.report.test_terminal import COLOUR, hostile_runs

RIGHT = example("stream/usage-alone", "stream-short", good=True)
WRONG = example("stream/usage-alone", "stream-short")


def silent(exchange: Exchange) -> Exchange:
    """The same question, without an answer."""
    return replace(exchange, head=None, reads=(), closed=Closed(t=30.0, how="timeout"))


def changes(comparison: Comparison) -> dict[str, Change]:
    """How each rule changed."""
    return {one.rule: one.change for one in comparison.rules}


def test_equal_runs_do_not_differ() -> None:
    """Whatever they are like."""
    for run in (everything_right(), everything_wrong(), nothing_established()):
        found = compare(run, run)
        assert found.rules == ()
        assert found.exchanges == ()
        assert found.result == "not worse"


def test_a_rule_that_held_and_fails_is_broken() -> None:
    """And the other way round it is healed."""
    worse = compare(run_of(RIGHT), run_of(WRONG))
    assert changes(worse)["stream/usage-alone"] == "broken"
    assert worse.result == "worse"
    better = compare(run_of(WRONG), run_of(RIGHT))
    assert changes(better)["stream/usage-alone"] == "healed"
    assert better.result == "not worse"


def test_a_rule_that_was_not_looked_at_before_can_break() -> None:
    """It fails now and did not fail before: that is worse, whatever was known of it."""
    assert compare(run_of(silent(RIGHT)), run_of(WRONG)).result == "worse"
    assert compare(run_of(), run_of(WRONG)).result == "worse"


def test_what_cannot_be_told_any_more_is_lost() -> None:
    """A pass, or a failure, that gives way to silence."""
    for before in (RIGHT, WRONG):
        found = compare(run_of(before), run_of(silent(before)))
        assert changes(found)["stream/usage-alone"] == "lost"
        assert found.result == "not established"
    assert compare(run_of(silent(RIGHT)), run_of(RIGHT)).result == "not worse"


def test_what_only_follows_is_not_lost() -> None:
    """The cause broke; its consequence is shown as changed."""
    found = compare(
        run_of(example("stream/events-complete", good=True)),
        run_of(example("stream/events-complete")),
    )
    assert changes(found)["stream/events-complete"] == "broken"
    assert changes(found)["stream/done-present"] == "changed"


def test_a_rule_without_occasion_is_not_lost() -> None:
    """No error came in the stream any more: its rules have nothing to say, and that is no loss."""
    failing = example("stream/error-schema", "stream-short", good=True)
    found = compare(run_of(failing), run_of(RIGHT))
    assert changes(found)["stream/error-schema"] == "changed"
    assert found.result == "not worse"


def test_a_question_that_is_not_asked_any_more_is_lost() -> None:
    """A run with fewer cases shows less."""
    plain = example("whole/json", "whole-short", good=True)
    found = compare(run_of(RIGHT, plain), run_of(RIGHT))
    assert changes(found)["whole/json"] == "lost"
    assert found.result == "not established"


def test_a_failure_of_another_kind_is_changed() -> None:
    """It is no worse than it was, and worth a look."""
    events = [b'data: {"%b":[]}\n\n' % name for name in (b"id", b"choices")]
    one, two = (replace(WRONG, reads=(replace(WRONG.reads[0], data=data),)) for data in events)
    found = compare(run_of(one), run_of(two))
    assert changes(found)["stream/chunk-schema"] == "changed"


def test_advice_decides_nothing() -> None:
    """A SHOULD that is not met any more is shown and is not worse."""
    good, bad = (example("stream/closes-after-done", good=good) for good in (True, False))
    found = compare(run_of(good), run_of(bad))
    assert changes(found) == {"stream/closes-after-done": "changed"}
    assert found.result == "not worse"


def test_a_success_that_is_not_seen_any_more_is_not_established() -> None:
    """An error in the stream breaks no rule, and conformance is no longer shown."""
    failing = example("stream/error-schema", "stream-short", good=True)
    found = compare(run_of(RIGHT), run_of(failing))
    assert found.result == "not established"


def test_exchanges_are_matched_by_case() -> None:
    """What each proves, before and after; one that a run lacks is none."""
    refused = example("auth/missing-refused", "no-key", good=True)
    found = compare(run_of(RIGHT, RIGHT), run_of(WRONG, refused))
    assert [(one.case, one.old, one.new) for one in found.exchanges] == [
        ("stream-short", "complete, finish stop", "failed, finish stop"),
        ("stream-short #2", "complete, finish stop", None),
        ("no-key", None, "refused with 401"),
    ]


def test_the_document_has_every_change() -> None:
    """With both outcomes and what is seen now."""
    found = json.loads(to_json(comparison_document(compare(run_of(RIGHT), run_of(WRONG)))))
    assert found["result"] == "worse"
    assert found["old"]["verdict"] == "conforms"
    assert found["new"]["verdict"] == "does not conform"
    assert found["counts"] == {"broken": 1, "lost": 0, "healed": 0, "changed": 0}
    (rule,) = found["rules"]
    assert (rule["id"], rule["level"], rule["old"], rule["new"]) == (
        "stream/usage-alone",
        "MUST",
        "pass",
        "fail",
    )
    assert "stream-short" in rule["now"]
    assert found["exchanges"][0]["case"] == "stream-short"


def test_the_report_groups_what_changed() -> None:
    """The worst first, and the conclusion last."""
    text = comparison_report(compare(everything_right(), everything_wrong()), Style())
    assert text.index("broken: fails now") < text.index("changed: not as it was")
    assert text.splitlines()[-1].startswith("WORSE · ")
    assert "  stream/usage-alone  MUST  pass -> fail" not in text.splitlines()[-1]
    assert comparison_report(compare(run_of(), run_of()), Style()).splitlines()[-1] == (
        "NOT WORSE · no rule changed"
    )


@pytest.mark.parametrize("style", [Style(), Style(width=40, colour=True), Style(ascii=True)])
def test_the_report_is_safe_and_fits(style: Style) -> None:
    """Whatever was sent, on any terminal."""
    for run in hostile_runs():
        text = comparison_report(compare(everything_right(), run), style)
        plain = COLOUR.sub("", text)
        assert plain.replace("\n", "").isprintable()
        assert max(columns(one) for one in plain.splitlines()) <= style.width
        assert plain.isascii() or not style.ascii


def test_outcomes_are_those_of_the_runs() -> None:
    """Nothing is judged here."""
    found = compare(everything_right(), everything_wrong())
    for one in found.rules:
        assert one.old is everything_right().report.rules[one.rule]
        assert one.new is everything_wrong().report.rules[one.rule]
        assert (one.now == "") is (one.new is Outcome.PASS)
