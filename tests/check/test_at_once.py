"""Cases that are under way at the same time, and those that are left: what is told, and when."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheapgpu.check.case import Case
from cheapgpu.check.cases import CASES, STREAM_SHORT, WHOLE_SHORT, catalogue
from cheapgpu.check.events import CaseFinished, CaseStarted, Event, RunFinished
from cheapgpu.check.limits import Budget, Limits
from cheapgpu.check.plan import Plan
from cheapgpu.check.recording_file import RecordingFile
from cheapgpu.check.run import run
from cheapgpu.core import examples
from cheapgpu.core.exchange import Closed, Exchange
from cheapgpu.core.findings import Outcome
from cheapgpu.core.recording import read_recording
from cheapgpu.core.verify import verify
from cheapgpu.wire.target import parse_target
from tests.check.conforming import Endpoint, Script
from tests.check.servers import (
    LAST_CHUNK,
    STREAM_HEAD,
    Handler,
    answering,
    chunked,
    read_request,
    served,
)

SCRIPT = Script()
REFUSALS = tuple(case for case in CASES if case.beside == "refusals")
REFUSED = (
    b"HTTP/1.1 400 No\r\ncontent-type: application/json\r\ncontent-length: 51\r\n\r\n"
    b'{"error":{"message":"no","type":"n","param":null}}\n'
)


def planned(url: str, **more: Any) -> Plan:
    """A plan for an endpoint below `url`."""
    fields: dict[str, Any] = {"model": SCRIPT.model, "key": SCRIPT.key, **more}
    return Plan(target=parse_target(f"{url}/v1/chat/completions"), **fields)


def carried_out(handler: Handler, **more: Any) -> list[Event]:
    """Everything that a run against a server tells."""
    events: list[Event] = []
    with served(handler) as url:
        asyncio.run(run(planned(url, **more), events.append))
    return events


def finish(events: list[Event]) -> RunFinished:
    """The last event."""
    last = events[-1]
    assert isinstance(last, RunFinished)
    return last


def exchanges(events: list[Event]) -> dict[str, Exchange]:
    """The exchanges by case, in their order."""
    return {exchange.case: exchange for exchange in finish(events).recording.exchanges}


class Crowd:
    """A server that refuses everything after a while, and counts who is waiting."""

    def __init__(self, seconds: float = 0.02, answer: bytes = REFUSED) -> None:
        self.seconds = seconds
        self.answer = answer
        self.waiting = 0
        self.most = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read, wait, refuse."""
        await read_request(reader)
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(self.seconds)
        self.waiting -= 1
        writer.write(self.answer)
        await writer.drain()


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (3, 3)])
def test_refusals_are_under_way_at_once(concurrency: int, most: int) -> None:
    """As many requests wait for their refusal as the plan allows, and no more."""
    crowd = Crowd()
    events = carried_out(crowd, cases=REFUSALS[:12], concurrency=concurrency)
    assert crowd.most == most
    assert [*exchanges(events)] == [case.name for case in REFUSALS[:12]]


def test_order_is_that_of_the_cases_whoever_answers_first() -> None:
    """A slow first answer holds back what is told of the others, so that order stays."""
    first = REFUSALS[0].name

    async def uneven(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        await asyncio.sleep(0.0 if b"authorization" in request.lower() else 0.1)
        writer.write(REFUSED)

    events = carried_out(uneven, cases=REFUSALS[:8])
    told = [event for event in events if isinstance(event, CaseStarted | CaseFinished)]
    assert [event.case.name for event in told] == [
        case.name for case in REFUSALS[:8] for _ in range(2)
    ]
    assert told[0].case.name == first
    numbers = [(e.number, e.cases) for e in told if isinstance(e, CaseStarted)]
    assert numbers == [(number, 8) for number in range(1, 9)]


def test_cases_whose_times_are_judged_are_alone() -> None:
    """An answer that is timed shares the endpoint with nothing else of the run."""
    crowd = Crowd()
    carried_out(crowd, cases=(*REFUSALS[:1], STREAM_SHORT, WHOLE_SHORT, *REFUSALS[1:2]))
    assert crowd.most == 1


def test_busy_endpoint_is_asked_one_by_one() -> None:
    """After a 429 nothing more is sent at once; nothing is sent again."""
    body = examples.error(429, "busy")
    crowd = Crowd(answer=body)
    events = carried_out(crowd, cases=REFUSALS[:10], concurrency=4)
    assert crowd.most == 4
    assert len(exchanges(events)) == 10
    crowd.most = 0
    carried_out(crowd, cases=(WHOLE_SHORT, *REFUSALS[:6]), concurrency=4)
    assert crowd.most == 1


# --- streams at once ------------------------------------------------------------------------------

STREAMS = tuple(case for case in catalogue(streams=5) if case.beside == "streams")


def test_concurrent_streams_are_all_under_way_at_once() -> None:
    """Five streams at once: each is whole, has its own word, and repeats no other's."""
    endpoint = _Repeating(pause=0.01)
    events = carried_out(endpoint, cases=STREAMS)
    assert endpoint.most == 5
    report = finish(events).report
    assert report.rules["service/answers-not-mixed"] is Outcome.PASS
    assert {judgement.outcome for judgement in report.judgements} == {"complete"}


def test_mixed_answers_are_told() -> None:
    """An endpoint that gives a stream the word of another is advised of it."""
    events = carried_out(_Repeating(pause=0.01, mixed=True), cases=STREAMS)
    assert finish(events).report.rules["service/answers-not-mixed"] is Outcome.ADVICE


class _Repeating:
    """Repeats the word that is asked for: that of the request, or of the one before it."""

    def __init__(self, pause: float, *, mixed: bool = False) -> None:
        self.pause, self.mixed = pause, mixed
        self.waiting = self.most = 0
        self.word = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Stream ten chunks with the word."""
        _, _, body = (await read_request(reader)).partition(b"\r\n\r\n")
        model = json.loads(body)["model"]
        own = re.findall(r"cg[0-9a-f]{8}", body.decode())[0]
        word, self.word = (self.word or own) if self.mixed else own, own
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        writer.write(STREAM_HEAD)
        usage = {"prompt_tokens": 9, "completion_tokens": 10, "total_tokens": 19}
        for event in (
            *(examples.chunk({"content": f"{word} "}, model=model) for _ in range(10)),
            examples.chunk(finish="stop", model=model),
            examples.chunk(choices=[], usage=usage, model=model),
            examples.DONE,
        ):
            await asyncio.sleep(self.pause)
            writer.write(chunked(event))
        self.waiting -= 1
        writer.write(LAST_CHUNK)
        await writer.drain()


# --- answers that are left ------------------------------------------------------------------------


def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Awaitable[None]:
    """A stream that does not end by itself."""
    word = chunked(examples.chunk({"content": "Rain"}, model=SCRIPT.model))
    steps: list[bytes | float | str] = [word, 0.005]
    return answering(STREAM_HEAD, *steps * 4000)(reader, writer)


def case(name: str) -> Case:
    """A case of the catalogue."""
    return next(case for case in CASES if case.name == name)


def test_stream_is_left_in_the_middle() -> None:
    """A client that leaves does so on purpose, after a few events, and misses nothing."""
    events = carried_out(endless, cases=(case("leaving"),))
    (exchange,) = exchanges(events).values()
    assert exchange.closed.how == "left"
    assert 8 <= exchange.body.count(b"data:") < 100
    judgement = finish(events).report.judgements[0]
    assert judgement.unseen == ""
    assert not judgement.broken


def test_request_without_a_limit_is_left_when_it_is_taken() -> None:
    """An endpoint that takes a request without a limit is not made to go on for ever."""
    began = time.monotonic()
    events = carried_out(endless, cases=(case("limit-missing"), case("limit-null")))
    assert time.monotonic() - began < 10
    assert {exchange.closed.how for exchange in exchanges(events).values()} == {"left"}
    assert finish(events).report.rules["refuse/limit-missing"] is Outcome.FAIL
    assert finish(events).stopped == ""


def test_slow_reader_gets_all() -> None:
    """What is read a little at a time is whole, and takes its time."""
    with served(Endpoint(replace(SCRIPT, words=("word " * 100,)))) as url:
        events: list[Event] = []
        asyncio.run(run(planned(url, cases=(case("slow-reader"),)), events.append))
    (exchange,) = exchanges(events).values()
    assert finish(events).report.judgements[0].outcome == "complete"
    assert len(exchange.reads) > 2
    assert exchange.closed.t > 0.1


# --- endings --------------------------------------------------------------------------------------

QUICK = Limits(first_byte_seconds=0.15, connect_seconds=0.5)


def hanging_on_refusals() -> Handler:
    """An endpoint that conforms, and hangs where it must refuse."""
    endpoint = Endpoint(SCRIPT)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if SCRIPT.key.encode() not in request:
            await asyncio.sleep(60)
        again = asyncio.StreamReader()
        again.feed_data(request)
        await endpoint(again, writer)

    return handler


def test_endpoint_that_hangs_on_refusals_is_left() -> None:
    """Two refusals in vain end the run: what was under way is cut, and the rest is not sent."""
    cases = (WHOLE_SHORT, *REFUSALS[:9], case("still-there"))
    events = carried_out(hanging_on_refusals(), cases=cases, limits=QUICK)
    ended = {name: one.closed for name, one in exchanges(events).items()}
    assert [*ended] == [case.name for case in cases]
    first, second, third, *_, last = [*ended.values()][1:]
    assert {first.detail, second.detail} == {"no answer within 0.15 s"}
    assert third.how in ("cancelled", "timeout")
    assert last == Closed(t=0.0, how="cancelled", detail="not sent: the run had ended")
    assert finish(events).stopped.endswith("2 requests in a row failed: no answer within 0.15 s")
    assert finish(events).report.verdict == "not established"


def test_endpoint_that_hangs_up_on_refusals_is_asked_on() -> None:
    """Who hangs up keeps nobody waiting: every case is sent, and the verdict stays open."""
    endpoint = Endpoint(SCRIPT)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if SCRIPT.key.encode() in request:
            again = asyncio.StreamReader()
            again.feed_data(request)
            await endpoint(again, writer)

    cases = (WHOLE_SHORT, *REFUSALS[:9], case("still-there"))
    events = carried_out(handler, cases=cases)
    assert finish(events).stopped == ""
    assert finish(events).report.rules["auth/missing-refused"] is Outcome.ERROR
    assert exchanges(events)["still-there"].head is not None


def test_run_that_hangs_ends_within_its_budget() -> None:
    """When the time of the run is over, all that is under way is cut at once."""
    cases = (WHOLE_SHORT, *REFUSALS[:9])
    began = time.monotonic()
    events = carried_out(hanging_on_refusals(), cases=cases, budget=Budget(seconds=0.4))
    assert time.monotonic() - began < 10
    hows = [exchange.closed.how for exchange in exchanges(events).values()]
    assert hows == ["length", *["deadline"] * 9]
    assert finish(events).stopped == "the 0.4 s of the run are over"


@pytest.fixture
def interrupted(tmp_path: Path) -> tuple[list[Event], Path]:
    """A run that is interrupted while four cases are under way, and its recording."""
    path = tmp_path / "run.jsonl"
    events: list[Event] = []
    crowd = Crowd(seconds=60)

    async def interrupt(plan: Plan) -> None:
        with RecordingFile(path, plan.secrets) as recording:
            task = asyncio.create_task(run(plan, recording, events.append))
            while crowd.waiting < 4:  # noqa: ASYNC110 -- it waits in another thread's loop
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with served(crowd) as url:
        asyncio.run(asyncio.wait_for(interrupt(planned(url, cases=REFUSALS[:9])), 20))
    return events, path


def test_interrupted_run_tells_what_was_under_way(interrupted: tuple[list[Event], Path]) -> None:
    """Four cases are told as interrupted, the others as not sent, and the file can be read."""
    events, path = interrupted
    recording = read_recording(path.read_bytes())
    assert recording == finish(events).recording
    details = [exchange.closed.detail for exchange in recording.exchanges]
    assert details == ["interrupted"] * 4 + ["not sent: the run had ended"] * 5
    assert [exchange.sent is not None for exchange in recording.exchanges] == [True] * 4 + [
        False
    ] * 5


def test_listener_that_fails_leaves_nothing_under_way() -> None:
    """What a listener raises ends the run, and the requests that are under way with it."""

    def fail(event: Event) -> None:
        if isinstance(event, CaseFinished):
            raise OSError("full")

    crowd = Crowd()

    async def once(url: str) -> set[asyncio.Task[Any]]:
        with pytest.raises(OSError, match="full"):
            await run(planned(url, cases=REFUSALS[:9]), fail)
        return asyncio.all_tasks() - {asyncio.current_task()}

    with served(crowd) as url:
        assert asyncio.run(once(url)) == set()


# --- what a recording of it says ------------------------------------------------------------------


def test_recording_of_cases_at_once_gives_the_same_judgement(tmp_path: Path) -> None:
    """Exchanges stand one after another in the file, with the ceiling, and are judged alike."""
    path = tmp_path / "run.jsonl"
    events: list[Event] = []
    cases = (WHOLE_SHORT, *REFUSALS[:5], *catalogue(ceiling=4096)[-2:])
    with served(Endpoint(SCRIPT)) as url, RecordingFile(path, []) as recording:
        asyncio.run(run(planned(url, cases=cases, ceiling=4096), recording, events.append))
    read = read_recording(path.read_bytes())
    assert read == finish(events).recording
    assert {exchange.ceiling for exchange in read.exchanges} == {4096}
    report = verify(read.exchanges, started=read.started)
    assert report == finish(events).report
    assert report.rules["refuse/limit-over-ceiling"] is Outcome.PASS
    assert report.verdict == "conforms"


def test_no_credential_is_told(tmp_path: Path) -> None:
    """An endpoint that repeats all that it gets brings neither key nor header value into a file."""
    secret = "gate-0123456789"
    path = tmp_path / "run.jsonl"
    events: list[Event] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, _, _ = (await read_request(reader)).partition(b"\r\n\r\n")
        lines = head.replace(b"\r\n", b" ")
        writer.write(
            b"HTTP/1.1 401 No\r\nx-echo: %b\r\ncontent-length: %d\r\n\r\n" % (lines, len(lines))
        )
        for start in range(0, len(lines), 7):
            writer.write(lines[start : start + 7])
            await writer.drain()
            await asyncio.sleep(0)

    cases = (*(case for case in CASES if case.key != "bearer"), STREAM_SHORT)
    with served(echo) as url:
        plan = planned(url, cases=cases, headers=(("X-Gate", secret),))
        with RecordingFile(path, plan.secrets) as recording:
            asyncio.run(run(plan, recording, events.append))
    told = repr(events) + "".join(
        exchange.body.decode("latin-1") for exchange in read_recording(path.read_bytes()).exchanges
    )
    for hidden in (SCRIPT.key, SCRIPT.key.swapcase(), secret):
        assert hidden not in told
        assert hidden.encode() not in path.read_bytes()
    assert all(exchange.reads for exchange in exchanges(events).values())


# --- the whole catalogue --------------------------------------------------------------------------


def test_conforming_endpoint_conforms_in_every_case() -> None:
    """No case accuses an endpoint that is right, and every rule that can be looked at is."""
    with served(Endpoint(replace(SCRIPT, pause=0.002))) as url:
        events: list[Event] = []
        cases = catalogue(ceiling=4096, streams=3)
        plan = planned(url, cases=cases, ceiling=4096, long_seconds=0.3)
        asyncio.run(run(plan, events.append))
    report = finish(events).report
    assert report.verdict == "conforms"
    findings = [f for judgement in report.judgements for f in judgement.findings]
    assert [f for f in findings if f.outcome is not Outcome.PASS] == []
    looked = {rule for rule, outcome in report.rules.items() if outcome is Outcome.PASS}
    assert report.rules.keys() - looked <= {
        "honesty/tokens-as-counted",  # needs a tokenizer
        "stream/error-schema",  # this endpoint has no errors
        "stream/error-is-final",
        "service/answers-not-mixed",  # its model repeats no word
    }
