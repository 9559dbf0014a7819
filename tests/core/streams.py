"""Streams to judge: conforming ones in the shapes that engines send, and ways to damage them."""

import json
import random
from collections.abc import Sequence
from typing import Any

MODEL = "m1"

#: Texts whose escapes, width or quotes have tripped readers.
TEXTS = (
    " rain", "", "Rain", "\n", 'say "x"', "a\\b", "é", "雨", "🌧️", "a:b", "{", "[DONE]", "\x00",
    "\x7f", "\u2028", '"content":"x"', "data: x\n\n", "/", "\t",
)  # fmt: skip


def chunk(
    delta: dict[str, Any] | None,
    finish: str | None = None,
    *,
    ensure_ascii: bool = False,
    separators: tuple[str, str] = (",", ":"),
    **members: Any,
) -> bytes:
    """One event with one chunk; members replaced, or left out where `...`."""
    body: dict[str, Any] = {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": MODEL,
        "choices": [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}],
        "usage": None,
    }
    body.update(members)
    body = {name: value for name, value in body.items() if value is not ...}
    text = json.dumps(body, ensure_ascii=ensure_ascii, separators=separators)
    return b"data: " + text.encode() + b"\n\n"


def stream(texts: Sequence[str], **style: Any) -> list[bytes]:
    """A conforming stream, event by event."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return [
        chunk({"role": "assistant", "content": ""}, **style),
        *(chunk({"content": text}, **style) for text in texts),
        chunk({}, "stop", **style),
        chunk(None, usage=usage, **style),
        b"data: [DONE]\n\n",
    ]


def split(body: bytes, chance: random.Random) -> list[bytes]:
    """The same bytes in reads of random lengths: single bytes, events, and pieces between."""
    reads: list[bytes] = []
    at = 0
    longest = chance.choice((1, 7, 64, 300, 1000, len(body) or 1))
    while at < len(body):
        if chance.random() < 0.3:
            end = body.find(b"\n\n", at)
            size = end + 2 - at if end >= 0 else longest
        else:
            size = chance.randint(1, longest)
        reads.append(body[at : at + size])
        at += size
    return reads


_PIECES = (
    b"\n", b"\r", b"\r\n", b"\n\n", b'"', b"\\", b"\\u0061", b"\\ud83c", b":", b",", b" ", b"{",
    b"}", b"[", b"]", b"null", b"1.0", b"1e3", b"NaN", b"\xff", b"\xe2\x82", b"\xef\xbb\xbf",
    b"\x00",
    b'"usage":null,', b'"id":"c-1",', b'"content":"x",', b'"error":{},', b'"role":"assistant",',
    b"data: ", b"data:", b": ping\n\n", b"id: 1\n", b"event: x\n", b"retry: 5\n", b"[DONE]",
    b'"finish_reason":"stop"', b'"x":{"y":1,"y":2},', b'"x":[[[[[[]]]]]],',
)  # fmt: skip


def damage(events: list[bytes], chance: random.Random) -> bytes:
    """A stream with up to three things wrong: events moved, members doubled, bytes changed."""
    events = list(events)
    for _ in range(chance.randint(0, 3)):
        index = chance.randrange(len(events))
        match chance.randrange(7):
            case 0:
                events.insert(chance.randrange(len(events) + 1), events[index])
            case 1:
                del events[index]
                if not events:
                    return b""
            case 2:
                other = chance.randrange(len(events))
                events[index], events[other] = events[other], events[index]
            case 3 | 4:
                event = events[index]
                at = chance.randrange(len(event) + 1)
                events[index] = event[:at] + chance.choice(_PIECES) + event[at:]
            case 5:
                changed = bytearray(events[index])
                changed[chance.randrange(len(changed))] = chance.randrange(256)
                events[index] = bytes(changed)
            case 6:
                event = events[index]
                at = chance.randrange(len(event))
                events[index] = event[:at] + event[at + chance.randint(1, 12) :]
    body = b"".join(events)
    return body[: chance.randrange(len(body) + 1)] if chance.random() < 0.1 else body
