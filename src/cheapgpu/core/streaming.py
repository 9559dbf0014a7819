"""Judges a streamed answer: what the verifier found in its bytes, and what the clock saw."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.expectation import Expectation
from cheapgpu.core.findings import Outcome, Sheet
from cheapgpu.core.limits import GRACE_SECONDS
from cheapgpu.core.stream import PRESENCE, Step
from cheapgpu.core.stream_verifier import StreamEvent, StreamSummary, StreamVerifier

#: The rules about the end of a body, which a client that leaves does not see.
_END: Final = frozenset({"stream/body-complete", *(f"stream/{rule}" for rule in PRESENCE)})
#: A stream is long enough to show increments from this many events with text on.
LONG_EVENTS: Final = 64
#: An answer that was over sooner leaves nothing to time, in seconds.
_MEASURABLE_SECONDS: Final = 0.25
#: No model speaks faster in one stream, in events a second; what came faster was held back.
_FASTEST_EVENTS: Final = 5000
#: Silence without a comment after which a client may give up, in seconds.
_HEARTBEAT_SECONDS: Final = 15.0

_CHUNKS: Final[frozenset[Step]] = frozenset(
    {"delta", "terminal", "delta+usage", "terminal+usage", "usage", "empty"}
)
_TERMINALS: Final[frozenset[Step]] = frozenset({"terminal", "terminal+usage"})
_USAGES: Final[frozenset[Step]] = frozenset({"usage", "delta+usage", "terminal+usage"})

#: rules → one of these steps must have been seen for them to say anything, and why not otherwise.
_APPLICABLE: Final[tuple[tuple[tuple[str, ...], frozenset[Step], str], ...]] = (
    (
        ("chunk-schema", "id-constant", "created-constant", "model-echoed", "one-choice"),
        _CHUNKS,
        "no chunk came",
    ),
    (("terminal-once", "quiet-after-terminal"), _TERMINALS, "no terminal choice came"),
    (("usage-alone", "usage-once", "usage-after-terminal"), _USAGES, "no usage came"),
    (("done-last",), frozenset({"done"}), "no [DONE] came"),
    (("error-schema", "error-is-final"), frozenset({"error"}), "no error came in the stream"),
)


def asks_for_long(exchange: Exchange) -> bool:
    """Whether a case asks for a long answer, so that increments can be seen."""
    return exchange.case.startswith("stream-long")


def judge_stream(
    sheet: Sheet, exchange: Exchange, wanted: Expectation
) -> tuple[StreamSummary, list[StreamEvent]]:
    """Judge the body of a stream (profile, "SSE streaming", "Usage and abnormal termination")."""
    verifier = StreamVerifier(model=wanted.model, limit=wanted.limit)
    events: list[StreamEvent] = []
    for read in exchange.reads:
        events += verifier.feed(read.data)
    summary = verifier.finish(exchange.ending)
    left = exchange.closed.how == "left"
    for finding in summary.findings:
        if left and finding.rule in _END and finding.outcome is not Outcome.FAIL:
            sheet.skip("we left on purpose", finding.rule)
        else:
            sheet.findings.append(finding)
    _hold_the_rest(sheet, exchange, summary, limited=wanted.limit is not None)
    _judge_increments(sheet, exchange, events)
    if exchange.timed:
        _judge_close(sheet, exchange, events)
        _judge_heartbeat(sheet, exchange)
    else:
        why = "no times in this file"
        sheet.skip(why, "stream/closes-after-done", "stream/heartbeat-while-silent")
    return summary, events


def _hold_the_rest(
    sheet: Sheet, exchange: Exchange, summary: StreamSummary, *, limited: bool
) -> None:
    """Say of every rule without a finding that it holds, or why it had nothing to look at."""
    found = {finding.rule for finding in summary.findings} | sheet.skipped.keys()

    def say(rules: Iterable[str], why_not: str | None) -> None:
        for rule in (f"stream/{name}" for name in rules):
            if rule in found:
                continue
            if why_not is None:
                sheet.hold(rule)
            else:
                sheet.skip(why_not, rule)

    say(("utf8", "json"), None)
    say(("events-complete",), "we stopped reading" if exchange.ending == "stopped" else None)
    unstated = exchange.closed.how == "unstated"
    say(("body-complete",), "a bare body does not say how it ended" if unstated else None)
    for rules, steps, why_not in _APPLICABLE:
        say(rules, None if summary.steps & steps else why_not)
    say(PRESENCE, "ended by error" if summary.failed else None)
    no_usage = "no valid usage came" if summary.usage is None else None
    say(("usage-adds-up",), no_usage)
    say(("usage-within-limit",), no_usage if limited else "the limit that was sent is not known")


def _judge_increments(sheet: Sheet, exchange: Exchange, events: list[StreamEvent]) -> None:
    """Judge whether text came while it was made: the only rule that reads times.

    Profile, "SSE streaming": "Flush generated content as it becomes available; a final JSON
    response wrapped in SSE is insufficient evidence of incremental delivery." Evidence can be
    lacking, so there is a third answer; a slow start alone is never held against an endpoint.
    """
    rule = "stream/incremental"
    texts = [event for event in events if event.text]
    if not asks_for_long(exchange) and len(texts) < LONG_EVENTS:
        sheet.skip(f"judged on a long answer, from {LONG_EVENTS} events with text on", rule)
        return
    if not exchange.timed or exchange.sent is None:
        sheet.skip("no times in this file", rule)
        return
    if len(texts) < LONG_EVENTS:
        few = f"{len(texts)} events with text; {LONG_EVENTS} are needed"
        sheet.find(rule, Outcome.UNKNOWN, observed=few)
        return
    arrivals = [exchange.time_of(event.at + event.length - 1) or 0.0 for event in texts]
    first, last = arrivals[0] - exchange.sent, arrivals[-1] - exchange.sent
    middle = arrivals[len(arrivals) // 2] - exchange.sent
    reads = len({exchange.read_of(event.at + event.length - 1) for event in texts})
    count = "1 read" if reads == 1 else f"{reads} reads"
    evidence = f"{len(texts)} events with text in {count}, from {first:.3f} s to {last:.3f} s"
    if last < _MEASURABLE_SECONDS:
        sheet.find(rule, Outcome.UNKNOWN, observed=f"{evidence}: over too soon to tell")
    elif reads >= 3 and first < last / 2 and middle < 0.9 * last:
        sheet.find(rule, Outcome.PASS, observed=evidence)
    elif not _held_back(first, last, len(texts)):
        sheet.find(rule, Outcome.UNKNOWN, observed=f"{evidence}: most came late, or was held back")
    elif not _held_back(first - exchange.lag, last, len(texts)):
        sheet.find(rule, Outcome.UNKNOWN, observed=f"{evidence}: {_too_busy(exchange)}")
    else:
        sheet.find(rule, expected="text while it is made", observed=f"{evidence}: held back")


def _held_back(first: float, last: float, texts: int) -> bool:
    """Whether so many texts came only at the end, and faster than any model speaks."""
    return first >= 0.95 * last and texts > _FASTEST_EVENTS * (last - first)


def _too_busy(exchange: Exchange) -> str:
    """What is said where an endpoint may have been in time, and we were not."""
    return f"this machine was too busy to time it, and read nothing for {exchange.lag:.3f} s"


def _judge_close(sheet: Sheet, exchange: Exchange, events: list[StreamEvent]) -> None:
    rule = "stream/closes-after-done"
    done = next((event for event in events if event.step == "done"), None)
    if done is None:
        sheet.skip("no [DONE] came", rule)
        return
    arrived = exchange.time_of(done.at + done.length - 1) or 0.0
    waited = exchange.closed.t - arrived
    closed_by_us = exchange.closed.how == "closed-after-done"
    if not closed_by_us and waited <= GRACE_SECONDS:
        sheet.hold(rule)
        return
    lag = exchange.lag
    late = lag >= GRACE_SECONDS / 2 if closed_by_us else waited - lag <= GRACE_SECONDS
    observed = f"still open {waited:.1f} s after [DONE]"
    sheet.find(
        rule,
        Outcome.UNKNOWN if late else Outcome.ADVICE,
        expected=f"the end of the body within {GRACE_SECONDS:g} s",
        observed=f"{observed}: {_too_busy(exchange)}" if late else observed,
        at=done.at,
        length=done.length,
    )


def _judge_heartbeat(sheet: Sheet, exchange: Exchange) -> None:
    times = [exchange.sent or 0.0, *(read.t for read in exchange.reads), exchange.closed.t]
    gaps = [(later - earlier, earlier) for earlier, later in pairwise(times)]
    longest, since = max(gaps, default=(0.0, 0.0))
    if longest <= _HEARTBEAT_SECONDS:
        sheet.hold("stream/heartbeat-while-silent")
        return
    late = longest - exchange.lag <= _HEARTBEAT_SECONDS
    observed = f"nothing for {longest:.1f} s from {since:.3f} s on"
    sheet.find(
        "stream/heartbeat-while-silent",
        Outcome.UNKNOWN if late else Outcome.ADVICE,
        expected=f"a comment at least every {_HEARTBEAT_SECONDS:g} s",
        observed=f"{observed}: {_too_busy(exchange)}" if late else observed,
    )
