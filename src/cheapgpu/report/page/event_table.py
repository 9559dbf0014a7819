"""A stream as a table: what came, when, at which byte, and which rules it broke."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from cheapgpu.core.exchange import Exchange
from cheapgpu.report.excerpt import visible
from cheapgpu.report.page.allowance import choose
from cheapgpu.report.page.safe_text import cut
from cheapgpu.report.page.stream_items import Item
from cheapgpu.report.style import Style

#: Letters of a text, and bytes of what is no chunk, that a row shows.
_TEXT: Final = 120
_RAW: Final = 80
#: Members of a delta that are known; others are named.
_DELTA: Final = frozenset({"role", "content"})

_decode: Final = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One thing that an event says: a word for it, and what stands there."""

    word: str
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One row: an event, a comment, or bytes that were not dispatched."""

    item: Item
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Things that are left out of a page; they are in the recording."""

    left_out: int


def event_rows(
    exchange: Exchange, items: Sequence[Item], found: Iterable[int], room: int
) -> list[EventRow | Gap]:
    """Return up to `room` rows, and a gap where some are left out.

    `found` are the numbers of events with a finding: they are shown before others.
    """
    index_of = {item.number: index for index, item in enumerate(items) if item.number}
    telling = [index_of[number] for number in found if number in index_of]
    telling += [
        index + 1
        for index, (before, item) in enumerate(itertools.pairwise(items))
        if (before.broken, before.step, before.kind) != (item.broken, item.step, item.kind)
    ]
    rows: list[EventRow | Gap] = []
    expected = 0
    for index in choose(len(items), telling, room):
        if index > expected:
            rows.append(Gap(left_out=index - expected))
        rows.append(EventRow(item=items[index], said=_said(exchange.body, items[index])))
        expected = index + 1
    if expected < len(items):
        rows.append(Gap(left_out=len(items) - expected))
    return rows


def _said(body: bytes, item: Item) -> tuple[Said, ...]:
    block = body[item.at : item.at + item.length]
    if item.kind == "comment":
        return (Said(word="comment", value=_raw(block)),)
    if item.kind == "discarded":
        what = f"{item.length} bytes never dispatched" if item.length != 1 else "1 byte left over"
        return (Said(word=what, value=_raw(block)),)
    if item.step == "done":
        return (Said(word="[DONE]"),)
    if item.step == "unreadable":
        return (Said(word="no chunk", value=_raw(_data(block))),)
    value = _object(block)
    if item.step == "error":
        return (Said(word="error", value=_error(value)),)
    said = _delta(value)
    if item.text:
        said.append(Said(word="text", value=f'"{cut(item.text, _TEXT)}"'))
    if item.finish_reason:
        said.append(Said(word="finish", value=item.finish_reason))
    if item.usage is not None:
        usage = item.usage
        total = f"{usage.prompt_tokens} + {usage.completion_tokens} = {usage.total_tokens}"
        said.append(Said(word="usage", value=total))
    if said:
        return tuple(said)
    empty = "empty delta" if item.step == "delta" else "a chunk that says nothing"
    raw = "" if item.step == "delta" and not item.broken else _raw(_data(block))
    return (Said(word=empty, value=raw),)


def _delta(value: dict[str, Any]) -> list[Said]:
    """The role, and the names of members beyond the profile: their text is no content."""
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict):
        return []
    said = []
    if isinstance(delta.get("role"), str):
        said.append(Said(word="role", value=cut(delta["role"], _TEXT)))
    others = [name for name in delta if name not in _DELTA and delta[name] is not None]
    if others:
        said.append(Said(word="beside it", value=cut(", ".join(others), _TEXT)))
    return said


def _error(value: dict[str, Any]) -> str:
    error = value.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return cut(str(message), _TEXT)


def _object(block: bytes) -> dict[str, Any]:
    """The JSON object of an event; empty where its data is none, or stands on several lines."""
    try:
        value = _decode(_data(block))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _data(block: bytes) -> bytes:
    """The data of an event of one data line; the whole block of any other."""
    line = block.strip(b"\r\n")
    if line.startswith(b"data:") and b"\n" not in line and b"\r" not in line:
        return line[5:].removeprefix(b" ")
    return block


def _raw(data: bytes) -> str:
    shown = visible(data[:_RAW], Style())
    return f"{shown}…" if len(data) > _RAW else shown
