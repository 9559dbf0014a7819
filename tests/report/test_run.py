"""A run: what was looked at, and what counts."""

from cheapgpu.core.findings import Outcome
from cheapgpu.report.run import Run
from tests.report.runs import everything_wrong, example, run_of


def test_rules_that_were_skipped_were_not_looked_at() -> None:
    """The number of rules looked at leaves out those with outcome skip."""
    run = run_of(example("auth/missing-refused", good=True))
    assert run.looked_at == sum(o is not Outcome.SKIP for o in run.report.rules.values()) == 6


def test_a_consequence_says_what_it_follows_from() -> None:
    """The reason for not looking at a rule is the rule that broke first."""
    run = run_of(example("stream/events-complete"))
    assert run.why_skipped("stream/done-present") == "follows from stream/events-complete"


def test_other_reasons_come_from_the_judgement() -> None:
    """A rule that no exchange called for says so."""
    run = run_of(example("stream/json", good=True))
    assert run.why_skipped("whole/json") == "no exchange called for it"
    assert run.why_skipped("stream/error-schema") == "no error came in the stream"


def test_a_run_pairs_each_exchange_with_its_judgement() -> None:
    """The order of the exchanges is the order of the judgements."""
    run = everything_wrong()
    assert all(exchange.case == judgement.case for exchange, judgement in run.pairs())


def test_what_was_not_selected_is_not_broken() -> None:
    """A rule that the report does not look at is neither shown nor counted as broken."""
    whole = run_of(example("stream/usage-alone"))
    outcomes = dict.fromkeys(whole.report.rules, Outcome.SKIP)
    report = type(whole.report)(
        verdict="not established",
        judgements=whole.report.judgements,
        rules=outcomes,
        skipped={},
    )
    run = Run(report=report, exchanges=whole.exchanges)
    assert whole.broken(whole.report.judgements[0]) == ["stream/usage-alone"]
    assert run.broken(run.report.judgements[0]) == []
