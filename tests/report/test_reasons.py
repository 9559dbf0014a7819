"""Why a verdict stayed open."""

from dataclasses import replace

from cheapgpu.cli.selection import narrow, selected
from cheapgpu.core.exchange import Closed
from cheapgpu.report.reasons import open_reasons, standing_reasons
from tests.report.known_runs import KNOWN, PASSING, advised_run, known_run
from tests.report.runs import (
    everything_right,
    everything_wrong,
    example,
    nothing_established,
    run_of,
)


def test_each_exchange_without_success_has_its_reason() -> None:
    """An error in the stream, silence and a cut by us are three reasons."""
    reasons = open_reasons(nothing_established())
    assert reasons[:3] == [
        "stream-short: the endpoint reported an error in its answer",
        "stream-usage: no answer came",
        "stream-cut: we stopped reading before the answer ended",
    ]


def test_rules_that_stayed_open_are_named() -> None:
    """What could not be decided is part of the reason."""
    assert open_reasons(nothing_established())[3] == (
        "not decided: stream/status, stream/body-complete, stream/done-present"
    )


def test_an_answer_past_our_limits_has_a_reason() -> None:
    """A body that a limit of ours kept from being read is not called cut by the endpoint."""
    deep = example("whole/json", "deep", good=True)
    body = b'{"a":' + b"[" * 200 + b"]" * 200 + b"}"
    read = replace(deep.reads[0], data=body)
    run = run_of(replace(deep, reads=(read,), closed=Closed(t=0.1, how="chunked-end")))
    reason = "deep: the answer was beyond a limit of ours"
    assert open_reasons(run)[0] == reason


def test_a_decided_verdict_needs_no_reason() -> None:
    """Neither conforming nor failing leaves anything open."""
    assert open_reasons(everything_right()) == open_reasons(everything_wrong()) == []


def test_nothing_to_judge_is_a_reason() -> None:
    """A run without exchanges establishes nothing, and says so."""
    assert open_reasons(run_of()) == ["no MUST rule was looked at"]


def test_a_rule_that_was_left_out_decides_nothing() -> None:
    """An answer that broke only what was not selected conforms in what was."""
    run = run_of(example("stream/usage-alone", "stream-short"))
    left_out = replace(run, report=narrow(run.report, selected([], ["stream/usage-alone"])))
    assert (left_out.report.verdict, open_reasons(left_out)) == ("conforms", [])


def test_the_exit_code_is_explained_where_it_is_not_that_of_the_verdict() -> None:
    """What is excused, what is outdated and what is strict; nothing where they agree."""
    assert standing_reasons(known_run()) == []
    assert standing_reasons(known_run(KNOWN)) == [
        "all that fails is known: for the exit code the run conforms"
    ]
    (outdated,) = standing_reasons(replace(everything_right(), known=(PASSING,)))
    assert outdated.startswith("1 known failure no longer as listed")
    (strict,) = standing_reasons(advised_run(strict=True))
    assert strict.startswith("advice counts, as asked: stream/closes-after-done")
    assert standing_reasons(nothing_established()) == []


def test_a_run_that_is_open_but_for_what_is_known_says_so() -> None:
    """The exit code is 3 then, not 1."""
    failed = example("stream/usage-alone", "stream-short")
    silent = replace(failed, case="silent", head=None, reads=(), closed=Closed(t=3, how="timeout"))
    assert standing_reasons(replace(run_of(failed, silent), known=(KNOWN,))) == [
        "what fails is known: for the exit code the run is not established"
    ]
