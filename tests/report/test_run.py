"""A run: what was looked at, and what counts."""

from dataclasses import replace

from cheapgpu.core.exchange import Closed
from cheapgpu.core.findings import Outcome
from cheapgpu.report.known import KnownFailure
from cheapgpu.report.run import Run
from tests.report.known_runs import EXPIRED, KNOWN, PASSING, UNSEEN, advised_run, known_run
from tests.report.runs import bare, everything_wrong, example, run_of


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


def test_a_known_failure_is_excused_and_changes_no_verdict() -> None:
    """What was proven stays; what decides the exit code leaves the known failure out."""
    run = known_run(KNOWN, UNSEEN)
    assert run.report.verdict == "does not conform"
    assert run.standing == "conforms"
    assert run.excuse("stream/usage-alone") == KNOWN
    assert not run.fails("stream/usage-alone")
    assert [run.state_of(entry) for entry in run.known] == ["known", "not seen"]
    assert run.outdated == []


def test_a_known_failure_excuses_its_own_rule_only() -> None:
    """Another failure still decides."""
    run = replace(everything_wrong(), known=(KNOWN,))
    assert run.standing == "does not conform"
    assert run.fails("stream/usage-once")


def test_what_is_open_stays_open() -> None:
    """A known failure among rules that could not be decided establishes nothing."""
    failed = example("stream/usage-alone", "stream-short")
    silent = replace(failed, case="silent", head=None, reads=(), closed=Closed(t=3, how="timeout"))
    assert replace(run_of(failed, silent), known=(KNOWN,)).standing == "not established"


def test_a_known_failure_that_is_outdated_fails_the_run() -> None:
    """One that passes, and one whose date is over, whatever else holds."""
    assert known_run(KNOWN, PASSING).outdated == [PASSING]
    assert known_run(KNOWN, PASSING).standing == "does not conform"
    expired = known_run(EXPIRED)
    assert expired.state_of(EXPIRED) == "expired"
    assert expired.excuse("stream/usage-alone") is None
    assert expired.standing == "does not conform"


def test_strict_lets_advice_fail_the_run() -> None:
    """Unless it is known; the verdict stays."""
    accepted = KnownFailure(id="stream/closes-after-done", because="the proxy keeps it open")
    assert advised_run().standing == "conforms"
    assert advised_run(strict=True).standing == "does not conform"
    assert advised_run(strict=True).report.verdict == "conforms"
    assert advised_run(accepted, strict=True).standing == "conforms"


def test_the_model_is_the_one_that_was_asked_for() -> None:
    """As the requests name it; nothing where none does."""
    assert everything_wrong().model == "example-local-model"
    assert run_of(bare(b"data: [DONE]\n\n")).model == ""
