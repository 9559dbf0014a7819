"""Reads one chunk of an engine: what it says after the honest edits, or why it cannot be passed on.

An engine's chunk is decoded JSON, strict already (`strict_json`). What it says is kept in the
profile's terms; what is only a way of writing is counted as an edit; what would have to be guessed
is a `Fault`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from cheapgpu.core.messages import FinishReason, Usage, decode_usage
from cheapgpu.core.schema import quote
from cheapgpu.endpoint.edits import Edit
from cheapgpu.endpoint.failures import Fault

_REASONS: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
}
_CHUNK_MEMBERS: Final = frozenset(("id", "object", "created", "model", "choices", "usage", "error"))
_CHOICE_MEMBERS: Final = frozenset(("index", "delta", "message", "finish_reason", "usage"))
_TEXT_MEMBERS: Final = frozenset(("role", "content", "tool_calls", "function_call", "audio"))
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


class Report(Struct, frozen=True, gc=False):
    """Usage as the engine reported it: the counts, and the bytes that it wrote them in."""

    usage: Usage
    raw: bytes


class Piece(Struct, frozen=True, gc=False):
    """What one chunk adds to an answer."""

    #: None: it has no choice. "" is a choice without text.
    text: str | None = None
    #: Whether the delta has a content at all, if only an empty one.
    has_content: bool = False
    has_role: bool = False
    finish_reason: FinishReason | None = None
    report: Report | None = None
    #: Whether usage stood beside a choice, where it may grow from chunk to chunk.
    beside: bool = False
    #: The model as the chunk names it; None where it names none.
    model: str | None = None
    index: int = 0


def read_engine_chunk(
    value: dict[str, Any], data: bytes, synonyms: Mapping[str, FinishReason], edits: set[Edit]
) -> Piece:
    """Read one decoded chunk, whose JSON text is `data`; add to `edits` what passing it on takes.

    Raises Fault where it says nothing that may be passed on.
    """
    if value.keys() - _CHUNK_MEMBERS:
        edits.add("members-left-out")
    report = read_report(value, data, edits)
    model = read_model(value)
    if not value.get("choices"):
        return _read_summary(value, report, model, edits)
    _require_chunk(value)
    choice = only_choice(value["choices"])
    if choice.keys() - _CHOICE_MEMBERS:
        edits.add("members-left-out")
    if report is None and choice.get("usage"):
        report = _report(choice["usage"], data, _raw_inner_usage)
    if report is not None:
        edits.add("usage-moved")
    delta = choice.get("delta")
    if delta is None:
        delta = {}
        edits.add("delta-added")
    if not isinstance(delta, dict):
        raise Fault("not-a-chunk", "/choices/0/delta is no object")
    text = read_text(delta, "/choices/0/delta", edits)
    return Piece(
        text=text or "",
        has_content=text is not None,
        has_role=delta.get("role") == "assistant",
        finish_reason=read_finish(choice, synonyms, edits),
        report=report,
        beside=report is not None,
        model=model,
        index=_read_index(choice, edits),
    )


def _read_summary(
    value: dict[str, Any], report: Report | None, model: str | None, edits: set[Edit]
) -> Piece:
    """Read a chunk without a choice: it states usage, or nothing but what a vendor notes."""
    if report is None and "choices" in value:
        edits.add("chunk-left-out")
        return Piece(model=model)
    _require_chunk(value)
    if report is None:
        raise Fault("not-a-chunk", "an object with neither choices nor usage")
    if value.get("choices") is None:
        edits.add("usage-moved")
    return Piece(report=report, model=model)


def _read_index(choice: dict[str, Any], edits: set[Edit]) -> int:
    index: object = choice.get("index", 0)
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise Fault("not-a-chunk", f"/choices/0/index is {quote(index)}")
    if index or "index" not in choice:
        edits.add("index")
    return index


def _require_chunk(value: dict[str, Any]) -> None:
    if value.get("object") != "chat.completion.chunk":
        found = quote(value["object"]) if "object" in value else "no such member"
        raise Fault("not-a-chunk", f'/object: wanted "chat.completion.chunk", found {found}')


def only_choice(choices: object) -> dict[str, Any]:
    """The one choice of an answer; raises Fault if there is none, or another."""
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        many = f"{len(choices)} choices" if isinstance(choices, list) else "no array of choices"
        raise Fault("not-a-chunk", f"/choices: one choice was asked for, {many} came")
    choice: dict[str, Any] = choices[0]
    return choice


def read_model(value: dict[str, Any]) -> str | None:
    """The model that an answer names; None where it names none. Raises Fault if it is no name."""
    model = value.get("model")
    if model is None or model == "":
        return None
    if not isinstance(model, str):
        raise Fault("not-a-chunk", f"/model is {quote(model)}")
    return model


def read_finish(
    choice: dict[str, Any], synonyms: Mapping[str, FinishReason], edits: set[Edit]
) -> FinishReason | None:
    """The finish reason of a choice, in the profile's words; None while it has none."""
    reason = choice.get("finish_reason")
    if reason is None:
        if "finish_reason" not in choice:
            edits.add("finish-null")
        return None
    if isinstance(reason, str) and reason in _REASONS:
        return _REASONS[reason]
    if reason == "":
        edits.add("finish-empty")
        return None
    if isinstance(reason, str) and reason in synonyms:
        edits.add("finish-translated")
        return synonyms[reason]
    raise Fault(
        "finish-unknown",
        f"the finish reason {quote(reason)} is not one of the profile, "
        "and the dialect does not declare what it means",
    )


def read_text(message: dict[str, Any], pointer: str, edits: set[Edit]) -> str | None:
    """The content of a delta or message; None where it has none. Raises Fault if it is no text."""
    if message.keys() - _TEXT_MEMBERS:
        edits.add("members-left-out")
    role = message.get("role", "assistant")
    if role is None or role == "":
        edits.add("role-empty")
    elif role != "assistant":
        raise Fault("not-a-chunk", f"{pointer}/role is {quote(role)}")
    for member in ("tool_calls", "function_call", "audio"):
        if member in message:
            if message[member]:
                raise Fault("not-a-chunk", f"{pointer}/{member}: the profile is text only")
            edits.add("tools-empty")
    text = message.get("content")
    if isinstance(text, str):
        return text
    if text is not None:
        raise Fault("not-a-chunk", f"{pointer}/content is no string")
    if "content" in message:
        edits.add("content-null")
    return None


class _WithUsage(Struct):
    usage: msgspec.Raw


class _ChoiceWithUsage(Struct):
    choices: tuple[_WithUsage]


_decode_usage: Final = msgspec.json.Decoder(_WithUsage).decode
_decode_inner_usage: Final = msgspec.json.Decoder(_ChoiceWithUsage).decode


def read_report(value: dict[str, Any], data: bytes, edits: set[Edit]) -> Report | None:
    """Usage as an answer reports it; None where it reports none. Raises Fault if it is no usage."""
    usage = value.get("usage")
    if usage is None:
        if "usage" not in value:
            edits.add("usage-null")
        return None
    if usage == {}:
        edits.add("usage-empty")
        return None
    return _report(usage, data, _raw_usage)


def _report(value: object, data: bytes, raw_of: Callable[[bytes], bytes]) -> Report:
    """Usage that was decoded to `value`, with the bytes that it stands in."""
    try:
        raw = raw_of(data)
    except msgspec.DecodeError:  # a number elsewhere that only the slow way can read
        raise Fault("usage-wrong", "/usage stands beside a number beyond every limit") from None
    try:
        usage: Usage | None = msgspec.convert(value, Usage)
    except msgspec.ValidationError:
        usage = decode_usage(raw)  # `12.0` is an integer to the schema
    if usage is None:
        raise Fault("usage-wrong", "/usage does not match the schema")
    return Report(usage, in_one_line(raw))


def in_one_line(text: bytes) -> bytes:
    """A JSON text on one line: a line end is white space to it, and ends an event stream's line."""
    return text.translate(_LINE_ENDS)


def _raw_usage(data: bytes) -> bytes:
    return bytes(_decode_usage(data).usage)


def _raw_inner_usage(data: bytes) -> bytes:
    return bytes(_decode_inner_usage(data).choices[0].usage)
