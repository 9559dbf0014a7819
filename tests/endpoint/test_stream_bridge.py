"""The stream bridge, rule by rule: what it edits, what it holds back, and what it refuses."""

import json
from typing import Any

import pytest

from cheapgpu.core.limits import ANSWER_BYTES, EVENT_BYTES, STREAM_EVENTS
from cheapgpu.core.sse import EventReader
from cheapgpu.endpoint.canonical import Identity
from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.failures import Reason
from cheapgpu.endpoint.stream_bridge import StreamBridge
from tests.endpoint.bridging import Pin

USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
SOME = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
DONE = b"data: [DONE]\n\n"


def chunk(choice: dict[str, Any] | None = None, **members: Any) -> bytes:
    """One event of an engine that writes no more than it must."""
    value: dict[str, Any] = {
        "id": "e-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m1",
        "choices": [] if choice is None else [{"index": 0, **choice}],
        **members,
    }
    return b"data: %b\n\n" % json.dumps(value).encode()


def text(content: str, **members: Any) -> bytes:
    """A chunk that adds text."""
    return chunk({"delta": {"content": content}}, **members)


STOP = chunk({"delta": {}, "finish_reason": "stop"})
SUMMARY = chunk(usage=USAGE)


def bridge(dialect: str = "openai", limit: int = 64) -> StreamBridge:
    """A bridge for model m1."""
    return StreamBridge(DIALECTS[dialect], Identity("chatcmpl-1", 5, "m1"), limit, Pin("m1"))


def values(out: bytes) -> list[Any]:
    """The JSON of every event, and [DONE] as itself."""
    events = EventReader().feed(out)
    return [e.data if e.data == b"[DONE]" else json.loads(e.data) for e in events]


def test_text_leaves_at_once_and_the_end_together() -> None:
    """Each text is returned by the read that brought it; finish, usage and [DONE] wait."""
    each = bridge()
    assert [v["choices"][0]["delta"] for v in values(each.feed(text("Rain")))] == [
        {"content": "Rain"}
    ]
    assert each.feed(STOP) == b""
    assert each.feed(SUMMARY) == b""
    ending = values(each.feed(DONE))
    assert ending[0]["choices"][0]["finish_reason"] == "stop"
    assert ending[1]["usage"] == USAGE
    assert ending[2] == b"[DONE]"
    assert each.over
    assert each.failure is None


def test_every_chunk_has_the_profile_s_members_and_one_identity() -> None:
    """Whatever the engine writes, a buyer gets our id, created and model, and null usage."""
    each = bridge()
    out = each.feed(text("a", id="x", created=2.5, model="/path/a", system_fingerprint="f"))
    out += each.feed(text("b", id="y", created="later", model="/path/a", timings={"a": 1}))
    for value in values(out):
        assert list(value) == ["id", "object", "created", "model", "choices", "usage"]
        assert (value["id"], value["created"], value["model"]) == ("chatcmpl-1", 5, "m1")
    assert each.edits.as_dict()["model"] == 2
    assert each.edits.as_dict()["members-left-out"] == 2


def test_usage_keeps_the_engine_s_own_bytes() -> None:
    """Numbers and details are passed on as the engine wrote them; only line ends become spaces."""
    raw = b'{"prompt_tokens": 7.0,"completion_tokens":2, "total_tokens":9e0,"x":{"cached":3}}'
    body = b'{"object":"chat.completion.chunk","model":"m1","choices":[],"usage":%b}' % raw
    each = bridge()
    each.feed(text("a") + STOP)
    each.feed(b"data: %b\n\n" % body)
    assert b'"usage":%b}\n\n' % raw in each.feed(DONE)
    each = bridge()
    each.feed(text("a") + STOP)
    each.feed(b"data: " + body.replace(b", ", b",\ndata: ") + b"\n\n")
    assert raw in each.feed(DONE)


def test_the_last_text_goes_ahead_of_the_finish() -> None:
    """Text in the terminal choice is not held back with it."""
    each = bridge()
    out = each.feed(chunk({"delta": {"content": "!"}, "finish_reason": "length"}))
    assert values(out)[0]["choices"] == [
        {"index": 0, "delta": {"content": "!"}, "finish_reason": None}
    ]
    each.feed(SUMMARY)
    assert values(each.feed(DONE))[0]["choices"][0]["finish_reason"] == "length"
    assert each.edits.as_dict()["terminal-split"] == 1


@pytest.mark.parametrize(
    ("dialect", "theirs", "ours"),
    [("tgi", "eos_token", "stop"), ("tgi", "stop_sequence", "stop"), ("vllm", "length", "length")],
)
def test_declared_finish_reasons_are_translated(dialect: str, theirs: str, ours: str) -> None:
    """A synonym is the profile's word where its dialect declares it."""
    each = bridge(dialect)
    each.feed(text("a") + chunk({"delta": {}, "finish_reason": theirs}) + SUMMARY)
    assert values(each.feed(DONE))[0]["choices"][0]["finish_reason"] == ours


def test_growing_usage_gives_its_last_report() -> None:
    """Of reports beside choices the last and largest counts, wherever the last one stands."""
    each = bridge()
    each.feed(text("a", usage=SOME) + text("b", usage=USAGE) + STOP)
    assert values(each.feed(DONE))[1]["usage"] == USAGE


ROLE = chunk({"delta": {"role": "assistant", "content": None}})
FAILING: list[tuple[Reason, list[bytes]]] = [
    ("engine-error", [text("a"), b'data: {"error":{"message":"x"}}\n\n', STOP, SUMMARY, DONE]),
    ("engine-error", [text("a"), STOP, b'error: {"code":400}\n\n', SUMMARY, DONE]),
    ("malformed", [b"data: {\n\n"]),
    ("malformed", [b"data: []\n\n"]),
    ("malformed", [b'data: {"a":1,"a":2}\n\n']),
    ("malformed", [text("a"), b"data: [DONE] \n\n"]),
    ("not-a-chunk", [b'data: {"text":"sorry"}\n\n']),
    ("not-a-chunk", [b'data: {"object":"chat.completion.chunk"}\n\n']),
    ("not-a-chunk", [chunk({"delta": {"content": "a"}}, object="chat.completion")]),
    ("not-a-chunk", [chunk({"delta": {"content": ["a"]}})]),
    ("not-a-chunk", [chunk({"delta": {"role": "tool"}})]),
    ("not-a-chunk", [chunk({"delta": {"tool_calls": [{"id": "x"}]}})]),
    ("not-a-chunk", [chunk({"delta": []})]),
    ("not-a-chunk", [chunk({"delta": {}, "index": True})]),
    ("not-a-chunk", [chunk({"delta": {}, "index": -1})]),
    ("not-a-chunk", [chunk(choices=[{"delta": {}}, {"delta": {}}])]),
    ("not-a-chunk", [chunk(choices={"a": 1})]),
    ("not-a-chunk", [chunk({"delta": {"content": "a"}, "index": 1}), text("b")]),
    ("not-a-chunk", [text("a", model=7)]),
    ("finish-missing", [text("a"), SUMMARY, DONE]),
    ("finish-missing", [DONE]),
    ("finish-unknown", [chunk({"delta": {}, "finish_reason": "eos_token"})]),
    ("finish-unknown", [chunk({"delta": {}, "finish_reason": 1})]),
    ("usage-missing", [text("a"), STOP, DONE]),
    ("usage-missing", [text("a"), STOP, chunk(usage={}), DONE]),
    ("usage-wrong", [text("a"), STOP, chunk(usage={**USAGE, "total_tokens": 10}), DONE]),
    ("usage-wrong", [text("a"), STOP, chunk(usage={**USAGE, "total_tokens": -9})]),
    ("usage-wrong", [text("a"), STOP, chunk(usage="9")]),
    ("usage-wrong", [text("a"), STOP, SUMMARY, chunk(usage=SOME)]),
    ("usage-wrong", [text("a", usage=USAGE), text("b", usage=SOME)]),
    ("usage-wrong", [chunk(usage=1).replace(b'"choices": []', b'"choices": [], "x": 1e999')]),
    ("model-changed", [text("a"), text("b", model="m2"), text("c")]),
    ("model-changed", [text("a", model="x"), text("b", model="y")]),
    ("after-terminal", [STOP, text("b")]),
    ("after-terminal", [STOP, STOP]),
    ("malformed", [b'data: {"a":"\\ud800"}\n\n']),
    ("malformed", [text("a"), text("b").replace(b'"b"', b'"\xff"'), STOP]),
    ("malformed", [text("a"), text("bc").replace(b'"bc"', b'"\xff\xff"')]),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "reads"), FAILING)
def test_what_cannot_be_passed_on_fails_for_its_reason(reason: Reason, reads: list[bytes]) -> None:
    """The stream is over, no end was written, and nothing that follows is passed on."""
    each = bridge()
    out = b"".join(each.feed(read) for read in reads)
    assert each.failure is not None
    assert each.failure.reason == reason
    assert each.over
    assert b"[DONE]" not in out
    assert b'"finish_reason":"' not in out
    assert each.feed(text("more")) == b""
    assert each.finish(whole=True) == b""


def test_text_before_a_failure_in_the_same_read_is_passed_on() -> None:
    """What was said before the fault was said."""
    each = bridge()
    out = each.feed(text("Rain") + b"data: {\n\n")
    assert [v["choices"][0]["delta"]["content"] for v in values(out)] == ["Rain"]
    assert each.failure is not None


def test_more_tokens_than_asked_for_are_no_success() -> None:
    """An engine that ignores the limit fails, though its answer is whole."""
    each = bridge(limit=1)
    each.feed(text("a") + STOP + SUMMARY)
    assert each.feed(DONE) == b""
    assert each.failure is not None
    assert each.failure.reason == "limit-exceeded"


def test_an_end_without_done_is_one_if_nothing_else_is_missing() -> None:
    """[DONE] is written after a real finish, real usage and a clean end."""
    each = bridge()
    each.feed(text("a") + STOP + SUMMARY)
    assert values(each.finish(whole=True))[-1] == b"[DONE]"
    assert each.edits.as_dict()["done"] == 1


@pytest.mark.parametrize(
    ("tail", "whole", "reason"),
    [
        (b"", False, "cut"),
        (b"data: {", True, "cut"),
        (b'{\n  "detail": 1\n}\n\n', True, "unclean-end"),
        (b'{\n  "error": {\n} }\n\n', True, "engine-error"),
    ],
)
def test_an_unclean_end_is_none(tail: bytes, whole: bool, reason: Reason) -> None:  # noqa: FBT001
    """A cut, half an event, or lines of no event, leave the end unsaid."""
    each = bridge()
    out = each.feed(text("a") + STOP + SUMMARY + tail) + each.finish(whole=whole)
    assert each.failure is not None
    assert each.failure.reason == reason
    assert b"[DONE]" not in out


def test_lines_of_no_event_are_ignored_where_the_end_came() -> None:
    """WHATWG 9.2.6: a field of another name says nothing; with [DONE] the stream is whole."""
    each = bridge()
    each.feed(b"x-trace: 7\n\n" + text("a") + STOP + SUMMARY)
    assert values(each.feed(DONE))[-1] == b"[DONE]"


def test_a_role_alone_is_passed_on_and_nothing_is_left_out_silently() -> None:
    """llama.cpp's first chunk becomes a role; one with nothing in it is left out and counted."""
    each = bridge()
    assert values(each.feed(ROLE))[0]["choices"][0]["delta"] == {"role": "assistant"}
    assert each.feed(chunk({"delta": {"reasoning_content": "hm"}})) == b""
    assert each.feed(chunk({"delta": None})) == b""
    assert each.feed(chunk(choices=None)) == b""
    assert each.feed(b"data:\n\n") == b""
    counts = each.edits.as_dict()
    assert counts["content-null"] == 1
    assert counts["chunk-left-out"] == 3
    assert counts["event-left-out"] == 1


def test_limits_end_a_stream_as_too_large() -> None:
    """An event or a body beyond its limit is given up, however it is cut."""
    for reads in ([text("x" * EVENT_BYTES)], [b"data: " + b"x" * EVENT_BYTES, b"x" * 100]):
        each = bridge()
        for read in reads:
            each.feed(read)
        assert each.failure is not None
        assert each.failure.reason == "too-large"
    each = bridge()
    large = text("x" * (EVENT_BYTES // 2))
    for _ in range(ANSWER_BYTES // len(large) + 1):
        each.feed(large)
    assert each.failure is not None
    assert each.failure.reason == "too-large"


def test_a_frame_that_changes_is_learned_anew() -> None:
    """The short way is taken again after a change, and its edits are counted like all others."""
    each = bridge("llama.cpp")
    reads = [text(f"w{n}", created=n // 20) for n in range(100)]
    out = b"".join(each.feed(read) for read in reads)
    assert "".join(v["choices"][0]["delta"]["content"] for v in values(out)) == "".join(
        f"w{n}" for n in range(100)
    )
    assert each.edits.as_dict()["identity"] == 100
    assert each.events == 100


def test_reads_of_one_event_and_of_several_are_passed_on_alike() -> None:
    """However many events a read has, and whatever their texts: the same bytes and edits."""
    words = [" rain", "", "a:b", "\n", 'say "x"', "é", "雨", "\\", "[DONE]", "data: x", "a", "b"]
    events = [text(word, logprobs=None) for word in words * 4] + [STOP, SUMMARY, DONE]
    events[20:20] = [b": comment\n\n", text("odd", x=1), b"data:\n\n"]
    seen = []
    for most in (1, 2, 3, 7, 99):
        each = bridge()
        reads = [b"".join(events[n : n + most]) for n in range(0, len(events), most)]
        out = b"".join(map(each.feed, reads))
        assert each.failure is None
        seen.append((out, each.edits.as_dict(), each.events))
    assert all(one == seen[0] for one in seen)
    assert seen[0][2] == len(events) - 1


@pytest.mark.parametrize("at_once", [1, 3])
def test_more_events_than_a_stream_may_have_end_it(at_once: int) -> None:
    """The last that it may have is passed on, and none after it."""
    each = bridge()
    each.feed(text("a") * 2)
    each.feed(b"data: \n\n" * (STREAM_EVENTS - 4))
    assert not each.over
    out = b"".join(each.feed(text("b") * at_once) for _ in range(3 // at_once))
    assert each.failure is not None
    assert each.failure.reason == "too-large"
    assert len(values(out)) == 2
    assert each.events == STREAM_EVENTS


def test_a_frame_that_always_changes_is_given_up() -> None:
    """Lessons that never pay are not taken for ever; the answer is the same."""
    each = bridge()
    out = b"".join(each.feed(text("a", created=n)) for n in range(50))
    assert len(values(out)) == 50
    assert each.edits.as_dict()["usage-null"] == 50
