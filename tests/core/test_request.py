"""Which requests are refused, by which rule, and what the sender is told."""

import json
from typing import Any

import pytest

from cheapgpu.core.request import (
    EXCLUDED,
    ChatRequest,
    InputMessage,
    Refusal,
    decode_request,
    refuse_content_type,
)
from cheapgpu.core.rules import RULES
from tests.core.documents import VALID


def refusal(body: bytes | None = None, **changes: Any) -> Refusal:
    """The refusal of a valid streamed request with members replaced, or left out where `...`."""
    if body is None:
        members = {**VALID["request"][0], **changes}
        body = json.dumps({k: v for k, v in members.items() if v is not ...}).encode()
    decoded = decode_request(body)
    assert isinstance(decoded, Refusal)
    return decoded


def test_a_request_within_the_profile_is_decoded() -> None:
    """Model, messages, limit and mode come out as sent, an integral limit as an integer."""
    members = {**VALID["request"][0], "max_completion_tokens": 12.0}
    assert decode_request(json.dumps(members).encode()) == ChatRequest(
        model="m",
        messages=[InputMessage(role="user", content="Hi")],
        max_completion_tokens=12,
        stream=True,
    )


@pytest.mark.parametrize("rule", [r for r in RULES if r.area == "refuse"], ids=lambda r: r.id)
def test_each_rule_names_its_own_fault(rule: Any) -> None:
    """The request that explains a rule of `refuse/` is refused by that rule."""
    if rule.judge != "request.decode_request" and rule.id != "refuse/content-type":
        assert isinstance(decode_request(rule.request), ChatRequest)
        return
    found = refuse_content_type(rule.content_type) or decode_request(rule.request)
    assert isinstance(found, Refusal)
    assert found.rule == rule.id


@pytest.mark.parametrize(
    ("changes", "rule", "param"),
    [
        ({"model": 5}, "model-missing", "model"),
        ({"messages": {}}, "messages-missing", "messages"),
        ({"messages": [1]}, "role-missing", "messages[0]"),
        ({"messages": [{"role": ["x"], "content": "a"}]}, "role-unknown", "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "content-parts", "messages[0].content"),
        ({"max_completion_tokens": -1.0}, "limit-negative", "max_completion_tokens"),
        ({"max_completion_tokens": -0.0}, "limit-zero", "max_completion_tokens"),
        ({"max_completion_tokens": [64]}, "limit-string", "max_completion_tokens"),
        ({"stream": 1}, "stream-string", "stream"),
        ({"stream_options": None}, "usage-not-requested", "stream_options"),
        ({"stream_options": [True]}, "options-empty", "stream_options"),
        ({"stream_options": {"x": 1}}, "options-extra-field", "stream_options.include_usage"),
        ({"stream": False, "stream_options": None}, "options-without-stream", "stream_options"),
        ({"a/b~c": 1}, "unknown-field", "a/b~c"),
    ],
)
def test_other_shapes_of_a_fault_belong_to_the_nearest_rule(
    changes: dict[str, Any], rule: str, param: str
) -> None:
    """Where no rule names the exact shape, the rule of the member does, and param points to it."""
    found = refusal(**changes)
    assert (found.rule, found.param) == (f"refuse/{rule}", param)


def test_the_message_says_what_to_do_instead() -> None:
    """Field, wanted, found and remedy are in one sentence, for every excluded member."""
    assert refusal(max_tokens=64).message == (
        "max_tokens: expected only model, messages, max_completion_tokens, stream, stream_options,"
        " found a member outside the profile; use max_completion_tokens"
    )
    assert refusal(b"").message == "body: expected a JSON object, found no JSON text"
    for name, remedy in EXCLUDED.items():
        assert refusal(**{name: None}).message.endswith(remedy)


def test_members_that_say_most_are_named_first() -> None:
    """An excluded member is named before what its sender left out because of it."""
    assert refusal(max_tokens=64, max_completion_tokens=...).rule == "refuse/max_tokens"


def test_no_text_of_a_message_is_repeated() -> None:
    """What a buyer wrote never comes back in a refusal, but for the start of a member's name."""
    secret = "open sesame " * 50
    for changes in (
        {"messages": [{"role": "user", "content": secret, "extra": secret}]},
        {"messages": [{"role": secret, "content": secret}]},
        {"messages": secret},
        {"model": secret * 10},
        {secret: 1},
    ):
        assert secret[:65] not in refusal(**changes).message


def test_only_json_is_taken_as_json() -> None:
    """The content type must say JSON; parameters and case do not matter."""
    assert refuse_content_type("Application/JSON; charset=utf-8") is None
    for content_type in (None, "text/json", "text/plain", "application/x-www-form-urlencoded"):
        found = refuse_content_type(content_type)
        assert found is not None
        assert found.rule == "refuse/content-type"
