"""Whole runs against endpoints on loopback: a right one, a real engine, and many wrong ones."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheapgpu.check.cases import CASES, STREAM_LONG, STREAM_SHORT, WHOLE_LONG, WHOLE_SHORT, Case
from cheapgpu.check.events import CaseFinished, CaseStarted, Event, RunFinished, RunStarted
from cheapgpu.check.limits import Budget, Limits
from cheapgpu.check.plan import Plan
from cheapgpu.check.recording_file import RecordingFile
from cheapgpu.check.run import run
from cheapgpu.core import examples
from cheapgpu.core.exchange import Closed, Exchange, Head, Read
from cheapgpu.core.findings import Outcome
from cheapgpu.core.recording import read_recording
from cheapgpu.core.verify import verify
from cheapgpu.endpoint.embedded import Engine, EngineOptions, start_engine
from cheapgpu.endpoint.tiny_model import write_tiny_model
from cheapgpu.wire.target import parse_target
from tests.check.conforming import Endpoint, Script
from tests.check.servers import (
    HANG,
    LAST_CHUNK,
    STREAM_HEAD,
    Handler,
    answering,
    chunked,
    served,
    silent,
    unused_port,
)

QUICK = Limits(
    connect_seconds=0.5,
    first_byte_seconds=0.1,
    head_seconds=0.1,
    silence_seconds=0.1,
    grace_seconds=0.05,
)
SCRIPT = Script()


def planned(url: str, **more: Any) -> Plan:
    """A plan for an endpoint below `url`."""
    fields: dict[str, Any] = {"model": SCRIPT.model, "key": SCRIPT.key, **more}
    return Plan(target=parse_target(f"{url}/v1/chat/completions"), **fields)


def carried_out(plan: Plan) -> list[Event]:
    """Everything that a run tells."""
    events: list[Event] = []
    asyncio.run(run(plan, events.append))
    return events


def finish(events: list[Event]) -> RunFinished:
    """The last event."""
    last = events[-1]
    assert isinstance(last, RunFinished)
    return last


def exchanges(events: list[Event]) -> dict[str, Exchange]:
    """The exchanges by case."""
    return {exchange.case: exchange for exchange in finish(events).recording.exchanges}


def names(events: list[Event]) -> list[str]:
    """The cases in the order in which they were told."""
    return [event.case.name for event in events if isinstance(event, CaseFinished)]


def only(*cases: Case) -> tuple[Case, ...]:
    """These cases."""
    return cases


# --- endpoints that answer ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def conforming() -> Iterator[list[Event]]:
    """A run against the endpoint that conforms, at a pace at which increments can be seen."""
    endpoint = Endpoint(replace(SCRIPT, pause=0.002))
    with served(endpoint) as url:
        yield carried_out(planned(url, long_seconds=0.3))


def test_conforming_endpoint_conforms(conforming: list[Event]) -> None:
    """An endpoint that does all that the profile asks gets the verdict, and every case is sent."""
    finished = finish(conforming)
    assert finished.report.verdict == "conforms"
    assert finished.stopped == ""
    assert names(conforming) == [case.name for case in CASES]
    broken = {case: judgement.broken for case, judgement in judged(conforming).items()}
    assert not any(broken.values()), broken
    for rule in ("stream/incremental", "whole/schema", "refuse/tools", "accepted/integers"):
        assert finished.report.rules[rule] is Outcome.PASS


def judged(events: list[Event]) -> dict[str, Any]:
    """The judgements by case."""
    return {event.case.name: event.judgement for event in events if isinstance(event, CaseFinished)}


def test_events_tell_a_run_in_order(conforming: list[Event]) -> None:
    """A run begins, each case begins, takes its steps, ends and is judged, and the run ends."""
    assert isinstance(conforming[0], RunStarted)
    state = "between"
    for event in conforming[1:-1]:
        match event:
            case CaseStarted():
                assert state == "between"
                state = "asked"
            case CaseFinished():
                assert state == "closed"
                state = "between"
            case Closed():
                assert state in ("asked", "answered")
                state = "closed"
            case Head():
                assert state == "asked"
                state = "answered"
            case Read():
                assert state == "answered"
            case _:
                assert state == "asked"
    assert state == "between"


def test_cases_are_numbered(conforming: list[Event]) -> None:
    """Each case says which it is, and of how many."""
    numbers = [(e.number, e.cases) for e in conforming if isinstance(e, CaseStarted)]
    assert numbers == [(number, len(CASES)) for number in range(1, len(CASES) + 1)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """llama.cpp's own server with the tiny model."""
    gguf = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_tiny_model(gguf)
    options = EngineOptions(gguf=gguf, model="tiny", context_tokens=4096, threads=1)
    with asyncio.Runner() as runner:
        engine = runner.run(start_engine(options))
        yield engine
        runner.run(engine.stop())


@pytest.fixture(scope="module")
def of_engine(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Event], Path]:
    """What a run against the engine told, and its recording."""
    path = tmp_path_factory.mktemp("run") / "run.jsonl"
    plan = Plan(target=parse_target(engine.inference_url), model="tiny", key=engine.api_key)
    events: list[Event] = []
    with RecordingFile(path, [engine.api_key]) as recording:
        asyncio.run(run(plan, recording, events.append))
    return events, path


def test_real_engine_does_not_conform(of_engine: tuple[list[Event], Path]) -> None:
    """llama.cpp's server ignores what it must refuse, and states no usage in its chunks."""
    finished = finish(of_engine[0])
    assert finished.report.verdict == "does not conform"
    broken = {rule for rule, outcome in finished.report.rules.items() if outcome is Outcome.FAIL}
    assert broken >= {
        "refuse/unknown-field",
        "refuse/max_tokens",
        "refuse/tools",
        "refuse/temperature",
        "refuse/unknown-model",
        "refuse/usage-not-requested",
        "stream/chunk-schema",
        "error/schema",
    }
    assert not broken & {"whole/schema", "auth/missing-refused", "auth/wrong-refused"}


def test_real_engine_is_really_exercised(of_engine: tuple[list[Event], Path]) -> None:
    """The engine made a whole answer, and a long stream of many events."""
    judgements = judged(of_engine[0])
    assert judgements["whole-short"].outcome == "complete"
    assert judgements["whole-short"].usage.completion_tokens == WHOLE_SHORT.tokens
    assert judgements["stream-long"].notes["content_events"] >= 64


def test_real_engine_writes_the_time_into_each_chunk(of_engine: tuple[list[Event], Path]) -> None:
    """The fault that only a stream across a second shows is seen, however fast the model is."""
    judgements = judged(of_engine[0])
    assert judgements["stream-long-2"].notes["content_events"] > STREAM_LONG.tokens
    assert "stream/created-constant" in judgements["stream-long-2"].broken


def test_recording_gives_the_same_judgement(of_engine: tuple[list[Event], Path]) -> None:
    """Judging the file again gives the report of the run, finding by finding."""
    events, path = of_engine
    recording = read_recording(path.read_bytes())
    assert recording == finish(events).recording
    assert verify(recording.exchanges, started=recording.started) == finish(events).report


# --- keys -----------------------------------------------------------------------------------------


def test_key_that_is_echoed_is_seen_by_nobody(tmp_path: Path) -> None:
    """An endpoint that repeats the key, even cut in two, brings it into no event and no file."""
    key = SCRIPT.key.encode()
    body = b'{"error":{"message":"bad key %b","type":"auth","param":null}}' % key
    cut = body.index(key) + 7
    head = b"HTTP/1.1 401 No\r\nx-key: %b\r\ncontent-type: application/json\r\n" % key
    head += b"content-length: %d\r\n\r\n" % len(body)
    path = tmp_path / "run.jsonl"
    events: list[Event] = []
    with served(answering(head + body[:cut], 0.05, body[cut:])) as url:
        plan = planned(url, cases=only(STREAM_SHORT))
        with RecordingFile(path, []) as recording:  # it is masked before it gets here
            asyncio.run(run(plan, recording, events.append))
    (exchange,) = read_recording(path.read_bytes()).exchanges
    assert exchange.body == body.replace(key, b"*" * len(key))
    assert SCRIPT.key not in repr(events)
    assert key not in path.read_bytes()


def test_without_a_key_the_endpoint_is_asked_all_the_same() -> None:
    """Valid cases go out without a key; an endpoint that wants one leaves all else open."""
    with served(Endpoint(SCRIPT)) as url:
        events = carried_out(planned(url, key=None))
    finished = finish(events)
    assert finished.report.verdict == "not established"
    assert finished.report.rules["auth/missing-refused"] is Outcome.PASS
    assert finished.report.rules["auth/wrong-refused"] is Outcome.PASS
    assert finished.report.rules["stream/status"] is Outcome.ERROR


def test_endpoint_without_keys_does_not_conform() -> None:
    """An endpoint that answers strangers breaks both rules of keys."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    body = examples.completion()
    with served(answering(head % len(body) + body)) as url:
        events = carried_out(planned(url, key=None))
    report = finish(events).report
    assert report.verdict == "does not conform"
    assert report.rules["auth/missing-refused"] is Outcome.FAIL
    assert report.rules["auth/wrong-refused"] is Outcome.FAIL


# --- long streams ---------------------------------------------------------------------------------


def test_fast_endpoint_is_asked_for_longer_streams() -> None:
    """A long stream that is over too soon is followed by another question, right after it."""
    with served(Endpoint(SCRIPT)) as url:
        events = carried_out(planned(url, cases=only(STREAM_LONG, WHOLE_SHORT)))
    assert names(events)[:2] == ["stream-long", "stream-long-2"]
    assert names(events)[-1] == "whole-short"
    assert judged(events)["stream-long-2"].usage.completion_tokens > STREAM_LONG.tokens


def test_plain_question_is_that_of_the_last_long_stream() -> None:
    """whole-long asks what the last long stream was asked, with its limit, within the tokens."""
    budget = Budget(tokens=2 * STREAM_LONG.tokens + 1000)
    with served(Endpoint(SCRIPT)) as url:
        events = carried_out(planned(url, cases=only(STREAM_LONG, WHOLE_LONG), budget=budget))
    assert names(events) == ["stream-long", "stream-long-2", "whole-long"]
    asked = [json.loads(e.request.body) for e in events if isinstance(e, CaseStarted)]
    assert asked[1]["messages"] == asked[2]["messages"] != asked[0]["messages"]
    limits = [body["max_completion_tokens"] for body in asked]
    assert limits[1] == limits[2] > limits[0]
    assert sum(limits) <= budget.tokens


def test_plain_question_stays_within_what_was_answered() -> None:
    """A longer limit that was refused is not asked for again, as if it had been answered."""
    endpoint = Endpoint(replace(SCRIPT, ceiling=300))
    with served(endpoint) as url:
        events = carried_out(planned(url, cases=only(STREAM_LONG, WHOLE_LONG)))
    assert names(events) == ["stream-long", "stream-long-2", "whole-long"]
    head = exchanges(events)["stream-long-2"].head
    assert head is not None
    assert head.status == 400
    assert [request.max_completion_tokens for request in endpoint.answered] == [256, 256]
    assert endpoint.answered[0].messages == endpoint.answered[1].messages


def test_tokens_of_the_run_bound_the_questions() -> None:
    """A run never asks for more tokens than it may."""
    with served(Endpoint(SCRIPT)) as url:
        budget = Budget(tokens=STREAM_LONG.tokens + 300)
        events = carried_out(planned(url, cases=only(STREAM_LONG), budget=budget))
    asked = [json.loads(e.request.body) for e in events if isinstance(e, CaseStarted)]
    assert [body["max_completion_tokens"] for body in asked] == [256, 300]


def test_ceiling_bounds_the_questions() -> None:
    """No question goes over the ceiling that the endpoint is said to have."""
    endpoint = Endpoint(replace(SCRIPT, ceiling=300))
    with served(endpoint) as url:
        events = carried_out(planned(url, cases=only(STREAM_LONG), ceiling=300))
    assert all(judgement.outcome == "complete" for judgement in judged(events).values())
    assert max(request.max_completion_tokens for request in endpoint.answered) == 300


# --- endpoints that cannot be asked ---------------------------------------------------------------


def stopped(handler: Handler | None, **more: Any) -> list[Event]:
    """A run against a server that does as `handler` does, or against none at all."""
    if handler is None:
        return carried_out(planned(f"http://127.0.0.1:{unused_port()}", **more))
    with served(handler) as url:
        return carried_out(planned(url, limits=QUICK, **more))


def asked(events: list[Event]) -> list[str]:
    """The cases that were really sent."""
    return [
        exchange.case
        for exchange in finish(events).recording.exchanges
        if not exchange.closed.detail.startswith("not sent")
    ]


def test_unreachable_endpoint_is_asked_once() -> None:
    """Where the first connection fails there is one attempt, one message, and no verdict."""
    events = stopped(None)
    finished = finish(events)
    assert asked(events) == ["stream-short"]
    assert "cannot be reached: connection refused; check that" in finished.stopped
    assert finished.report.verdict == "not established"


def test_every_case_is_in_the_recording_of_a_run_that_stopped() -> None:
    """What was not sent stands in the recording as not sent: it could not be looked at."""
    events = stopped(None)
    assert names(events) == [case.name for case in CASES]
    report = finish(events).report
    for rule in ("refuse/tools", "auth/missing-refused", "whole/status"):
        assert report.rules[rule] is Outcome.ERROR


def test_endpoint_that_hangs_is_left_after_two_requests() -> None:
    """Two requests in vain are enough: the rest is not waited for."""
    events = stopped(silent)
    assert asked(events) == ["stream-short", "stream-long"]
    assert "is given up: 2 requests in a row failed: no answer within 0.1 s" in (
        finish(events).stopped
    )
    assert finish(events).report.verdict == "not established"


def test_endpoint_that_sends_heads_only_is_left_after_two_requests() -> None:
    """So are two heads without an answer."""
    events = stopped(answering(STREAM_HEAD, HANG))
    assert asked(events) == ["stream-short", "stream-long"]
    assert finish(events).report.verdict != "conforms"


def test_endpoint_that_fails_now_and_then_is_asked_on() -> None:
    """One request in vain between others ends nothing."""
    endpoint = Endpoint(SCRIPT)
    count = 0

    async def flaky(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        if count % 2:
            await endpoint(reader, writer)

    with served(flaky) as url:
        events = carried_out(planned(url, limits=QUICK, long_seconds=0.0))
    assert asked(events) == [case.name for case in CASES]
    assert finish(events).stopped == ""
    assert finish(events).report.verdict == "not established"


def test_last_case_that_fails_stops_nothing() -> None:
    """Where nothing is left, nothing was left out."""
    events = stopped(silent, cases=only(STREAM_SHORT))
    assert finish(events).stopped == ""
    assert finish(events).report.verdict == "not established"


def test_run_ends_when_its_time_is_over() -> None:
    """The case in hand is cut, the others are not sent, and the verdict stays open."""
    events = carried_out_against_slow(Budget(seconds=0.5))
    finished = finish(events)
    assert finished.stopped == "the 0.5 s of the run are over"
    assert exchanges(events)["stream-long"].closed.how == "deadline"
    assert exchanges(events)["not-json"].closed.how == "deadline"
    assert exchanges(events)["not-json"].sent is None
    assert finished.report.verdict == "not established"


def carried_out_against_slow(budget: Budget) -> list[Event]:
    """A run against an endpoint that conforms at leisure."""
    with served(Endpoint(replace(SCRIPT, pause=0.01))) as url:
        return carried_out(planned(url, budget=budget))


def test_run_ends_when_the_answers_are_too_long() -> None:
    """A run asks no more once it holds as many bytes as it may."""
    body = chunked(*[examples.RAIN] * 50, examples.DONE) + LAST_CHUNK
    events = stopped(answering(STREAM_HEAD + body), budget=Budget(received_bytes=1000))
    assert asked(events) == ["stream-short"]
    assert finish(events).stopped == "the answers are longer than a run can hold"


# --- interruptions --------------------------------------------------------------------------------


def test_cancelled_run_is_finished_properly(tmp_path: Path) -> None:
    """A run that is cancelled closes the case in hand and the recording, then passes it on."""
    path = tmp_path / "run.jsonl"
    events: list[Event] = []

    async def interrupted(plan: Plan) -> None:
        with RecordingFile(path, []) as recording:
            headed = asyncio.Event()

            def notice(event: Event) -> None:
                if isinstance(event, Head):
                    headed.set()

            task = asyncio.create_task(run(plan, recording, events.append, notice))
            await headed.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with served(answering(STREAM_HEAD, chunked(examples.RAIN), HANG)) as url:
        asyncio.run(interrupted(planned(url)))
    recording = read_recording(path.read_bytes())
    first, *others = recording.exchanges
    assert (first.closed.how, first.closed.detail) == ("cancelled", "interrupted")
    assert len(others) == len(CASES) - 1
    assert all(exchange.head is None for exchange in others)
    assert finish(events).stopped == "interrupted"


def test_answer_that_takes_too_long_to_judge_is_left_unjudged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Judging has its time too: what is not judged is recorded, and no verdict rests on it."""

    def slow(*_: Any, **__: Any) -> None:
        time.sleep(5)

    monkeypatch.setattr("cheapgpu.check.run.judge", slow)
    monkeypatch.setattr("cheapgpu.check.run._JUDGING_SECONDS", 0.0)
    with served(Endpoint(SCRIPT)) as url:
        events = carried_out(
            planned(url, cases=only(STREAM_SHORT), budget=Budget(seconds=0.5, tokens=100))
        )
    assert exchanges(events)["stream-short"].reads
    assert "no time to judge" in judged(events)["stream-short"].unseen
    assert finish(events).report.verdict == "not established"


def test_listener_that_fails_ends_the_run() -> None:
    """What a listener raises is passed on, and the run is not told as finished."""
    events: list[Event] = []

    def fail(event: Event) -> None:
        events.append(event)
        if isinstance(event, Read):
            raise OSError("full")

    with (
        served(Endpoint(SCRIPT)) as url,
        pytest.raises(OSError, match="full"),
    ):
        asyncio.run(run(planned(url), fail))
    assert isinstance(events[-1], Read)
