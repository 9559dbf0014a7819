"""Which rules decide."""

import pytest

from cheapgpu.cli.selection import NOT_SELECTED, narrow, selected
from cheapgpu.core.errors import SelectionError
from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import BY_ID, RULES
from tests.report.runs import example, run_of


def test_without_options_every_rule_is_selected() -> None:
    """And a report over all of them is left as it is."""
    report = run_of(example("stream/usage-alone")).report
    assert selected([], []) == frozenset(BY_ID)
    assert narrow(report, selected([], [])) is report


def test_only_and_skip_combine() -> None:
    """What `skip` names is taken out of what `only` names, or of all."""
    assert selected(["auth/*"], ["auth/missing-*"]) == {
        "auth/wrong-refused",
        "auth/refused-before-inference",
    }
    assert len(selected([], ["refuse/*"])) == sum(rule.area != "refuse" for rule in RULES)


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    """In either option, with the ids nearest to it."""
    with pytest.raises(SelectionError, match="stream/usage-alone"):
        selected(["stream/usage-alon"], [])
    with pytest.raises(SelectionError):
        selected([], ["no/such"])


def test_rules_that_are_not_selected_do_not_decide() -> None:
    """A broken rule that is left out is neither a failure nor a pass: it was not looked at."""
    report = run_of(example("stream/usage-alone")).report
    assert report.verdict == "does not conform"
    narrowed = narrow(report, selected([], ["stream/usage-alone"]))
    assert narrowed.verdict != "does not conform"
    assert narrowed.rules["stream/usage-alone"] is Outcome.SKIP
    assert narrowed.skipped["stream/usage-alone"] == NOT_SELECTED


def test_a_selection_of_nothing_that_applies_establishes_nothing() -> None:
    """Rules that no exchange called for prove nothing."""
    report = run_of(example("stream/json", good=True)).report
    assert narrow(report, selected(["whole/*"], [])).verdict == "not established"
