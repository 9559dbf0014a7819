"""The members of a content chunk, made a type: a quick decoder that can overlook none of them.

A stream sends chunk after chunk with the same members. A type that requires exactly those and
forbids others decodes faster than a dictionary, and encodes faster too: so it is proved that no
name occurred twice (`messages.hides_nothing`). The types are kept for the streams to come.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

Names = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
Decoder = Callable[[bytes], Any]

#: Types kept; an engine needs one or two. A stream teaches a few at most (`stream_verifier`).
_KEPT = 64

_TYPES: dict[str, Any] = {
    "id": str,
    "object": Literal["chat.completion.chunk"],
    "created": int,
    "model": str,
    "usage": None,
    "index": Literal[0],
    "finish_reason": None,
    "role": Literal["assistant"],
    "content": str,
    "tool_calls": None,
    "function_call": None,
    "audio": None,
    "error": None,
}
_MEMBERS = ("choices", "delta")
#: Characters of all names of a shape together: types are kept, so none may be large.
_NAMES_LENGTH = 1024

_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def decoder_of(value: dict[str, Any]) -> Decoder | None:
    """Return the decoder of chunks with the members of `value`, a content chunk that passed.

    It raises msgspec.DecodeError for any other; its result has the members of `Chunk`. None if a
    member has a name that no type can have (msgspec takes no escapes in them), or if the names are
    too many to be kept.
    """
    choice = value["choices"][0]
    names = (tuple(value), tuple(choice), tuple(choice["delta"]))
    spelled = "".join(name for level in names for name in level)
    if len(spelled) > _NAMES_LENGTH or _ESCAPED.search(spelled):
        return None
    return _decoder(names)


@functools.lru_cache(_KEPT)
def _decoder(names: Names) -> Decoder:
    top, choice, delta = names
    delta_type = _struct("Delta", delta, {})
    choice_type = _struct("Choice", choice, {"delta": delta_type})
    one_choice: Any = tuple.__class_getitem__(choice_type)
    chunk_type = _struct("Chunk", top, {"choices": one_choice})
    return msgspec.json.Decoder(chunk_type).decode


def _struct(title: str, names: tuple[str, ...], inner: dict[str, Any]) -> Any:  # noqa: ANN401 -- a type made here
    """A type with exactly these members; those beyond the profile get a name of their own."""
    known = {*_TYPES, *_MEMBERS}
    fields = [name if name in known else f"extra_{n}" for n, name in enumerate(names)]
    kinds = {**_TYPES, **inner}
    return msgspec.defstruct(
        title,
        [(field, kinds.get(field, Any)) for field in fields],
        rename=dict(zip(fields, names, strict=True)),
        forbid_unknown_fields=True,
        gc=False,
    )
