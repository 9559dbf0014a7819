"""Exchange to findings and outcome; recording to verdict. One judgement, wherever it is made.

Judging is by bytes: how a body was cut into reads changes nothing, but for `stream/incremental`,
`stream/closes-after-done` and `stream/heartbeat-while-silent`, which read the clock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from cheapgpu.core import findings as found
from cheapgpu.core import notes, rules
from cheapgpu.core.across import CountTokens, judge_across
from cheapgpu.core.answers import judge_head, judge_whole
from cheapgpu.core.exchange import STOPPED_BY_US, Exchange, Head
from cheapgpu.core.expectation import CONCURRENT, TRANSIENT, Expectation, expectation
from cheapgpu.core.findings import ExchangeOutcome, Judgement, Outcome, Sheet, Verdict
from cheapgpu.core.messages import FinishReason, Usage
from cheapgpu.core.refusals import (
    is_error_body,
    is_small,
    judge_acceptance,
    judge_admission,
    judge_error_body,
    judge_error_json,
)
from cheapgpu.core.streaming import asks_for_long, judge_stream

_STOPPED = "we stopped reading before the answer ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a set of exchanges proves about an endpoint."""

    verdict: Verdict
    judgements: tuple[Judgement, ...]
    #: The outcome of every rule of the registry, in its order.
    rules: dict[str, Outcome]
    #: Why a rule was not looked at, for those with outcome `skip`.
    skipped: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the body of an answer gave."""

    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    failed: bool = False
    stopped: bool = False
    notes: dict[str, Any] | None = None


def judge(exchange: Exchange, *, started: float | None = None) -> Judgement:
    """Judge one exchange by every rule that it can say something about.

    `started` is the time of day at which it was made (Unix seconds), if known; only notes read it.
    """
    sheet = Sheet()
    wanted = expectation(exchange)
    head = exchange.head
    answer = _Answer()
    unseen = ""
    if head is None and exchange.timed:
        outcome: ExchangeOutcome = "unknown"
        unseen = "no answer came"
        _no_answer(sheet, exchange, wanted)
    elif head is not None and not 200 <= head.status < 300:
        outcome = "refused"
        _judge_refusal(sheet, exchange, head, wanted)
    elif head is None and is_error_body(exchange.body):
        outcome = "refused"
        sheet.skip("a bare body has no head", "error/content-type")
        judge_error_json(sheet, exchange)
    else:
        if head is not None:
            judge_admission(sheet, exchange, head, wanted)
            judge_acceptance(sheet, exchange, head, wanted)
        answer = _judge_answer(sheet, exchange, head, wanted, started)
        outcome = found.exchange_outcome(
            sheet.findings, failed=answer.failed, stopped=answer.stopped
        )
        if answer.failed:
            unseen = found.ERROR_REPORTED
        elif answer.stopped and exchange.closed.how != "left":
            ours = exchange.closed.how in STOPPED_BY_US
            unseen = _STOPPED if ours else "the answer was beyond a limit of ours"
        if wanted.outside is not None:
            outcome = "failed"
    return Judgement(
        case=exchange.case,
        outcome=outcome,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        rules=found.worst(sheet.findings),
        findings=tuple(_timed(finding, exchange) for finding in sheet.findings),
        unseen=unseen,
        notes=answer.notes or {},
        skipped=sheet.skipped,
    )


def report(judgements: Sequence[Judgement]) -> Report:
    """Combine judgements over the registry: what was looked at, what holds, and the verdict.

    A rule that no exchange said anything about is skipped, with the reason.
    """
    outcomes = found.combine(judgements)
    reasons: dict[str, str] = {}
    for judgement in judgements:
        reasons.update(judgement.skipped)
        follows = (f for f in judgement.findings if f.follows)
        reasons.update({f.rule: f"follows from {f.follows}" for f in follows})
    by_rule = {rule.id: outcomes.get(rule.id, Outcome.SKIP) for rule in rules.RULES}
    must = (by_rule[rule.id] for rule in rules.RULES if rule.level == "MUST")
    return Report(
        verdict=found.verdict(must, judgements),
        judgements=tuple(judgements),
        rules=by_rule,
        skipped={
            rule: reasons.get(rule, "no exchange called for it")
            for rule, outcome in by_rule.items()
            if outcome is Outcome.SKIP
        },
    )


def verify(
    exchanges: Iterable[Exchange],
    *,
    started: str | None = None,
    count_tokens: CountTokens | None = None,
) -> Report:
    """Judge exchanges, alone and together, and combine them.

    `started` is the recording's time of day (RFC 3339), `count_tokens` the model's tokenizer.
    """
    begun = _unix_time(started)
    made = tuple(exchanges)
    alone = [judge(exchange, started=begun) for exchange in made]
    return report(judge_across(made, alone, count_tokens))


def _judge_refusal(sheet: Sheet, exchange: Exchange, head: Head, wanted: Expectation) -> None:
    judge_admission(sheet, exchange, head, wanted)
    if wanted.rule is None and wanted.mode is not None:
        features = judge_acceptance(sheet, exchange, head, wanted)
        if exchange.case.startswith(CONCURRENT) and head.status in TRANSIENT:
            sheet.skip("the endpoint was busy, which it may say", f"{wanted.mode}/status")
        else:
            small = is_small(exchange, wanted) and not features
            judge_head(sheet, head, wanted.mode, small=small)
        if wanted.mode == "stream" and asks_for_long(exchange):
            _nothing_to_time(sheet)
    judge_error_body(sheet, exchange, head)


def _judge_answer(
    sheet: Sheet,
    exchange: Exchange,
    head: Head | None,
    wanted: Expectation,
    started: float | None,
) -> _Answer:
    mode = wanted.mode
    if mode is None:
        return _Answer()
    if head is None:
        why = "a bare body has no head"
        sheet.skip(why, *(f"{mode}/{name}" for name in ("status", "content-type")))
        sheet.skip(why, f"{mode}/content-encoding")
    elif not judge_head(sheet, head, mode, arrived=_arrival(exchange)):
        return _Answer()
    if mode == "whole":
        whole = judge_whole(sheet, exchange, wanted)
        completion = whole.completion
        return _Answer(
            completion.choices[0].finish_reason if completion is not None else None,
            completion.usage if completion is not None else None,
            failed=whole.failed,
            stopped=whole.stopped,
            notes=notes.whole_notes(exchange),
        )
    summary, events = judge_stream(sheet, exchange, wanted)
    return _Answer(
        summary.finish_reason,
        summary.usage,
        failed=summary.failed,
        stopped=summary.stopped,
        notes=notes.stream_notes(exchange, events, summary.comments, started),
    )


def _arrival(exchange: Exchange) -> str:
    """When a body came that cannot be read, in words."""
    if not exchange.timed:
        return ""
    since = exchange.sent or 0.0
    reads = exchange.reads
    if not reads:
        return f"no byte of its body in {exchange.closed.t - since:.3f} s"
    first, last = reads[0].t - since, reads[-1].t - since
    return f"{len(exchange.body)} bytes, from {first:.3f} s to {last:.3f} s"


def _no_answer(sheet: Sheet, exchange: Exchange, wanted: Expectation) -> None:
    """No head came: what was to be looked at could not be."""
    closed = exchange.closed
    ours = "we stopped waiting" if closed.how in STOPPED_BY_US else closed.how
    observed = f"no answer: {closed.detail or ours}"
    rule = wanted.rule or (f"{wanted.mode}/status" if wanted.mode else "error/status")
    sheet.find(rule, Outcome.ERROR, observed=observed)
    if rule == "stream/status" and asks_for_long(exchange):
        _nothing_to_time(sheet)


def _nothing_to_time(sheet: Sheet) -> None:
    """A long answer was asked for and did not come: increments were not seen either."""
    status = max(f.outcome for f in sheet.findings if f.rule == "stream/status")
    if status is not Outcome.FAIL:
        sheet.find("stream/incremental", status, observed="no answer to time")


def _timed(finding: found.Finding, exchange: Exchange) -> found.Finding:
    if finding.at is None or finding.t is not None:
        return finding
    return replace(finding, t=exchange.time_of(finding.at + max(finding.length - 1, 0)))


def _unix_time(started: str | None) -> float | None:
    try:
        return datetime.fromisoformat(started).timestamp() if started else None
    except ValueError:
        return None
