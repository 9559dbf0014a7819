"""Measures what the profile allows and people want to know; nothing here is judged."""

from typing import Any, Final

import msgspec

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.schema import SCHEMA
from cheapgpu.core.stream_verifier import StreamEvent

#: A creation time beyond this is in milliseconds: as seconds it would be in the year 5138.
_MILLISECONDS: Final = 10**11
_NAMES_KEPT: Final = 32

_decode: Final = msgspec.json.Decoder().decode


def stream_notes(
    exchange: Exchange, events: list[StreamEvent], comments: int, started: float | None
) -> dict[str, Any]:
    """What a stream was like: counts, times (ms) and members beyond the profile.

    `started` is the time of day at which the recording began (Unix seconds), if it is known.
    """
    notes: dict[str, Any] = {
        "events": len(events),
        "content_events": sum(1 for event in events if event.text),
        "reads": len(exchange.reads),
        "bytes": len(exchange.body),
        "comments": comments,
    }
    text = next((event for event in events if event.text), None)
    if text is not None and exchange.timed:
        first = exchange.time_of(text.at + text.length - 1) or 0.0
        notes["first_content_ms"] = round((first - (exchange.sent or 0.0)) * 1000, 1)
        notes["duration_ms"] = round((exchange.closed.t - (exchange.sent or 0.0)) * 1000, 1)
    names: set[str] = set()
    created = None
    for event in events:
        value = _value(exchange.body, event) or {}
        created = value.get("created") if created is None else created
        if len(names) < _NAMES_KEPT:
            names |= _extra_of(value, "chunk")
    if names:
        notes["extra_members"] = sorted(names)[:_NAMES_KEPT]
    if any("/delta/reasoning" in name for name in names):
        notes["reasoning"] = True
    if isinstance(created, int) and created > _MILLISECONDS:
        notes["created"] = "in milliseconds"
    elif isinstance(created, int) and started is not None and created > started + 86400:
        notes["created"] = "in the future"
    return notes


def whole_notes(exchange: Exchange) -> dict[str, Any]:
    """What a plain answer was like."""
    notes: dict[str, Any] = {"bytes": len(exchange.body)}
    if exchange.timed:
        notes["duration_ms"] = round((exchange.closed.t - (exchange.sent or 0.0)) * 1000, 1)
    value = _object(exchange.body)
    extra = sorted(_extra_of(value, "completion")) if value is not None else []
    if extra:
        notes["extra_members"] = extra[:_NAMES_KEPT]
    return notes


def _value(body: bytes, event: StreamEvent) -> dict[str, Any] | None:
    """The object of an event of one data line; others are not worth a second parser here."""
    block = body[event.at : event.at + event.length].strip()
    return _object(block[5:]) if block.startswith(b"data:") and b"\n" not in block else None


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _extra_of(value: dict[str, Any], document: str) -> set[str]:
    """Pointers of the members of a chunk or completion that the schema does not name."""
    schema = SCHEMA["$defs"][document]["properties"]
    extra = {f"/{name}" for name in value if name not in schema and name != "error"}
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        choice = choices[0]
        inner = schema["choices"]["items"]["properties"]
        extra |= {f"/choices/0/{name}" for name in choice if name not in inner}
        part = "delta" if document == "chunk" else "message"
        if isinstance(choice.get(part), dict):
            known = inner[part]["properties"]
            extra |= {f"/choices/0/{part}/{name}" for name in choice[part] if name not in known}
    return extra
