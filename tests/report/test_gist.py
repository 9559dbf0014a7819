"""A rule in a line, and as a block."""

from dataclasses import replace

from cheapgpu.core.findings import Outcome
from cheapgpu.core.rules import BY_ID, RULES
from cheapgpu.report.gist import block_of, gist, line, outdated
from tests.report.known_runs import EXPIRED, PASSING, known_run
from tests.report.runs import all_runs, example, run_of
from tests.report.test_terminal import HOSTILE, hostile_runs


def test_a_gist_says_what_was_wanted_what_was_seen_and_where() -> None:
    """Enough by itself, for a server that shows nothing else."""
    assert gist(run_of(example("refuse/tools", "tools")), "refuse/tools") == (
        "expected 400 or 422; observed 200 text/event-stream (tools)"
    )
    assert gist(run_of(example("stream/done-last", "stream-short")), "stream/done-last") == (
        "[DONE] (stream-short, body 995)"
    )


def test_a_rule_that_was_skipped_gives_its_reason() -> None:
    """And a rule that passes, its sentence or what was seen."""
    run = run_of(example("stream/events-complete"))
    assert gist(run, "stream/done-present") == "follows from stream/events-complete"
    assert gist(run, "stream/utf8") == f"{BY_ID['stream/utf8'].sentence.rstrip('.')} (example)"


def test_an_outcome_without_a_finding_has_the_rule_s_sentence() -> None:
    """A report that was made by hand may have one."""
    run = run_of()
    rules = run.report.rules | {"stream/json": Outcome.UNKNOWN}
    made = replace(run, report=replace(run.report, rules=rules))
    assert gist(made, "stream/json") == BY_ID["stream/json"].sentence
    assert block_of(made, "stream/json") == ""


def test_every_gist_is_one_safe_line() -> None:
    """Whatever endpoints sent."""
    for _, run in [*all_runs(), *(("hostile", run) for run in hostile_runs())]:
        for rule in run.report.rules:
            text = gist(run, rule)
            assert text.isprintable()
            assert 0 < len(text) <= 400


def test_a_long_line_is_cut() -> None:
    """With a sign that it was."""
    assert len(line("x" * 1000)) == 400
    assert line("x" * 1000).endswith("…")
    assert line(HOSTILE).isprintable()


def test_a_block_is_that_of_the_terminal() -> None:
    """For every rule that is not as it should be; none for one that was not looked at."""
    run = run_of(example("stream/done-last", "stream-short"))
    assert block_of(run, "stream/done-last").startswith("✗ stream/done-last")
    assert block_of(run, "whole/json") == ""
    for rule in RULES:
        broken = run_of(example(rule.id))
        if broken.report.rules[rule.id] not in (Outcome.SKIP, Outcome.PASS):
            assert rule.id in block_of(broken, rule.id)


def test_an_outdated_entry_says_what_to_do() -> None:
    """Take it out, or mend the endpoint."""
    assert outdated(known_run(PASSING), PASSING) == (
        "known failure that passes: take it out of the list (the proxy cuts events)"
    )
    text = outdated(known_run(EXPIRED), EXPIRED)
    assert text.startswith("known failure, accepted until 2026-11-01, and that day is over")
    hostile = replace(PASSING, because=HOSTILE)
    assert outdated(known_run(hostile), hostile).isprintable()
