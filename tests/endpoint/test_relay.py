"""Answers on their way: at once, with heartbeats, stopped with their buyer, failed honestly."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from cheapgpu.core import schema
from cheapgpu.core.examples import DONE, RAIN, ROLE, STOP, SUMMARY, completion
from cheapgpu.core.sse import EventReader
from cheapgpu.core.verify import judge
from cheapgpu.endpoint.relay import Relay
from cheapgpu.endpoint.running import Running, running_endpoint
from cheapgpu.endpoint.settings import ModelSettings, Settings, UpstreamSettings
from tests.check.servers import LAST_CHUNK, chunked, unused_port
from tests.core.exchanges import EVENTS, STREAM_BODY, exchange
from tests.endpoint.bridging import text_of, usage_of
from tests.endpoint.live import (
    CHUNKED_HEAD,
    ENVIRONMENT,
    MODELS,
    PLAIN,
    Answer,
    Engine,
    ask,
    dying,
    endpoint_before,
    engine_at,
    question,
    read_answer,
    read_head,
    saying,
    send,
    settings,
    streamed,
    whole,
)

T = TypeVar("T")


def running(handler: Any, use: Callable[[Running, Engine], Awaitable[T]], **changes: Any) -> T:
    """What `use` gives for an endpoint before an engine with this handler."""

    async def main() -> T:
        engine = Engine(handler)
        async with asyncio.timeout(30), endpoint_before(engine, **changes) as endpoint:
            return await use(endpoint, engine)

    return asyncio.run(main())


def answered(handler: Any, body: bytes = question(), **changes: Any) -> Answer:
    """The answer to one question."""
    return running(handler, lambda endpoint, _: ask(endpoint.inference_url, body), **changes)


def error_of(answer: Answer) -> dict[str, Any]:
    """The error that ends a stream."""
    last = EventReader().feed(answer.body)[-1]
    value = json.loads(last.data)
    assert schema.is_valid("error", value)
    error: dict[str, Any] = value["error"]
    return error


async def text_until(reader: asyncio.StreamReader, word: bytes) -> bytes:
    """Read until a word has come."""
    got = b""
    while word not in got:
        piece = await reader.read(4096)
        assert piece, got
        got += piece
    return got


def test_each_event_leaves_when_it_comes() -> None:
    """The buyer has an engine's text while the engine still waits to say the next."""

    async def use(endpoint: Running, _: Engine) -> Answer:
        reader, writer = await send(endpoint.inference_url, question())
        status, fields = await read_head(reader)
        await text_until(reader, b"Rain")
        go_on.set()
        rest = await text_until(reader, LAST_CHUNK)
        writer.close()
        return Answer(status, fields, rest, whole=True)

    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED_HEAD + chunked(ROLE, RAIN))
        await go_on.wait()
        writer.write(chunked(STOP, SUMMARY, DONE) + LAST_CHUNK)

    go_on = asyncio.Event()
    assert b"data: [DONE]" in running(handler, use).body


def test_a_waiting_buyer_hears_heartbeats() -> None:
    """While the engine is silent comments come, the head before the first; then the answer."""
    answer = answered(
        saying(
            0.5, CHUNKED_HEAD + chunked(ROLE, RAIN), 0.4, chunked(STOP, SUMMARY, DONE) + LAST_CHUNK
        ),
        heartbeat=0.1,
    )
    assert answer.body.startswith(b": ")
    assert answer.body.count(b": waiting") >= 2
    judgement = judge(exchange(answer.body, headers=EVENTS, sent=question()))
    assert (judgement.outcome, judgement.broken) == ("complete", [])


def test_a_plain_answer_waits_without_heartbeats() -> None:
    """A body of JSON has no comments: the head comes with the answer."""
    answer = answered(saying(0.4, whole(completion())), PLAIN, heartbeat=0.1)
    assert answer.status == 200
    assert answer.body.startswith(b"{")


EARLY: list[tuple[str, int, Any, bytes]] = [
    ("engine-error", 502, saying(streamed(b'data: {"error":{"message":"x"}}\n\n')), question()),
    ("engine-error", 502, saying(whole(b'{"error":{"message":"x"}}')), PLAIN),
    ("engine-error", 502, saying(whole(b"{}", "500 Oops")), question()),
    ("engine-error", 502, saying(whole(b"{}", "401 No")), PLAIN),
    ("engine-refused", 400, saying(whole(b'{"detail":"x"}', "422 No")), question()),
    ("engine-context", 400, saying(whole(b'{"error":"context length"}', "400 No")), PLAIN),
    ("engine-busy", 503, saying(whole(b"{}", "429 Busy")), PLAIN),
    ("engine-closed", 502, dying(), question()),
    ("malformed", 502, saying(b"SSH-2.0\r\n\r\n"), question()),
    ("malformed", 502, saying(whole(b"{")), PLAIN),
    ("media-type", 502, saying(whole(b"{}")), question()),
    ("media-type", 502, saying(whole(b"{}", media_type="text/html")), PLAIN),
    ("cut", 502, dying(whole(b"{}")[:-1]), PLAIN),
    ("finish-missing", 502, saying(streamed(DONE)), question()),
    ("finish-missing", 502, saying(streamed(b": hi\n\n")), question()),
    ("engine-silent", 504, saying(CHUNKED_HEAD, 9.0), question()),
    ("engine-silent", 504, saying(9.0), question()),
    ("deadline", 504, saying(9.0), PLAIN),
]  # fmt: skip


@pytest.mark.parametrize(("code", "status", "handler", "body"), EARLY)
def test_an_early_failure_is_a_status(code: str, status: int, handler: Any, body: bytes) -> None:
    """Before anything was said, whatever goes wrong at the engine is a refusal with its reason."""
    deadline = 0.6 if code == "deadline" else 60.0
    silence = 0.4 if code == "engine-silent" else 60.0
    answer = answered(handler, body, silence=silence, deadline=deadline)
    assert (answer.status, answer.error["code"]) == (status, code)
    assert schema.is_valid("error", json.loads(answer.body))
    assert ("retry-after" in answer.fields) == (status == 503)


#: Without framing the end of the connection is the end of the body, or a cut: nobody can tell.
ENDLESS_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
LATE: list[tuple[str, Any]] = [
    ("engine-error", saying(streamed(ROLE, RAIN, b'data: {"error":{"message":"x"}}\n\n', DONE))),
    ("cut", dying(CHUNKED_HEAD + chunked(ROLE, RAIN))),
    ("cut", dying(CHUNKED_HEAD + chunked(ROLE, RAIN, STOP, SUMMARY))),
    ("cut", saying(streamed(ROLE, RAIN, STOP, SUMMARY, b"data: {"))),
    ("cut", dying(ENDLESS_HEAD + ROLE + RAIN + STOP + SUMMARY)),
    ("cut", saying(CHUNKED_HEAD + chunked(ROLE, RAIN) + b"zz\r\n")),
    ("usage-missing", saying(streamed(ROLE, RAIN, STOP, DONE))),
    ("malformed", saying(streamed(ROLE, RAIN, b"data: oops\n\n", STOP, SUMMARY, DONE))),
    ("engine-silent", saying(CHUNKED_HEAD + chunked(ROLE, RAIN), 9.0)),
    ("engine-silent", saying(CHUNKED_HEAD + chunked(RAIN), *(0.1, chunked(b": alive\n\n")) * 30)),
    ("model-changed", saying(streamed(RAIN, RAIN.replace(b'"model":"', b'"model":"z'), STOP))),
]  # fmt: skip


@pytest.mark.parametrize(("code", "handler"), LATE)
def test_a_late_failure_is_an_error_in_the_stream(code: str, handler: Any) -> None:
    """After the first text an error object ends the stream; no finish, usage or [DONE] comes."""
    answer = answered(handler, silence=0.4 if code == "engine-silent" else 60.0)
    assert answer.status == 200
    assert b"Rain" in answer.body
    assert error_of(answer)["code"] == code
    judgement = judge(exchange(answer.body, headers=EVENTS, sent=question()))
    assert (judgement.outcome, judgement.broken) == ("failed", [])
    assert judgement.usage is None


def test_an_unreachable_engine_is_503_and_is_not_asked_again() -> None:
    """No connection: 503 with Retry-After, and the model is not ready until the engine answers."""

    async def main() -> tuple[Answer, Answer]:
        url = f"http://127.0.0.1:{unused_port()}/v1/chat/completions"
        given = settings(url, dialect="vllm")
        async with running_endpoint(given, ENVIRONMENT, lambda _: None) as endpoint:
            first = await ask(endpoint.inference_url, PLAIN)
            endpoint.upstreams[0].is_ready()
            return first, await ask(endpoint.inference_url, PLAIN)

    first, second = asyncio.run(main())
    assert (first.status, first.error["code"]) == (503, "engine-not-ready")
    assert (second.status, second.error["code"]) == (503, "engine-unreachable")
    assert "retry-after" in second.fields


@pytest.mark.parametrize("stream", [True, False])
def test_the_engine_is_left_when_the_buyer_leaves(stream: bool) -> None:  # noqa: FBT001
    """The engine's connection is closed at once, mid-stream and before a plain answer."""

    async def use(endpoint: Running, engine: Engine) -> int:
        reader, writer = await send(endpoint.inference_url, question() if stream else PLAIN)
        if stream:
            await text_until(reader, b"Rain")
        else:
            await engine.asked.wait()
        writer.close()
        await left.wait()
        return endpoint.upstreams[0].in_flight

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if stream:
            writer.write(CHUNKED_HEAD + chunked(ROLE, RAIN))
        assert await reader.read() == b""
        left.set()

    left = asyncio.Event()
    assert running(handler, use) == 0


def test_a_plain_answer_is_collected_where_the_dialect_says_so() -> None:
    """An engine that would go on after a plain buyer has left is asked for a stream."""
    engine = Engine(saying(streamed(STREAM_BODY)))

    async def main() -> Answer:
        async with endpoint_before(engine, dialect="transformers") as endpoint:
            return await ask(endpoint.inference_url, PLAIN)

    answer = asyncio.run(main())
    assert b'"stream":true' in engine.seen[0]
    assert answer.fields["content-type"] == "application/json"
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == text_of(STREAM_BODY)
    assert json.loads(answer.body)["usage"] == usage_of(STREAM_BODY)
    assert "collected=1" in answer.fields["x-cheapgpu-edits"]


def test_a_collected_answer_fails_like_any_other() -> None:
    """A stream that cannot be passed on makes no plain answer."""
    broken = saying(streamed(ROLE, RAIN, STOP, DONE))
    answer = answered(broken, PLAIN, dialect="transformers")
    assert (answer.status, answer.error["code"]) == (502, "usage-missing")


def test_connections_to_the_engine_are_kept() -> None:
    """Many answers, one connection; what the engine still sends after [DONE] does not break it."""
    connections: set[int] = set()

    async def use(endpoint: Running, engine: Engine) -> int:
        for _ in range(5):
            assert (await ask(endpoint.inference_url, question())).whole
        return len(engine.seen)

    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer.get_extra_info("peername")[1])
        writer.write(streamed(STREAM_BODY))

    assert running(handler, use) == 5
    assert len(connections) == 1


def test_an_engine_that_does_not_end_after_done_is_left() -> None:
    """The buyer has its end at [DONE]; the engine's open connection is closed after the grace."""

    async def use(endpoint: Running, _: Engine) -> Answer:
        answer = await ask(endpoint.inference_url, question())
        await left.wait()
        return answer

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED_HEAD + chunked(STREAM_BODY))
        assert await reader.read() == b""
        left.set()

    left = asyncio.Event()
    assert running(handler, use).body.endswith(DONE)


def test_a_slow_buyer_holds_the_engine_back() -> None:
    """A reader that takes nothing stops the reading of the engine: no more is sent than fits."""

    async def use(endpoint: Running, _: Engine) -> int:
        reader, writer = await send(endpoint.inference_url, question())
        await text_until(reader, b"Rain")
        previous = -1
        while sent[0] != previous:
            previous = sent[0]
            await asyncio.sleep(0.3)
        stalled = sent[0]
        await reader.read(1 << 20)
        writer.close()
        return stalled

    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED_HEAD + chunked(ROLE, RAIN))
        block = chunked(RAIN * 500)
        for _number in range(2000):  # 200 MB, were it all taken
            writer.write(block)
            await writer.drain()
            sent[0] += len(block)

    sent = [0]
    assert running(handler, use) < 60_000_000


@pytest.mark.parametrize("answers", [True, False])
def test_stopping_lets_answers_end_or_cuts_them(answers: bool) -> None:  # noqa: FBT001
    """Drained in time, an answer is whole; out of time it is a failure, never a success."""

    async def use(endpoint: Running) -> tuple[bool, asyncio.Task[Answer]]:
        asking = asyncio.create_task(ask(endpoint.inference_url, question()))
        await engine.asked.wait()
        draining = asyncio.create_task(endpoint.drain())
        await asyncio.sleep(0.05)
        if answers:
            go_on.set()
        return await draining, asking

    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED_HEAD + chunked(ROLE, RAIN))
        await go_on.wait()
        writer.write(chunked(STOP, SUMMARY, DONE) + LAST_CHUNK)

    go_on = asyncio.Event()
    engine = Engine(handler)

    async def main() -> tuple[bool, Answer]:
        async with asyncio.timeout(30):
            async with endpoint_before(engine, drain=20 if answers else 0.3) as endpoint:
                ended, asking = await use(endpoint)
            return ended, await asking

    ended, answer = asyncio.run(main())
    assert ended == answers
    if answers:
        assert answer.body.endswith(DONE)
    else:
        assert error_of(answer)["code"] == "stopping"


def test_keys_are_read_again(tmp_path: Any) -> None:
    """Without a restart new keys are valid and old ones no more; a wrong file changes nothing."""
    keys = tmp_path / "keys"
    keys.write_text("the-first-key\n")

    async def main() -> list[int]:
        engine = Engine(saying(whole(completion())))
        async with endpoint_before(engine, key_env=(), key_file=(str(keys),)) as endpoint:

            async def statuses() -> list[int]:
                url = endpoint.inference_url
                each = ("the-first-key", "the-second-key")
                return [(await ask(url, PLAIN, key=key)).status for key in each]

            got = await statuses()
            keys.write_text("the-second-key\n")
            assert endpoint.reload_keys({}) == 1
            got += await statuses()
            keys.write_text("")
            with pytest.raises(Exception, match="holds no key"):
                endpoint.reload_keys({})
            return got + await statuses()

    assert asyncio.run(main()) == [200, 401, 401, 200, 401, 200]


def test_a_second_engine_has_its_own_models() -> None:
    """Several upstreams: each model goes to its own engine."""

    async def main() -> tuple[int, int]:
        first = Engine(saying(whole(completion())))
        second = Engine(saying(whole(completion())), models=whole(MODELS))
        async with engine_at(first) as one, engine_at(second) as two:
            upstreams = (
                UpstreamSettings(url=one, model=(ModelSettings(id="a", engine_id="engine-m1"),)),
                UpstreamSettings(url=two, model=(ModelSettings(id="b", engine_id="engine-m1"),)),
            )
            given = Settings(port=0, access_log="", key_env=("KEYS",), upstream=upstreams)
            async with running_endpoint(given, ENVIRONMENT, lambda _: None) as endpoint:
                for model in ("a", "b", "b"):
                    body = question(model=model, stream=False, stream_options=None)
                    assert (await ask(endpoint.inference_url, body)).status == 200
        return len(first.seen), len(second.seen)

    assert asyncio.run(main()) == (1, 2)


def test_answers_on_one_connection_stay_apart() -> None:
    """A buyer's connection is kept: the next request on it gets its own answer."""

    async def use(endpoint: Running, _: Engine) -> list[bytes]:
        reader, writer = await send(endpoint.inference_url, question())
        first = await read_answer(reader)
        second_body = PLAIN
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
            b"a-key-of-a-buyer\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            % len(second_body)
            + second_body
        )
        second = await read_answer(reader)
        writer.close()
        return [first.body, second.body]

    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        plain = len(order) % 2
        order.append(plain)
        writer.write(whole(completion()) if plain else streamed(STREAM_BODY))

    order: list[int] = []
    first, second = running(handler, use)
    assert first.endswith(DONE)
    assert json.loads(second)["object"] == "chat.completion"


@pytest.mark.parametrize(
    ("said", "body"),
    [
        (whole(completion()), PLAIN),
        (streamed(STREAM_BODY), question()),
        (whole(b"{}"), PLAIN),
        (streamed(RAIN), question()),
    ],
)
def test_an_answer_that_has_ended_leaves_nothing_to_the_collector(said: bytes, body: bytes) -> None:
    """What an answer was made of goes with its end; the garbage collector would come later."""
    gc.collect()
    gc.disable()
    try:
        answered(saying(said), body)
        assert not [each for each in gc.get_objects() if type(each) is Relay]
    finally:
        gc.enable()
