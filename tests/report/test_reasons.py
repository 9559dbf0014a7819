"""Why a verdict stayed open."""

from dataclasses import replace

from cheapgpu.core.exchange import Closed
from cheapgpu.report.reasons import open_reasons
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
        "stream-short: the endpoint reported an error in the stream: no success was seen",
        "stream-usage: no answer came",
        "stream-cut: we stopped reading before the answer ended: no success was seen",
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
    assert open_reasons(run)[0] == ("deep: the answer was not read to its end: no success was seen")


def test_a_decided_verdict_needs_no_reason() -> None:
    """Neither conforming nor failing leaves anything open."""
    assert open_reasons(everything_right()) == open_reasons(everything_wrong()) == []


def test_nothing_to_judge_is_a_reason() -> None:
    """A run without exchanges establishes nothing, and says so."""
    assert open_reasons(run_of()) == ["no MUST rule was looked at"]
