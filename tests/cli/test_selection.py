"""Which rules decide."""

from pathlib import Path

import pytest

from cheapgpu.cli.selection import decided, narrow, selected, terms_of
from cheapgpu.core.errors import SelectionError
from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import BY_ID, RULES
from cheapgpu.report.run import NOT_SELECTED
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


def test_terms_keep_the_known_failures_of_chosen_rules(tmp_path: Path) -> None:
    """An entry whose rule is left out neither excuses nor fails anything, date and all."""
    known = tmp_path / "known.toml"
    known.write_text(
        '[[known]]\nid = "stream/json"\nbecause = "x"\nuntil = 2020-01-01\n'
        '[[known]]\nid = "whole/json"\nbecause = "y"\n'
    )
    run = run_of(example("stream/usage-alone"))
    every = decided(run, terms_of(None, None, known, strict=True))
    assert [entry.id for entry in every.outdated] == ["stream/json"]
    assert every.strict
    some = decided(run, terms_of(["whole/*"], None, known, strict=False))
    assert [entry.id for entry in some.known] == ["whole/json"]
    assert some.outdated == []
    assert some.narrowed
    assert not every.narrowed
