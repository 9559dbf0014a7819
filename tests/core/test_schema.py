"""The published schema, and the faults that are read from it."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from cheapgpu.core import schema
from tests.core.documents import VALID


def faults(document: schema.Document, **changes: Any) -> list[tuple[str, str, str]]:
    """The faults of a valid document with members replaced, or left out where `...`."""
    changed = {**VALID[document][0], **changes}
    value = {name: member for name, member in changed.items() if member is not ...}
    return [(f.pointer, f.expected, f.found) for f in schema.faults(document, value)]


def test_the_schema_is_the_published_one_byte_for_byte() -> None:
    """The embedded file's digest is the published one's."""
    published = "f39b619bcd1bd2798d6c8bf9c600aa8ae9f6caec4dcacd2cbe941c4d3c6eaaaa"
    assert hashlib.sha256(schema.SCHEMA_BYTES).hexdigest() == published
    assert (
        Path("src/cheapgpu/core/openai-chat-text.schema.json").read_bytes() == schema.SCHEMA_BYTES
    )


def test_the_commonest_fault_says_what_to_do() -> None:
    """A chunk without usage is told what usage is before the summary."""
    assert faults("chunk", usage=...) == [
        ("/usage", '"usage" in every chunk: null until the summary chunk', "no such member")
    ]


SUMMARY = "null, or an object with prompt_tokens, completion_tokens and total_tokens"
CHOICE: dict[str, Any] = VALID["chunk"][0]["choices"][0]


@pytest.mark.parametrize(
    ("document", "changes", "pointer", "expected", "found"),
    [
        ("chunk", {"usage": {}}, "/usage", SUMMARY, "an empty object"),
        ("chunk", {"usage": 5}, "/usage", SUMMARY, "the number 5"),
        ("completion", {"usage": {"total_tokens": 1, "prompt_tokens": 1}},
         "/usage/completion_tokens", 'a member "completion_tokens"', "no such member"),
        ("completion", {"usage": None}, "/usage", "an object", "null"),
        ("chunk", {"usage": {"prompt_tokens": 1, "completion_tokens": 1.5, "total_tokens": 2}},
         "/usage/completion_tokens", "an integer from 0 to 9007199254740991", "the number 1.5"),
        ("chunk", {"choices": [{**CHOICE, "finish_reason": "eos"}]}, "/choices/0/finish_reason",
         '"finish_reason" in every choice: null, then "stop", "length" or "content_filter"',
         '"eos"'),
        ("chunk", {"choices": [{**CHOICE, "index": 1}]}, "/choices/0/index", "0", "the number 1"),
        ("chunk", {"choices": [{**CHOICE, "delta": {"content": None}}]},
         "/choices/0/delta/content", '"content" as a string, or left out', "null"),
        ("chunk", {"choices": [{**CHOICE, "delta": {"tool_calls": []}}]},
         "/choices/0/delta/tool_calls", "left out or null: the profile is text only",
         "an array of 0"),
        ("chunk", {"choices": [CHOICE, CHOICE]}, "/choices", "one choice or none", "an array of 2"),
        ("chunk", {"choices": None}, "/choices", "an array", "null"),
        ("chunk", {"id": 5}, "/id", "a string", "the number 5"),
        ("chunk", {"id": ""}, "/id", "1 to 256 characters", "an empty string"),
        ("chunk", {"created": -1}, "/created", "an integer from 0 to 9007199254740991",
         "the number -1"),
        ("chunk", {"created": 10**40}, "/created", "an integer from 0 to 9007199254740991",
         "a very large number"),
        ("chunk", {"created": False}, "/created", "an integer from 0 to 9007199254740991", "false"),
        ("chunk", {"object": "x" * 50}, "/object", '"chat.completion.chunk"',
         "a string of 50 characters"),
        ("completion", {"choices": []}, "/choices", "exactly one choice", "an array of 0"),
        ("error", {"detail": {}}, "", "no other members than error", "an object"),
        ("error", {"error": {"message": "m", "type": "t", "code": 4}}, "/error/code",
         '"code" as a string or null', "the number 4"),
        ("error", {"error": {"message": "m", "type": "t", "param": 4}}, "/error/param",
         "string or null", "the number 4"),
        ("request", {"messages": [{"role": "tool", "content": "a"}]}, "/messages/0/role",
         '"system" or "user" or "assistant"', '"tool"'),
        ("request", {"stream": False}, "/stream_options", "left out", "an object"),
        ("usage", {"total_tokens": ...}, "/total_tokens", 'a member "total_tokens"',
         "no such member"),
    ],
)  # fmt: skip
def test_a_fault_names_its_place_and_what_is_wanted(
    document: schema.Document, changes: dict[str, Any], pointer: str, expected: str, found: str
) -> None:
    """Each demand of the schema is put into words, with a pointer, and quotes no text."""
    assert faults(document, **changes) == [(pointer, expected, found)]


def test_values_are_described_without_their_text() -> None:
    """What a model or a buyer wrote is measured, not quoted."""
    assert schema.describe("secret") == "a string of 6 characters"
    assert schema.describe({"a": 1}) == "an object"
    assert schema.describe(True) == "true"  # noqa: FBT003 -- the value
    assert schema.quote("tool") == '"tool"'
    assert schema.quote("x" * 33) == "a string of 33 characters"
