"""The plain answer with usual members: read quickly, it is passed on as by way of a dictionary."""

import json
import random
from typing import Any

import pytest

from cheapgpu.core import strict_json
from cheapgpu.endpoint.canonical import Identity
from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.failures import Fault
from cheapgpu.endpoint.plain_bridge import bridge_any, bridge_plain
from cheapgpu.endpoint.usual_answer import usual_answer
from tests.core.streams import TEXTS
from tests.endpoint.bridging import Pin

IDENTITY = Identity("chatcmpl-1", 5, "m1")
VALUES: tuple[Any, ...] = (None, None, [], {}, "", "a:b", 0, False, 1.5e-9, {"a": {"b": 1}})
DAMAGE = [
    b"", b" ", b"\n", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"\xff", b"\x00",
    b'"model":"m1",', b'"id":"x",', b'"content":"x",', b'"role":"assistant",', b'"error":{},',
    b'"prompt_tokens":7,', b'"usage":null,', b"1e999", b"NaN", b"\\u003a", b"\\ud800", b"12.0",
    b"[" * 130 + b"]" * 130,
]  # fmt: skip
MEMBERS = {
    0: ("service_tier", "system_fingerprint", "prompt_logprobs", "timings", "odd", "error"),
    1: ("logprobs", "stop_reason", "matched_stop", "token_ids", "odd"),
    2: ("refusal", "annotations", "reasoning", "tool_calls", "function_call", "audio", "odd"),
    3: ("prompt_tokens_details", "completion_tokens_details", "odd"),
}


def shuffled(chance: random.Random, level: int, members: dict[str, Any]) -> dict[str, Any]:
    """An object with some members more, some of them in another order."""
    for name in MEMBERS[level]:
        if chance.random() < 0.04:
            members[name] = chance.choice(VALUES)
    if chance.random() < 0.5:
        return members
    return dict(chance.sample(list(members.items()), len(members)))


def random_answer(chance: random.Random) -> bytes:
    """A plain answer of some engine, mostly with usual members only."""
    usage = {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "total_tokens": chance.choice((9, 9, 9, 8)),
    }
    text = "".join(chance.choices(TEXTS, k=4))
    choice = {
        "index": 0 if chance.random() < 0.95 else chance.choice((1, 0.0, False, None)),
        "message": shuffled(chance, 2, {"role": "assistant", "content": text}),
        "finish_reason": chance.choice(
            ("stop", "length", "content_filter", "stop", "length", "eos_token")
        ),
    }
    value = {
        "id": "e",
        "object": "chat.completion",
        "created": 1 if chance.random() < 0.95 else 1.5,
        "model": chance.choice(("m1", "m1", "m1", "/models/m1", "m1", "/models/m1", "", None)),
        "choices": [shuffled(chance, 1, choice)],
        "usage": shuffled(chance, 3, usage),
    }
    separators = chance.choice(((",", ":"), (", ", ": ")))
    indent = 1 if chance.random() < 0.1 else None
    value = shuffled(chance, 0, value)
    ascii_only = chance.random() < 0.3
    text = json.dumps(value, separators=separators, indent=indent, ensure_ascii=ascii_only)
    return text.encode()


def damaged(chance: random.Random, body: bytes) -> bytes:
    """A body with a piece put in, or in the place of others."""
    at = chance.randrange(len(body) + 1)
    if chance.random() < 0.5:
        at = max(body.find(b'"', at), 0)
    return body[:at] + chance.choice(DAMAGE) + body[at + chance.choice((0, 0, 1, 4)) :]


def passed_on(bridge: Any, body: bytes) -> tuple[Any, ...]:
    """All that an answer leaves behind, or why it does not."""
    pin = Pin("m1")
    try:
        answer = bridge(body, DIALECTS["tgi"], IDENTITY, 8, pin)
    except Fault as fault:
        return fault.failure.reason, fault.failure.what, pin("first"), pin("m1")
    report = answer.report
    return (
        answer.body,
        answer.edits.as_dict(),
        str(answer.edits),
        answer.finish_reason,
        (report.usage.prompt_tokens, report.usage.completion_tokens, report.usage.total_tokens),
        report.raw,
        pin("first"),
    )


def check_agreement(seed: int) -> bool:
    """Compare the two ways on one answer; whether the quick one was taken."""
    chance = random.Random(seed)
    body = random_answer(chance)
    if chance.random() < 0.5:
        body = damaged(chance, body)
    assert passed_on(bridge_plain, body) == passed_on(bridge_any, body), (seed, body)
    if usual_answer(body) is None:
        return False
    assert isinstance(strict_json.decode(body), dict), (seed, body)
    return True


def test_the_quick_way_passes_on_what_the_other_does() -> None:
    """Bytes, edits, usage and the model's name; and the same fault for the same reason."""
    quick = sum(map(check_agreement, range(4000)))
    assert 800 < quick < 3000


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
def test_the_quick_way_passes_on_what_the_other_does_at_length(block: int) -> None:
    """The same for many more."""
    first = 1_000_000 + block * 20_000
    assert sum(map(check_agreement, range(first, first + 20_000))) > 4000


USUAL = (
    b'{"id":"e","object":"chat.completion","created":1,"model":"m1","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"Rain."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}'
)


@pytest.mark.parametrize("name", ["id", "index", "role", "prompt_tokens"])
def test_a_member_that_is_not_usual_is_left_to_the_dictionary(name: str) -> None:
    """At every level; and so is one that stands there twice, which is none of JSON's."""
    body = USUAL
    assert usual_answer(body) is not None
    place = b'"%b"' % name.encode()
    assert place in body
    assert usual_answer(body.replace(place, b'"odd":1,' + place)) is None
    twice = body.replace(place, place + b":null," + place, 1)
    assert usual_answer(twice) is None
    assert passed_on(bridge_plain, twice)[0] == "malformed"
