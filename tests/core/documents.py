"""JSON documents near the profile's schema: valid ones, and what mutation makes of them."""

import json
from typing import Any

from hypothesis import strategies as st

MAX = 9007199254740991

#: Values that are at, or just beyond, some edge of the schema.
EDGES: list[Any] = [
    None, True, False, 0, 1, -1, 64, MAX, MAX + 1, 10**30, -(10**30), 0.0, -0.0, 1.0, 12.0, 1.5,
    1e3,
    float(MAX + 1), "", "x", "m" * 256, "m" * 257, "🌧" * 256, "🌧" * 257, "stop", "length",
    "content_filter", "eos", "assistant", "user", "system", "tool", "developer", [], {}, [{}], [[]],
    {"include_usage": True}, {"include_usage": 1}, "chat.completion", "chat.completion.chunk",
]  # fmt: skip

COUNT = st.sampled_from([0, 1, 3, MAX, 12.0])
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}

VALID: dict[str, list[dict[str, Any]]] = {
    "usage": [USAGE, {**USAGE, "prompt_tokens_details": {"cached_tokens": 1}}],
    "request": [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "max_completion_tokens": 64,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        {
            "model": "m",
            "messages": [{"role": r, "content": "Hi: é"} for r in ("system", "user", "assistant")],
            "max_completion_tokens": 1,
            "stream": False,
        },
    ],
    "completion": [
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content, "refusal": None},
                    "finish_reason": reason,
                }
            ],
            "usage": USAGE,
        }
        for content, reason in (("Rain", "stop"), (None, "content_filter"))
    ],
    "chunk": [
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": choices,
            "usage": usage,
        }
        for choices, usage in (
            ([{"index": 0, "delta": {"content": "Rain"}, "finish_reason": None}], None),
            ([{"index": 0, "delta": {"role": "assistant"}, "finish_reason": "stop"}], None),
            ([], USAGE),
        )
    ],
    "error": [
        {"error": {"message": "no", "type": "t", "code": None, "param": "model"}},
        {"error": {"message": "", "type": "t", "extra": [1]}},
    ],
}

#: Every member name that the schema knows, to be put where it does not belong too.
NAMES = [
    "id", "object", "created", "model", "choices", "usage", "index", "delta", "message", "content",
    "role", "finish_reason", "tool_calls", "function_call", "audio", "error", "type", "code",
    "param", "messages", "stream", "stream_options", "max_completion_tokens", "include_usage",
    "prompt_tokens", "completion_tokens", "total_tokens", "max_tokens", "x",
]  # fmt: skip


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _containers(value: Any) -> list[Any]:
    """The value itself and every object and array within it."""
    if isinstance(value, dict):
        return [value, *(inner for v in value.values() for inner in _containers(v))]
    if isinstance(value, list):
        return [value, *(inner for v in value for inner in _containers(v))]
    return []


@st.composite
def mutated(draw: st.DrawFn, kind: str) -> Any:
    """A valid document of some kind with up to three changes, or any JSON value."""
    if draw(st.integers(0, 30)) == 0:
        return draw(st.sampled_from(EDGES))
    document = _copy(draw(st.sampled_from(VALID[kind])))
    for _ in range(draw(st.integers(0, 3))):
        container = draw(st.sampled_from(_containers(document)))
        value = _copy(draw(st.sampled_from(EDGES)))
        if isinstance(container, list):
            if draw(st.booleans()) and container:
                container[draw(st.integers(0, len(container) - 1))] = value
            else:
                container.append(value)
        elif draw(st.booleans()) and container:
            name = draw(st.sampled_from(sorted(container)))
            if draw(st.booleans()):
                container[name] = value
            else:
                del container[name]
        else:
            container[draw(st.sampled_from(NAMES))] = value
    return document


@st.composite
def texts(draw: st.DrawFn, kind: str) -> bytes:
    """The text of a mutated document, written in one of several styles."""
    document = draw(mutated(kind))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r\n ")]))
    ascii_only, respelled = draw(st.booleans()), draw(st.booleans())
    text = json.dumps(document, ensure_ascii=ascii_only, separators=separators)
    if respelled:
        text = text.replace("64", draw(st.sampled_from(["64.0", "6.4e1", "640E-1", "6.41e1"])))
    return text.encode()
