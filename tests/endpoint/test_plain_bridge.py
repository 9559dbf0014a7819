"""The bridge for plain answers: what it edits, and what it refuses."""

import json
from typing import Any

import pytest

from cheapgpu.core.completion_verifier import verify_completion
from cheapgpu.core.verify import judge
from cheapgpu.endpoint.canonical import Identity
from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.failures import Fault, Reason
from cheapgpu.endpoint.plain_bridge import PlainAnswer, bridge_plain
from tests.core.exchanges import WHOLE_BODY, whole
from tests.endpoint.bridging import Pin

USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}


def answer(choice: dict[str, Any] | None = None, **members: Any) -> bytes:
    """A plain answer of an engine."""
    given = {
        "index": 0,
        "message": {"role": "assistant", "content": "Rain."},
        "finish_reason": "stop",
        **(choice or {}),
    }
    value = {
        "id": "e",
        "object": "chat.completion",
        "created": 1,
        "model": "m1",
        "choices": [given],
        "usage": USAGE,
        **members,
    }
    return json.dumps(value).encode()


def bridged(body: bytes, limit: int = 64) -> PlainAnswer:
    """What a buyer of m1 gets for it."""
    identity = Identity("chatcmpl-1", 5, "m1")
    return bridge_plain(body, DIALECTS["tgi"], identity, limit, Pin("m1"))


def test_a_plain_answer_is_written_anew() -> None:
    """Our identity, the profile's members, the engine's text, reason and usage."""
    each = bridged(
        answer(
            {
                "message": {"role": "", "content": "Hi", "tool_calls": [], "refusal": None},
                "index": 3,
            },
            model="/models/m1",
            created=1.5,
            timings={},
        )
    )
    assert json.loads(each.body) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 5,
        "model": "m1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi"},
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
    }
    assert each.edits.as_dict() == {
        "identity": 1,
        "index": 1,
        "members-left-out": 1,
        "model": 1,
        "role-empty": 1,
        "tools-empty": 1,
    }


def test_filtered_content_stays_null() -> None:
    """Profile, "JSON completion": content is null only where it was filtered."""
    message = {"role": "assistant", "content": None}
    each = bridged(answer({"message": message, "finish_reason": "content_filter"}))
    assert json.loads(each.body)["choices"][0]["message"]["content"] is None
    assert "content-null" not in each.edits.as_dict()


FAILING: list[tuple[Reason, bytes]] = [
    ("malformed", b""),
    ("malformed", b"null"),
    ("malformed", b'{"a":1,"a":2}'),
    ("engine-error", b'{"error":{"message":"x"}}'),
    ("engine-error", answer(error="x")),
    ("not-a-chunk", answer(object="text_completion")),
    ("not-a-chunk", answer(choices=[])),
    ("not-a-chunk", answer({"message": None})),
    ("not-a-chunk", answer({"message": {"content": None}})),
    ("not-a-chunk", answer({"message": {"content": ["a"]}})),
    ("not-a-chunk", answer({"message": {"role": "user", "content": "a"}})),
    ("finish-missing", answer({"finish_reason": None})),
    ("finish-unknown", answer({"finish_reason": "abort"})),
    ("model-changed", answer(model="other") + b" "),
    ("usage-missing", answer(usage=None)),
    ("usage-missing", answer(usage={})),
    ("usage-wrong", answer(usage={**USAGE, "total_tokens": 8})),
    ("usage-wrong", answer(usage={"prompt_tokens": 1})),
    ("limit-exceeded", answer(usage={**USAGE, "completion_tokens": 65, "total_tokens": 72})),
]


@pytest.mark.parametrize(("reason", "body"), FAILING)
def test_what_cannot_be_passed_on_fails_for_its_reason(reason: Reason, body: bytes) -> None:
    """A fault is named; no answer is made of it."""
    identity = Identity("chatcmpl-1", 5, "m1")
    with pytest.raises(Fault) as caught:
        bridge_plain(body, DIALECTS["openai"], identity, 64, lambda name: name == "m1")
    assert caught.value.failure.reason == reason


CHANGES: list[dict[str, Any]] = [
    {},
    {"model": "other"},
    {"usage": {**USAGE, "total_tokens": 8}},
    {"usage": {"prompt_tokens": 1, "completion_tokens": 9999, "total_tokens": 10_000}},
    {"usage": {"prompt_tokens": 1, "completion_tokens": 9999, "total_tokens": 1}},
    {"object": "other"},
    {"choices": []},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_verifying_in_one_call_is_verifying(changes: dict[str, Any]) -> None:
    """`verify_completion` and the judgement of the whole exchange name the same rules."""
    value = {**json.loads(WHOLE_BODY), **changes}
    body = json.dumps(value).encode()
    judgement = judge(whole(body))
    asked = json.loads(whole(body).request.body)  # type: ignore[union-attr]
    broken = verify_completion(body, model=asked["model"], limit=asked["max_completion_tokens"])
    assert sorted(broken) == judgement.broken
