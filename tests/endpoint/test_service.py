"""Who is answered what, over real sockets, and what the engine is sent."""

import asyncio
import json
import ssl
from typing import Any

import pytest

from cheapgpu.core import schema
from cheapgpu.core.examples import completion
from tests.check.servers import TLS
from tests.core.exchanges import STREAM_BODY
from tests.endpoint.live import (
    KEY,
    PLAIN,
    Answer,
    Engine,
    ask,
    endpoint_before,
    question,
    read_answer,
    saying,
    send,
    streamed,
    whole,
)

COMPLETION = whole(completion())


def asked(body: bytes = PLAIN, handler: Any = None, **how: Any) -> tuple[Answer, Engine]:
    """One question to an endpoint before an engine that answers it; and what the engine saw."""

    async def main() -> tuple[Answer, Engine]:
        engine = Engine(handler or saying(COMPLETION))
        settings = how.pop("settings", {})
        async with asyncio.timeout(20), endpoint_before(engine, **settings) as running:
            return await ask(running.inference_url, body, **how), engine

    return asyncio.run(main())


def test_a_request_is_made_anew_for_the_engine() -> None:
    """The engine gets its own model id and key and the five members; nothing of the buyer's."""
    answer, engine = asked(PLAIN)
    assert answer.status == 200
    assert len(engine.seen) == 1
    head, _, body = engine.seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert b"\r\nauthorization: Bearer a-key-of-the-engine\r\n" in head
    assert KEY.encode() not in engine.seen[0]
    assert json.loads(body) == {
        "model": "engine-m1",
        "messages": [{"role": "user", "content": "Describe how rain forms."}],
        "max_completion_tokens": 64,
        "stream": False,
    }


def test_a_plain_answer_says_what_was_edited() -> None:
    """The answer carries its id and the count of its edits as header fields."""
    answer, _ = asked(PLAIN)
    assert json.loads(answer.body)["id"] == answer.fields["x-request-id"]
    assert "identity=1" in answer.fields["x-cheapgpu-edits"]
    assert answer.fields["content-type"] == "application/json"


def test_a_stream_is_answered_as_one() -> None:
    """Media type, no buffering, the declared model in every chunk."""
    answer, _ = asked(question(), saying(streamed(STREAM_BODY)))
    assert answer.status == 200
    assert answer.whole
    assert answer.fields["content-type"] == "text/event-stream"
    assert answer.fields["x-accel-buffering"] == "no"
    assert answer.body.count(b'"model":"m1"') == answer.body.count(b"data: {")
    assert answer.body.endswith(b"data: [DONE]\n\n")


REFUSED: list[tuple[int, str | None, str | None, bytes, dict[str, Any]]] = [
    (401, "invalid_api_key", None, PLAIN, {"key": None}),
    (401, "invalid_api_key", None, PLAIN, {"key": "another-key"}),
    (401, "invalid_api_key", None, b"not json", {"key": "another-key"}),
    (400, "not-json", None, b"not json", {}),
    (400, "content-type", None, PLAIN, {"media_type": "text/plain"}),
    (400, "temperature", "temperature", question(temperature=1), {}),
    (400, "limit-missing", "max_completion_tokens", question(max_completion_tokens=None), {}),
    (400, "ceiling", "max_completion_tokens", question(max_completion_tokens=129), {}),
    (404, "model_not_found", "model", question(model="m2"), {}),
    (404, "model_not_found", "model", question(model="engine-m1"), {}),
    (404, None, None, PLAIN, {"path": "/v1/completions"}),
    (405, None, None, b"", {"method": "GET"}),
    (405, None, None, b"", {"method": "DELETE"}),
    (405, None, None, b"", {"method": "POST", "path": "/healthz"}),
    (400, "plain_only", "stream", question(), {"settings": {"plain_only": True}}),
]


@pytest.mark.parametrize(("status", "code", "param", "body", "how"), REFUSED)
def test_what_is_outside_is_refused_and_reaches_no_engine(
    status: int, code: str | None, param: str | None, body: bytes, how: dict[str, Any]
) -> None:
    """A refusal has its status, the error schema and the field; the engine hears nothing."""
    answer, engine = asked(body, **how)
    assert answer.status == status
    assert schema.is_valid("error", json.loads(answer.body))
    assert (answer.error["code"], answer.error["param"]) == (code, param)
    assert engine.seen == []


def test_a_refusal_for_want_of_a_key_challenges() -> None:
    """RFC 9110 section 15.5.2: a 401 says what is wanted."""
    answer, _ = asked(PLAIN, key=None)
    assert answer.fields["www-authenticate"] == "bearer"


def test_models_are_listed_for_those_with_a_key() -> None:
    """The declared ids, not the engine's."""
    answer, engine = asked(b"", method="GET", path="/v1/models")
    assert [model["id"] for model in json.loads(answer.body)["data"]] == ["m1"]
    refused, _ = asked(b"", method="GET", path="/v1/models", key=None)
    assert refused.status == 401
    assert engine.seen == []


def test_too_many_at_once_are_told_to_come_back() -> None:
    """The request over at_once gets 429 with Retry-After, before inference."""

    async def main() -> tuple[Answer, Answer, int]:
        free = asyncio.Event()

        async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await free.wait()
            writer.write(COMPLETION)

        engine = Engine(slow)
        async with asyncio.timeout(20), endpoint_before(engine, at_once=1) as running:
            first = asyncio.create_task(ask(running.inference_url, PLAIN))
            await engine.asked.wait()
            second = await ask(running.inference_url, PLAIN)
            free.set()
            return await first, second, len(engine.seen)

    first, second, seen = asyncio.run(main())
    assert first.status == 200
    assert (second.status, second.error["code"]) == (429, "engine-busy")
    assert int(second.fields["retry-after"]) >= 1
    assert seen == 1


def test_health_says_alive_and_ready_says_why_not() -> None:
    """/healthz answers while the process lives; /readyz only where the engine lists the model."""

    async def main() -> tuple[Answer, Answer, Answer, Answer, Answer]:
        engine = Engine(saying(COMPLETION), models=whole(b'{"data":[{"id":"another"}]}'))
        async with asyncio.timeout(20), endpoint_before(engine, metrics_port=0) as running:
            url = running.inference_url
            assert running.metrics_url is not None
            return (
                await ask(url, method="GET", path="/healthz", key=None),
                await ask(url, method="GET", path="/readyz", key=None),
                await ask(running.metrics_url, method="GET", path="/readyz", key=None),
                await ask(url, PLAIN),
                await ask(running.metrics_url, method="GET", key=None),
            )

    alive, public, private, refused, metrics = asyncio.run(main())
    assert alive.status == 200
    assert (public.status, json.loads(public.body)) == (503, {"status": "not ready"})
    assert json.loads(private.body)["models"] == {"m1": "it does not list 'engine-m1'"}
    assert (refused.status, refused.error["code"]) == (503, "engine-not-ready")
    assert b'cheapgpu_endpoint_ready{model="m1"} 0.0' in metrics.body
    assert b'cheapgpu_endpoint_refused_total{why="capacity"} 1.0' in metrics.body


def test_metrics_count_without_a_word_of_what_was_said() -> None:
    """Answers, edits and tokens are counted; the operator's port answers nothing else."""

    async def main() -> tuple[Answer, Answer]:
        engine = Engine(saying(streamed(STREAM_BODY)))
        async with asyncio.timeout(20), endpoint_before(engine, metrics_port=0) as running:
            await ask(running.inference_url, question())
            assert running.metrics_url is not None
            page = await ask(running.metrics_url, method="GET", key=None)
            other = await ask(running.metrics_url, b"", path="/v1/chat/completions", key=None)
            return page, other

    page, other = asyncio.run(main())
    text = page.body.decode()
    assert 'answers_total{mode="stream",model="m1",outcome="complete"} 1.0' in text
    assert 'edits_total{edit="model",model="m1"}' in text
    assert 'tokens_total{model="m1",side="completion"}' in text
    assert 'cheapgpu_endpoint_in_flight{upstream="upstream-1"} 0.0' in text
    assert 'first_byte_seconds_count{model="m1"} 1.0' in text
    assert "rain" not in text.lower()
    assert other.status == 404


def test_tls_is_served_with_the_given_certificate() -> None:
    """Buyers reach it by https; plain HTTP on the same port gets no answer."""

    async def main() -> tuple[int, bytes]:
        engine = Engine(saying(COMPLETION))
        files: dict[str, Any] = {
            "tls_cert": str(TLS / "certificate.pem"),
            "tls_key": str(TLS / "key.pem"),
        }
        async with asyncio.timeout(20), endpoint_before(engine, **files) as running:
            url = running.inference_url
            assert url.startswith("https://")
            plain, writer = await send(url, PLAIN)
            nothing = await plain.read()
            writer.close()
            context = ssl.create_default_context(cafile=TLS / "certificate.pem")
            reader, writer = await send(url, PLAIN, tls=context)
            answer = await read_answer(reader)
            writer.close()
            return answer.status, nothing

    assert asyncio.run(main()) == (200, b"")
