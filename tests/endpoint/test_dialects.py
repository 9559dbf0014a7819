"""Engines are recognised by their own answers, and are sent the request in their own terms."""

import json
from typing import Any

import pytest

from cheapgpu.core.request import ChatRequest, InputMessage
from cheapgpu.endpoint.dialects import DIALECTS, recognise
from cheapgpu.endpoint.edits import EditCount
from cheapgpu.endpoint.engine_request import engine_body

#: Header fields and models of `GET /v1/models`, as the engines answer.
SEEN: list[tuple[str, dict[bytes, bytes], list[dict[str, Any]]]] = [
    ("llama.cpp", {b"server": b"llama.cpp"}, [{"id": "m", "owned_by": "llamacpp"}]),
    ("llama.cpp", {}, [{"id": "m", "owned_by": "llamacpp"}]),
    ("vllm", {b"server": b"uvicorn"}, [{"id": "m", "owned_by": "vllm", "root": "/m"}]),
    ("sglang", {}, [{"id": "m", "owned_by": "sglang"}]),
    ("ollama", {}, [{"id": "m:latest", "owned_by": "library", "created": 7}]),
    ("lm-studio", {}, [{"id": "m", "owned_by": "organization_owner"}]),
    ("tgi", {}, [{"id": "org/m", "owned_by": "org/m", "created": 0}]),
    ("transformers", {}, [{"id": "org/m", "owned_by": "org", "created": 1.5}]),
    ("litellm", {b"x-litellm-version": b"1"}, [{"id": "m", "owned_by": "openai"}]),
    ("llama-cpp-python", {}, [{"id": "m", "owned_by": "me", "permissions": []}]),
    ("openai", {}, [{"id": "gpt", "owned_by": "system", "created": 1}]),
    ("openai", {}, [{"id": "m", "owned_by": ["x"]}]),
    ("openai", {}, []),
]


@pytest.mark.parametrize(("name", "fields", "models"), SEEN)
def test_an_engine_is_recognised(
    name: str, fields: dict[bytes, bytes], models: list[dict[str, Any]]
) -> None:
    """By its Server field, its owner's name, or a habit that no other has."""
    assert recognise(fields, models) is DIALECTS[name]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("stream", [True, False])
def test_an_engine_gets_the_five_members_in_its_terms(dialect: Any, stream: bool) -> None:  # noqa: FBT001
    """The limit under the names that it honours, usage asked for wherever it streams."""
    request = ChatRequest(
        model="m1",
        messages=[InputMessage("user", 'Say "雨".')],
        max_completion_tokens=9,
        stream=stream,
    )
    body = json.loads(engine_body(request, "their/model", dialect))
    streams = stream or dialect.collects
    assert body.pop("stream_options", None) == ({"include_usage": True} if streams else None)
    assert {body.pop(limit) for limit in dialect.limits} == {9}
    assert body == {
        "model": "their/model",
        "messages": [{"role": "user", "content": 'Say "雨".'}],
        "stream": streams,
    }


def test_edits_are_counted_by_name() -> None:
    """The count shows what was made, sorted, and nothing that was not."""
    count = EditCount()
    count.add(("usage-null", "model"))
    count.add(("usage-null",), 3)
    assert str(count) == "model=1, usage-null=4"
    assert count.as_dict() == {"model": 1, "usage-null": 4}
