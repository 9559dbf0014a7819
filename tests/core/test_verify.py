"""Exchanges and recordings get the judgement that they must."""

import fnmatch
import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.core.examples import (
    DONE,
    FALLS,
    RAIN,
    ROLE,
    STOP,
    SUMMARY,
    chunk,
    completion,
    request,
)
from cheapgpu.core.exchange import Closed, Exchange, Head, Read
from cheapgpu.core.findings import Judgement, Outcome
from cheapgpu.core.limits import ANSWER_BYTES
from cheapgpu.core.messages import Usage
from cheapgpu.core.recording import read_recording
from cheapgpu.core.verify import judge, verify
from tests.core.exchanges import (
    EVENTS,
    JSON,
    STREAM_BODY,
    WHOLE_BODY,
    bare,
    exchange,
    unanswered,
    whole,
)

CORPUS = Path("tests/data/corpus")
ENTRIES = [
    (folder, entry)
    for folder in ("quirks", "engines")
    for entry in json.loads((CORPUS / folder / "index.json").read_text())
]


@pytest.mark.parametrize(
    ("folder", "entry"), ENTRIES, ids=[f"{folder}/{entry['file']}" for folder, entry in ENTRIES]
)
def test_every_recording_of_the_corpus_is_judged_as_it_must(folder: str, entry: Any) -> None:
    """The outcome is the index's, what it lists is broken, and of complete ones nothing is."""
    recording = read_recording((CORPUS / folder / entry["file"]).read_bytes())
    judgement = judge(recording.exchanges[0])
    assert judgement.outcome == entry["expect"]["outcome"]
    for rule in entry["expect"]["broken"]:
        assert fnmatch.filter(judgement.broken, rule), (rule, judgement.broken)
    if judgement.outcome == "complete":
        assert judgement.broken == []
        assert judgement.usage is not None
        assert judgement.finish_reason is not None


def test_how_reads_were_cut_changes_nothing_but_what_reads_the_clock() -> None:
    """Re-cutting the reads of any recording leaves outcome, rules and findings as they were."""
    chance = random.Random(11)
    for folder, entry in ENTRIES:
        made = read_recording((CORPUS / folder / entry["file"]).read_bytes()).exchanges[0]
        cuts = sorted(chance.choices(range(len(made.body) + 1), k=5))
        recut = _recut(made, [0, *cuts, len(made.body)])
        assert _timeless(judge(recut)) == _timeless(judge(made)), entry["file"]


def _recut(made: Exchange, cuts: list[int]) -> Exchange:
    reads = [Read(t=0.5, at=a, data=made.body[a:b]) for a, b in pairwise(cuts) if a < b]
    return Exchange(
        case=made.case,
        credential=made.credential,
        model=made.model,
        request=made.request,
        sent=made.sent,
        head=made.head,
        reads=tuple(reads),
        closed=made.closed,
    )


CLOCK = {"stream/incremental", "stream/closes-after-done", "stream/heartbeat-while-silent"}


def _timeless(judgement: Judgement) -> tuple[Any, ...]:
    findings = [
        (f.rule, f.outcome, f.expected, f.observed, f.follows, f.at, f.length, f.event, f.count)
        for f in judgement.findings
        if f.rule not in CLOCK
    ]
    rules = {rule: outcome for rule, outcome in judgement.rules.items() if rule not in CLOCK}
    return judgement.outcome, judgement.usage, rules, findings


@pytest.mark.parametrize("how", ["eof", "chunked-end", "reset", "closed-after-done"])
def test_no_prefix_of_a_stream_is_complete(how: Any) -> None:
    """Until the blank line after [DONE] is there, nothing is complete, however the body ended."""
    for end in range(len(STREAM_BODY)):
        assert judge(exchange(STREAM_BODY[:end], how=how)).outcome != "complete"
    whole_stream = judge(exchange(how=how))
    assert (whole_stream.outcome == "complete") == (how in ("chunked-end", "closed-after-done"))


def test_no_prefix_of_a_plain_answer_is_complete() -> None:
    """Without its closing brace a plain answer proves nothing, whatever the framing says."""
    for end in range(len(WHOLE_BODY)):
        for how in ("eof", "length"):
            assert judge(whole(WHOLE_BODY[:end], how=how)).outcome != "complete"
    assert judge(whole()).outcome == "complete"


@given(st.integers(0, len(STREAM_BODY) - 1), st.integers(0, 255), st.booleans())
def test_a_changed_byte_is_at_most_a_finding(offset: int, byte: int, cut: bool) -> None:  # noqa: FBT001 -- drawn
    """Any byte of a complete stream may change; nothing is raised, and places stay in the body."""
    body = STREAM_BODY[:offset] + bytes([byte]) + STREAM_BODY[offset + 1 :]
    judgement = judge(exchange(body, cut=7 if cut else 0))
    assert (judgement.outcome == "complete") == (judgement.broken == [])
    for finding in judgement.findings:
        assert finding.at is None or 0 <= finding.at <= finding.at + finding.length <= len(body)


def rules_of(made: Exchange) -> dict[str, str]:
    """The outcome of each rule that an exchange says something about, passes left out."""
    return {
        rule: outcome.word
        for rule, outcome in judge(made).rules.items()
        if outcome is not Outcome.PASS
    }


ERROR = b'{"error":{"message":"no","type":"t"}}'
#: Requests that may be refused for their size.
LARGE = request(max_completion_tokens=256)
WHOLE_LARGE = request(max_completion_tokens=256, stream=False, stream_options=...)
PLAIN_400: dict[str, Any] = {"status": 400, "headers": JSON}


@pytest.mark.parametrize(
    ("made", "outcome", "rules"),
    [
        # A request outside the profile.
        (exchange(ERROR, sent=b"{", **PLAIN_400), "refused", {}),
        (exchange(sent=b"{"), "failed", {"refuse/not-json": "fail"}),
        (exchange(ERROR, sent=b"{", status=500, headers=JSON), "refused", {"error/status": "fail"}),
        (exchange(ERROR, sent=b"{", status=415, headers=JSON), "refused", {"error/status": "fail"}),
        (exchange(ERROR, sent=b"{", status=302, headers=JSON), "refused", {"error/status": "fail"}),
        (exchange(ERROR, sent=b"{", status=429, headers=JSON), "refused",
         {"refuse/not-json": "error"}),
        (exchange(ERROR, sent=b"{", status=401, headers=JSON), "refused",
         {"refuse/not-json": "error"}),
        (exchange(ERROR, sent=b"{", status=401, headers=JSON, credential="none"), "refused", {}),
        # A request that is valid but for its key or its model.
        (whole(ERROR, status=401, credential="none"), "refused", {}),
        (whole(ERROR, status=403, credential="wrong"), "refused", {}),
        (whole(credential="wrong"), "failed", {"auth/wrong-refused": "fail"}),
        (whole(ERROR, status=400, credential="wrong"), "refused", {"auth/wrong-refused": "fail"}),
        (whole(ERROR, status=503, credential="none"), "refused", {"auth/missing-refused": "error"}),
        (whole(STREAM_BODY, status=401, headers=EVENTS, credential="none"), "refused",
         {"auth/refused-before-inference": "fail", "error/content-type": "advice"}),
        (whole(ERROR, status=404, model="unknown"), "refused", {}),
        (whole(ERROR, status=422, model="unknown"), "refused", {"error/status": "fail"}),
        (whole(model="unknown"), "failed", {"refuse/unknown-model": "fail"}),
        # A valid request that is refused proves nothing about answers.
        (whole(ERROR, status=400), "refused", {"whole/status": "fail"}),
        (whole(ERROR, status=402), "refused", {"whole/status": "error"}),
        (exchange(ERROR, status=503, headers=JSON), "refused", {"stream/status": "error"}),
        (whole(ERROR, status=307), "refused", {"whole/status": "fail"}),
        (whole(b"", status=204), "failed", {"whole/status": "fail"}),
        # A limit over the ceiling.
        (whole(ceiling=63), "failed", {"refuse/limit-over-ceiling": "fail"}),
        (whole(ceiling=64), "complete", {}),
        (whole(ERROR, status=422, ceiling=8), "refused", {}),
        # Others were under way: an endpoint may be busy, and says so.
        (exchange(ERROR, status=503, headers=JSON, case="concurrent-2"), "refused", {}),
        # We left on purpose: what was seen is judged, what would have come later is not.
        (exchange(STREAM_BODY[:600], how="left"), "unknown", {}),
        (exchange(RAIN + STOP + STOP, how="left"), "failed", {"stream/terminal-once": "fail"}),
        # The body of a refusal.
        (whole(b"<html>", status=502, headers=(("content-type", "text/html"),)), "refused",
         {"whole/status": "error", "error/content-type": "advice"}),
        (whole(b"", status=500, headers=()), "refused",
         {"whole/status": "error", "error/content-type": "advice"}),
        (whole(b"{", status=400), "refused", {"whole/status": "fail", "error/json": "fail"}),
        (whole(b"[" * 200, status=400), "refused",
         {"whole/status": "fail", "error/json": "unknown"}),
        (whole(b'{"detail":"x"}', status=400), "refused",
         {"whole/status": "fail", "error/schema": "fail"}),
        (whole(b"{", status=400, how="timeout"), "refused",
         {"whole/status": "fail", "error/json": "error"}),
        # A long answer that was asked for and not seen.
        (whole(ERROR, status=400, sent=WHOLE_LARGE), "refused", {"whole/status": "unknown"}),
        (exchange(ERROR, status=400, headers=JSON, case="stream-long-2", sent=LARGE), "refused",
         {"stream/status": "unknown", "stream/incremental": "unknown"}),
        (exchange(ERROR, status=503, headers=JSON, case="stream-long"), "refused",
         {"stream/status": "error", "stream/incremental": "error"}),
        # A plain answer that is not whole, or not one.
        (whole(WHOLE_BODY[:-9], how="eof", headers=(*JSON, ("content-length", "999"))), "unknown",
         {"whole/body-complete": "fail"}),
        (whole(WHOLE_BODY, how="eof"), "complete", {}),
        (whole(WHOLE_BODY, how="reset"), "unknown", {"whole/body-complete": "fail"}),
        (whole(WHOLE_BODY, how="deadline"), "unknown", {"whole/body-complete": "error"}),
        (whole(b"null"), "failed", {"whole/json": "fail"}),
        (whole(b'{"x":' * 200), "unknown", {"whole/json": "unknown"}),
        (whole(completion(model="other", usage=...)), "failed",
         {"whole/schema": "fail", "whole/model-echoed": "fail"}),
        (whole(completion(model=5)), "failed", {"whole/schema": "fail"}),
        (whole(headers=(*JSON, ("content-encoding", "gzip"))), "failed",
         {"whole/content-encoding": "fail"}),
        # Streams that are not whole.
        (exchange(how="timeout"), "unknown", {"stream/body-complete": "error"}),
        (exchange(STREAM_BODY[:400], how="cancelled"), "unknown",
         {"stream/body-complete": "error", "stream/terminal-present": "unknown",
          "stream/usage-present": "unknown", "stream/done-present": "unknown"}),
        (exchange(STREAM_BODY[:-1], how="eof", headers=(EVENTS[0],)), "unknown",
         {"stream/events-complete": "fail"}),
        (exchange(RAIN.replace(b'"Rain"', b'"Rain","x":' + b"[" * 200 + b"]" * 200)), "unknown",
         {"stream/json": "unknown", "stream/terminal-present": "unknown",
          "stream/usage-present": "unknown", "stream/done-present": "unknown"}),
        (exchange(b""), "unknown",
         {"stream/terminal-present": "fail", "stream/usage-present": "fail",
          "stream/done-present": "fail"}),
        (exchange(STREAM_BODY + b"\xe2\x82"), "failed", {"stream/utf8": "fail"}),
        # What could not be dispatched is not missed at the end of a body.
        (exchange(STREAM_BODY + b": pi"), "complete", {}),
        (exchange(STREAM_BODY + b"id: 5\n"), "complete", {}),
        (exchange(STREAM_BODY + b"da"), "unknown", {"stream/events-complete": "fail"}),
        # The framing is compared with what came.
        (whole(headers=(*JSON, ("content-length", "9999"))), "unknown",
         {"whole/body-complete": "fail"}),
        (exchange(how="eof", headers=(EVENTS[0], ("transfer-encoding", "Chunked"))), "unknown",
         {"stream/body-complete": "fail"}),
        # An error beside a completion is no success.
        (whole(completion(error={"message": "m", "type": "t"})), "failed", {}),
        # Usage that states nothing is not stated.
        (exchange(ROLE + RAIN + STOP + chunk(choices=[], usage={}) + DONE), "failed",
         {"stream/chunk-schema": "fail", "stream/usage-present": "fail"}),
        (whole(b"[]" + b" " * ANSWER_BYTES), "unknown", {"whole/body-complete": "error"}),
        (exchange(ROLE + b"data: 5\n\n" + STOP + SUMMARY + DONE), "failed",
         {"stream/json": "fail"}),
        (exchange(ROLE + b"data: {\ndata: }x\n\n" + STOP + SUMMARY + DONE), "failed",
         {"stream/json": "fail"}),
        (exchange(b'data: {"x":\ndata: 1}\n\n' + STOP + SUMMARY + DONE), "failed",
         {"stream/chunk-schema": "fail"}),
        # No answer at all.
        (exchange(b"", status=302, case="stream-long"), "refused",
         {"stream/status": "fail", "error/content-type": "advice"}),
        (unanswered(case="stream-long"), "unknown",
         {"stream/status": "error", "stream/incremental": "error"}),
        (unanswered(), "unknown", {"stream/status": "error"}),
        (unanswered("timeout", "no first byte"), "unknown", {"stream/status": "error"}),
    ],
)  # fmt: skip
def test_an_exchange_is_judged_by_what_it_called_for(
    made: Exchange, outcome: str, rules: dict[str, str]
) -> None:
    """Refusals, answers and silence are told apart, and only causes are counted."""
    assert (judge(made).outcome, rules_of(made)) == (outcome, rules)


def test_what_only_follows_decides_nothing() -> None:
    """A [DONE] whose blank line is missing is one fault, shown with what follows from it."""
    judgement = judge(exchange(STREAM_BODY[:-1]))
    assert judgement.broken == ["stream/events-complete"]
    follows = {f.rule: f.follows for f in judgement.findings if f.follows}
    assert follows == {"stream/done-present": "stream/events-complete"}
    assert "stream/done-present" not in judgement.rules


def test_a_valid_request_must_be_taken_however_it_is_written() -> None:
    """A small request that is refused for its form is a fault; a large one may be too large."""
    forms = request(
        max_completion_tokens=8,
        messages=[{"role": "user", "content": "é"}, {"role": "assistant", "content": "a"}],
    ).replace(b":8,", b":8.0,")
    one_form = request(max_completion_tokens=8).replace(b":8,", b":8.0,")
    assert judge(exchange(ERROR, sent=one_form, **PLAIN_400)).broken == ["accepted/integers"]
    accepted = {"accepted/integers", "accepted/unicode", "accepted/roles"}
    several = judge(exchange(ERROR, sent=forms, **PLAIN_400))
    assert {r for r, o in several.rules.items() if o is Outcome.UNKNOWN} >= accepted
    large = exchange(ERROR, sent=forms.replace(b'"a"', b'"%b"' % (b"a" * 5000)), **PLAIN_400)
    unknown = {rule for rule, outcome in judge(large).rules.items() if outcome is Outcome.UNKNOWN}
    assert unknown == {*accepted, "stream/status"}
    assert accepted <= {
        r for r, o in judge(exchange(sent=forms)).rules.items() if o is Outcome.PASS
    }


def test_a_duplicate_claim_is_not_chosen_from() -> None:
    """Of two summaries the first is shown, and nothing of it is believed."""
    other = SUMMARY.replace(b":3,", b":4,").replace(b":15}", b":16}")
    judgement = judge(exchange(ROLE + RAIN + STOP + SUMMARY + other + DONE))
    assert judgement.outcome == "failed"
    assert judgement.usage == Usage(prompt_tokens=12, completion_tokens=3, total_tokens=15)


LONG = [ROLE, *[RAIN] * 80, STOP, SUMMARY, DONE]


def timed_stream(events: list[bytes], times: list[float], case: str = "stream-long") -> Exchange:
    """A stream with one read for each event."""
    at, reads = 0, []
    for t, data in zip(times, events, strict=True):
        reads.append(Read(t=t, at=at, data=data))
        at += len(data)
    made = exchange()
    return Exchange(
        case=case,
        request=made.request,
        sent=0.0,
        head=Head(t=0.0, status=200, headers=EVENTS),
        reads=tuple(reads),
        closed=Closed(t=times[-1], how="chunked-end"),
    )


def spread(start: float, end: float) -> list[float]:
    """Even times for the events of LONG."""
    return [start + (end - start) * n / (len(LONG) - 1) for n in range(len(LONG))]


@pytest.mark.parametrize(
    ("times", "outcome"),
    [
        (spread(0.1, 2.0), Outcome.PASS),
        (spread(2.0, 2.0), Outcome.FAIL),
        (spread(1.999, 2.0), Outcome.FAIL),
        (spread(1.5, 2.0), Outcome.UNKNOWN),
        (spread(1.95, 2.0), Outcome.UNKNOWN),
        (spread(0.01, 0.2), Outcome.UNKNOWN),
        ([0.1, 0.1, *[10.0 + n / 10_000 for n in range(len(LONG) - 2)]], Outcome.UNKNOWN),
    ],
)
def test_increments_have_three_answers(times: list[float], outcome: Outcome) -> None:
    """Spread out: yes. All at the end, faster than any model speaks: no. Anything else: unknown."""
    judgement = judge(timed_stream(LONG, times))
    assert judgement.rules["stream/incremental"] is outcome


def test_increments_are_judged_on_long_answers_only() -> None:
    """A short answer says nothing, unless a long one was asked for: then it is unknown."""
    events = [ROLE, RAIN, FALLS, STOP, SUMMARY, DONE]
    times = [0.1 * n for n in range(6)]
    assert "stream/incremental" in judge(timed_stream(events, times, case="short")).skipped
    assert judge(timed_stream(events, times)).rules["stream/incremental"] is Outcome.UNKNOWN
    assert (
        judge(timed_stream(LONG, spread(0.1, 2.0), case="x")).rules["stream/incremental"]
        is Outcome.PASS
    )
    assert "stream/incremental" in judge(bare(b"".join(LONG))).skipped


def test_a_bare_body_is_judged_by_what_it_looks_like() -> None:
    """Without head, request and times, the rules about those are skipped with the reason."""
    stream = judge(bare(b"\xef\xbb\xbf" + STREAM_BODY))
    assert (stream.outcome, stream.broken) == ("complete", [])
    assert stream.skipped["stream/status"] == "a bare body has no head"
    assert stream.skipped["stream/body-complete"] == "a bare body does not say how it ended"
    assert stream.skipped["stream/usage-within-limit"] == "the limit that was sent is not known"
    plain = judge(bare(WHOLE_BODY))
    assert (plain.outcome, plain.broken) == ("complete", [])
    assert judge(bare(ERROR)).outcome == "refused"
    assert judge(bare(b'{"error":{}}')).broken == ["error/schema"]
    mixed = RAIN + RAIN.replace(b"example-local-model", b"another")
    assert "stream/model-echoed" in judge(bare(mixed)).broken


def test_silence_and_a_slow_end_are_advice() -> None:
    """A gap of over 15 s without a comment, and an end over a second late, are SHOULDs."""
    events = [ROLE, RAIN, STOP, SUMMARY, DONE]
    slow = judge(timed_stream(events, [0.1, 16.0, 16.1, 16.1, 16.1]))
    assert slow.advice == ["stream/heartbeat-while-silent"]
    late = judge(exchange(end=2.0, how="closed-after-done"))
    assert (late.advice, late.outcome) == (["stream/closes-after-done"], "complete")


def test_a_run_conforms_only_if_success_was_seen_and_nothing_failed() -> None:
    """The verdict is the worst of the MUSTs; an error, a silence or nothing leaves it open."""
    assert verify([exchange(), whole()]).verdict == "conforms"
    assert verify([exchange(), whole(credential="wrong")]).verdict == "does not conform"
    assert verify([exchange(), unanswered()]).verdict == "not established"
    failed = ROLE + b'data: {"error":{"message":"no","type":"t"}}\n\n'
    assert verify([exchange(failed)]).verdict == "not established"
    assert judge(exchange(failed)).skipped["stream/done-present"] == "ended by error"
    assert verify([]).verdict == "not established"
    assert judge(exchange(failed)).unseen == "the endpoint reported an error in its answer"
    assert judge(exchange(how="timeout")).unseen == "we stopped reading before the answer ended"
    assert judge(unanswered()).unseen == "no answer came"


def test_one_look_that_can_decide_is_enough() -> None:
    """A long answer that came too soon, or was refused, gives way to one that could be timed."""
    shown, too_soon = timed_stream(LONG, spread(0.1, 2.0)), timed_stream(LONG, spread(0.01, 0.2))
    refused = exchange(ERROR, status=400, headers=JSON, case="stream-long-2", sent=LARGE)
    report = verify([too_soon, refused, shown])
    assert report.rules["stream/incremental"] is Outcome.PASS
    assert report.rules["stream/status"] is Outcome.PASS
    assert report.verdict == "conforms"
    assert verify([too_soon, refused]).verdict == "not established"


def test_a_stream_that_shows_increments_speaks_for_one_that_was_held_up() -> None:
    """What came at once beside a stream that did not is undecided; where all did, it is a fault."""
    shown, held_back = timed_stream(LONG, spread(0.1, 2.0)), timed_stream(LONG, spread(2.0, 2.0))
    assert judge(held_back).outcome == "failed"
    report = verify([held_back, shown, held_back])
    assert report.rules["stream/incremental"] is Outcome.PASS
    assert report.verdict == "conforms"
    for judgement in (report.judgements[0], report.judgements[2]):
        assert (judgement.outcome, judgement.broken) == ("complete", [])
        (finding,) = [f for f in judgement.findings if f.rule == "stream/incremental"]
        assert finding.outcome is Outcome.UNKNOWN
        assert "held back, while stream-long came as it was made" in finding.observed
    assert verify([held_back, held_back]).rules["stream/incremental"] is Outcome.FAIL
    too_soon = timed_stream(LONG, spread(0.01, 0.2))
    assert verify([too_soon, held_back]).rules["stream/incremental"] is Outcome.FAIL
    wrong = timed_stream([ROLE, *[RAIN] * 80, STOP, STOP, SUMMARY, DONE], [2.0] * 85)
    assert verify([shown, wrong]).judgements[1].broken == ["stream/terminal-once"]
    errors = timed_stream([*[RAIN] * 80, b'data: {"error":{"message":"m","type":"t"}}\n\n'],
                          [2.0] * 81)  # fmt: skip
    assert verify([shown, errors]).judgements[1].outcome == "failed"


def late(made: Exchange, lag: float | None) -> Exchange:
    """The same exchange by a machine that read nothing for so long."""
    return replace(made, closed=replace(made.closed, lag=lag))


@pytest.mark.parametrize(
    ("times", "lag", "outcome"),
    [
        (spread(2.0, 2.0), None, Outcome.FAIL),
        (spread(2.0, 2.0), 0.006, Outcome.FAIL),
        (spread(2.0, 2.0), 1.9, Outcome.UNKNOWN),
        # A queue, and then a fast model: so short a lag makes it look as if it were held back.
        (spread(20.0, 20.0), 0.1, Outcome.UNKNOWN),
        (spread(0.1, 2.0), 1.5, Outcome.PASS),
    ],
)
def test_no_endpoint_is_blamed_for_a_busy_machine(
    times: list[float], lag: float | None, outcome: Outcome
) -> None:
    """Text that may have come while we could not read was perhaps not held back."""
    judgement = judge(late(timed_stream(LONG, times), lag))
    assert judgement.rules["stream/incremental"] is outcome
    (finding,) = [f for f in judgement.findings if f.rule == "stream/incremental"]
    assert ("this machine was too busy" in finding.observed) is (outcome is Outcome.UNKNOWN)


def test_one_read_is_not_called_reads() -> None:
    """What came at once is told as one read."""
    made = exchange(b"".join(LONG), at=2.0, end=2.0)
    (finding,) = [f for f in judge(made).findings if f.rule == "stream/incremental"]
    assert finding.observed.startswith("80 events with text in 1 read, from 2.000 s to 2.000 s")


@pytest.mark.parametrize(
    ("made", "rule", "excused", "advised"),
    [
        (exchange(end=1.3), "stream/closes-after-done", 0.3, 0.1),
        (exchange(end=1.1, how="closed-after-done"), "stream/closes-after-done", 0.6, 0.1),
        (timed_stream([ROLE, RAIN, STOP, SUMMARY, DONE], [0.1, 16.0, 16.1, 16.1, 16.1]),
         "stream/heartbeat-while-silent", 1.0, 0.5),
    ],
)  # fmt: skip
def test_no_advice_where_we_were_late(
    made: Exchange, rule: str, excused: float, advised: float
) -> None:
    """A wait that our own lag explains is undecided; one that it does not is advice."""
    assert judge(made).rules[rule] is Outcome.ADVICE
    assert judge(late(made, advised)).rules[rule] is Outcome.ADVICE
    judgement = judge(late(made, excused))
    assert judgement.rules[rule] is Outcome.UNKNOWN
    (finding,) = [f for f in judgement.findings if f.rule == rule]
    assert f"this machine was too busy to time it, and read nothing for {excused:.3f} s" in (
        finding.observed
    )


def test_a_coding_that_nobody_asked_for_is_shown_with_its_times() -> None:
    """A compressed stream says when its bytes came, or that none did (scenario Q184)."""
    gzip = (*EVENTS, ("content-encoding", "gzip"))
    for made, observed in (
        (exchange(b"x" * 10, headers=gzip), "gzip; 10 bytes, from 0.100 s to 0.100 s"),
        (exchange(b"x" * 10, headers=gzip, cut=5),
         "gzip; 10 bytes, from 0.100 s to 0.110 s"),
        (exchange(b"", headers=gzip, end=30.0, how="timeout"),
         "gzip; no byte of its body in 30.000 s"),
        (replace(exchange(b"x", headers=gzip), timed=False), "gzip"),
    ):  # fmt: skip
        (finding,) = [f for f in judge(made).findings if f.rule == "stream/content-encoding"]
        assert (finding.outcome, finding.observed) == (Outcome.FAIL, observed)


def test_a_report_says_of_every_rule_what_it_was() -> None:
    """Rules that nothing called for are skipped with a reason; the worst outcome wins."""
    report = verify([exchange(STREAM_BODY[:-1]), whole()], started="2026-11-30T00:00:00Z")
    assert report.rules["stream/events-complete"] is Outcome.FAIL
    assert report.rules["stream/id-constant"] is Outcome.PASS
    assert report.skipped["stream/done-present"] == "follows from stream/events-complete"
    assert report.skipped["error/json"] == "no exchange called for it"
    assert report.skipped["stream/incremental"].startswith("judged on a long answer")
    assert set(report.skipped) == {r for r, o in report.rules.items() if o is Outcome.SKIP}


def test_notes_keep_few_names() -> None:
    """However many members an endpoint adds, a bounded number is noted."""
    first: dict[str, Any] = {f"x{n}": n for n in range(60)}
    body = b"".join([chunk({"content": "a"}, **first), chunk({"y": 1}), STOP, SUMMARY, DONE])
    assert len(judge(exchange(body)).notes["extra_members"]) == 32


def test_notes_measure_and_never_judge() -> None:
    """Counts, times, members beyond the profile and odd timestamps are noted, all legal."""
    odd = {
        b'"created":1767225600': b'"created":1767225600000',
        b'"usage"': b'"x_extra":1,"usage"',
        b'"delta":{': b'"delta":{"reasoning_content":"hm",',
    }
    body = STREAM_BODY
    for old, new in odd.items():
        body = body.replace(old, new)
    body = body.replace(b'content":"hm",}', b'content":"hm"}') + b": bye\n\n"
    judgement = judge(exchange(body))
    assert judgement.outcome == "complete"
    notes = judgement.notes
    assert (notes["events"], notes["content_events"], notes["reads"], notes["comments"]) == (
        6,
        2,
        1,
        1,
    )
    assert notes["extra_members"] == ["/choices/0/delta/reasoning_content", "/x_extra"]
    assert (notes["reasoning"], notes["created"]) == (True, "in milliseconds")
    assert (notes["first_content_ms"], notes["duration_ms"]) == (100.0, 200.0)
    future = verify([exchange()], started="2020-01-01T00:00:00Z").judgements[0]
    assert future.notes["created"] == "in the future"
    assert "created" not in verify([exchange()], started="not a time").judgements[0].notes
    whole_notes = judge(whole(completion(system_fingerprint="fp"))).notes
    assert whole_notes["extra_members"] == ["/system_fingerprint"]
    assert "duration_ms" not in judge(bare(WHOLE_BODY)).notes
