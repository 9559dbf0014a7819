"""Plain answers verified in one call: the rules that they break, and no other judgement."""

import json
from typing import Any

import pytest

from cheapgpu.core.completion_verifier import verify_completion
from cheapgpu.core.verify import judge
from tests.core.exchanges import WHOLE_BODY, whole

VALUE: dict[str, Any] = json.loads(WHOLE_BODY)
ASKED: dict[str, Any] = json.loads(whole(WHOLE_BODY).request.body)  # type: ignore[union-attr]


def changed(**message: Any) -> dict[str, Any]:
    """Choices whose message has other members."""
    choice = VALUE["choices"][0]
    return {"choices": [{**choice, "message": {**choice["message"], **message}}]}


CHANGES: list[dict[str, Any]] = [
    {},
    {"model": "other"},
    {"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 3}},
    {"usage": {"prompt_tokens": 1, "completion_tokens": 9999, "total_tokens": 10_000}},
    {"usage": {"prompt_tokens": 1.0, "completion_tokens": 1, "total_tokens": 2}},
    {"usage": None},
    {"object": "other"},
    {"created": -1},
    {"choices": []},
    {"odd": {"a": [1]}},
    changed(content=None),
    changed(content="a:b"),
    changed(tool_calls=None),
    changed(tool_calls=[]),
]


def verified(body: bytes) -> list[str]:
    """The rules that a body breaks, in order."""
    limit = ASKED["max_completion_tokens"]
    return sorted(verify_completion(body, model=ASKED["model"], limit=limit))


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("changes", CHANGES)
def test_one_call_names_the_rules_of_the_whole_judgement(
    changes: dict[str, Any], separators: tuple[str, str]
) -> None:
    """Whatever breaks, and however the same is written."""
    body = json.dumps({**VALUE, **changes}, separators=separators).encode()
    assert verified(body) == judge(whole(body)).broken


@pytest.mark.parametrize(
    ("theirs", "doubled"),
    [
        (b'"id"', b'"id":"x","id"'),
        (b'"role"', b'"role":"assistant","role"'),
        (b'"prompt_tokens"', b'"prompt_tokens":7,"prompt_tokens"'),
        (b'"content"', b'"tool_calls":null,"tool_calls":null,"content"'),
        (b'"content":"', b'"content":"","content":"\\u003a'),
    ],
)
def test_a_name_that_stands_there_twice_is_found(theirs: bytes, doubled: bytes) -> None:
    """Also where a spelled colon makes up for it."""
    body = json.dumps(VALUE, separators=(",", ":")).encode()
    assert verified(body) == []
    assert theirs in body
    assert verified(body.replace(theirs, doubled, 1)) == ["whole/schema"]


def test_what_is_no_json_is_no_answer() -> None:
    """Not UTF-8, cut off, or nested beyond the limit in a member of no meaning."""
    body = json.dumps(VALUE, separators=(",", ":")).encode()
    deep = b"[" * 200 + b"]" * 200
    for bad in (b"", body[:-1], body.replace(b'"id"', b'"\xff":1,"id"')):
        assert verified(bad) == ["whole/schema"]
    assert verified(body.replace(b'"id"', b'"x":%b,"id"' % deep)) == ["whole/schema"]
