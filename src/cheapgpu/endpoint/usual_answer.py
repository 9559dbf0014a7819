"""The plain answer with the members that engines are known to send: read and proved in a few steps.

As `core.usual_chunk`, for what engines send and not for what the profile asks. These types name
every member and refuse any other, so that what they decode encodes to all that the text says
(`core.messages.hides_nothing`). A member that is missing here costs time, not judgement: its answer
is read by way of a dictionary, as in `plain_bridge`, and tests hold the two equal.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from cheapgpu.core.messages import FinishReason, Name, hides_nothing
from cheapgpu.core.strict_json import too_deep
from cheapgpu.core.usual_chunk import UsualUsage

Empty = Annotated[list[Any], Meta(max_length=0)]


class UsualMessage(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The text of an answer; UNSET where it says nothing, so that it is encoded as it was sent."""

    role: Literal["assistant"]
    content: str
    tool_calls: Empty | UnsetType | None = UNSET
    function_call: UnsetType | None = UNSET
    audio: UnsetType | None = UNSET
    refusal: Any = UNSET
    annotations: Any = UNSET
    reasoning: Any = UNSET
    reasoning_content: Any = UNSET


class UsualChoice(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """The only choice of an answer."""

    index: Literal[0]
    message: UsualMessage
    logprobs: Any = UNSET
    finish_reason: FinishReason
    stop_reason: Any = UNSET
    matched_stop: Any = UNSET
    token_ids: Any = UNSET


class UsualAnswer(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A plain answer of an engine."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: Name
    choices: tuple[UsualChoice]
    service_tier: Any = UNSET
    system_fingerprint: Any = UNSET
    #: As it was written: it is passed on so. `usual_usage` reads it.
    usage: Raw
    prompt_logprobs: Any = UNSET
    prompt_token_ids: Any = UNSET
    kv_transfer_params: Any = UNSET
    timings: Any = UNSET

    @property
    def has_more(self) -> bool:
        """Whether it has members that the profile does not define."""
        choice = self.choices[0]
        message = choice.message
        beyond = (
            self.service_tier,
            self.system_fingerprint,
            self.prompt_logprobs,
            self.prompt_token_ids,
            self.kv_transfer_params,
            self.timings,
            choice.logprobs,
            choice.stop_reason,
            choice.matched_stop,
            choice.token_ids,
            message.refusal,
            message.annotations,
            message.reasoning,
            message.reasoning_content,
        )
        return beyond != _NOTHING_BEYOND

    @property
    def has_empty_tools(self) -> bool:
        """Whether its message has members for tools and audio, with nothing in them."""
        message = self.choices[0].message
        return (message.tool_calls, message.function_call, message.audio) != _NO_TOOLS


_NOTHING_BEYOND: Final = (UNSET,) * 14
_NO_TOOLS: Final = (UNSET,) * 3
_decode: Final = msgspec.json.Decoder(UsualAnswer).decode
_decode_usage: Final = msgspec.json.Decoder(UsualUsage).decode


def usual_answer(data: bytes) -> tuple[UsualAnswer, UsualUsage] | None:
    """Return an answer of strict JSON that has usual members only, and its usage; else None.

    The two prove each other: of its usage, the answer encodes whatever bytes were sent, which are
    then proved by themselves. The depth is that of the whole text.
    """
    try:
        answer = _decode(data)
        usage = _decode_usage(answer.usage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if too_deep(data) or not hides_nothing(data, answer):
        return None
    return (answer, usage) if hides_nothing(bytes(answer.usage), usage) else None
