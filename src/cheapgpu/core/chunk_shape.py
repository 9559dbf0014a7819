"""The members of a content chunk, made a type: a quick decoder that can overlook none of them.

A stream sends chunk after chunk with the same members. A type that requires exactly those and
forbids others decodes faster than a dictionary, and what it decodes can hold a name twice only with
more colons in the text than the type has members. The types are kept for the streams to come.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

Names = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]

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

_encode = msgspec.json.Encoder().encode


class Shape(Struct, frozen=True):
    """The decoder of one shape of content chunks, and what proves that it overlooked no member."""

    #: Raises msgspec.DecodeError for any other shape. Its result has the members of `Chunk`.
    decode: Callable[[bytes], Any]
    #: Colons of the members and of the pinned texts; -1 where other texts or objects have some.
    colons: int
    #: Whether the pinned texts have none, so that all of these are of members.
    bare: bool

    def hides_nothing(self, data: bytes, chunk: Any, content: str) -> bool:  # noqa: ANN401 -- a type made here
        """Whether no name occurs twice in `data`, which was decoded to `chunk`.

        Every member of the shape is there, so a text with no more colons than those members need
        has no other; nor has one in which only the pinned texts and the content have more, unless a
        backslash spells one of theirs and so makes room. Failing that, a text that the value
        encodes to has nothing that the value has not.
        """
        if self.colons >= 0:
            more = data.count(b":") - self.colons
            if more == 0 and self.bare:
                return True
            if more == content.count(":") and data.find(b"\\") < 0:
                return True
        return _encode(chunk) == data


def shape_of(data: bytes, value: dict[str, Any]) -> Shape | None:
    """Return the shape of a content chunk that passed every check, decoded to `value`.

    None if a member has a name that no type can have (msgspec takes no escapes in them), or if the
    names are too many to be kept.
    """
    choice = value["choices"][0]
    names = (tuple(value), tuple(choice), tuple(choice["delta"]))
    spelled = "".join(name for level in names for name in level)
    if len(spelled) > _NAMES_LENGTH or _ESCAPED.search(spelled):
        return None
    members = sum(map(len, names))
    colons = members + value["id"].count(":") + value["model"].count(":")
    content = choice["delta"]["content"].count(":")
    certain = data.count(b":") == colons + content and b"\\" not in data
    return Shape(_decoder(names), colons if certain else -1, colons == members)


@functools.lru_cache(_KEPT)
def _decoder(names: Names) -> Callable[[bytes], Any]:
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
