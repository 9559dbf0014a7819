"""The chunk with the members that engines are known to send: read and proved in two steps of C.

`Chunk` leaves members that it does not know unread, and what hides in them must be looked for in a
dictionary. These types name them and refuse any other: what they decode encodes to all that the
text says (`messages.hides_nothing`). A member that is missing here costs time, not judgement: its
chunk is read by `messages.fast_chunk`.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from cheapgpu.core.messages import FLAT_CHUNK, Count, FinishReason, Name, Usage, hides_nothing
from cheapgpu.core.strict_json import too_deep


class UsualUsage(Usage, frozen=True, gc=False, forbid_unknown_fields=True):
    """Usage with the details that some add."""

    prompt_tokens_details: Any = UNSET
    completion_tokens_details: Any = UNSET


class UsualDelta(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a chunk adds; UNSET where it says nothing, so that it is encoded as it was sent."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: Any = UNSET
    refusal: Any = UNSET
    tool_calls: UnsetType | None = UNSET
    function_call: UnsetType | None = UNSET
    audio: UnsetType | None = UNSET


class UsualChoice(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """The only choice of a chunk."""

    index: Literal[0]
    delta: UsualDelta
    logprobs: Any = UNSET
    finish_reason: FinishReason | None
    stop_reason: Any = UNSET
    token_ids: Any = UNSET


class UsualChunk(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """One JSON object of a stream."""

    id: Name
    object: Literal["chat.completion.chunk"]
    created: Count
    model: Name
    service_tier: Any = UNSET
    system_fingerprint: Any = UNSET
    choices: Annotated[list[UsualChoice], Meta(max_length=1)]
    usage: UsualUsage | None
    prompt_token_ids: Any = UNSET


_decode: Final = msgspec.json.Decoder(UsualChunk).decode


def usual_chunk(data: bytes) -> UsualChunk | None:
    """Return the chunk of a strict JSON text that has usual members only, else None."""
    try:
        chunk = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    flat = len(data) <= FLAT_CHUNK or not too_deep(data)
    return chunk if flat and hides_nothing(data, chunk) else None
