"""What a buyer may ask: the request decoded strictly, or refused with the rule that it breaks.

Source: profile, "Request", and the request schema. A request can be at fault in several ways; the
first is named, in this order: the body as a text, members that the profile excludes (they tell most
about what the sender meant), then the members of the schema in the schema's order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cheapgpu.core import strict_json
from cheapgpu.core.limits import JSON_DEPTH
from cheapgpu.core.messages import MAX_SAFE_INTEGER, hides_nothing
from cheapgpu.core.places import token
from cheapgpu.core.schema import describe, quote
from cheapgpu.core.sse import essence
from cheapgpu.core.strict_json import Unreadable

Role = Literal["system", "user", "assistant"]

_NAME_LENGTH: Final = 256
#: A member's name is the sender's text: no more of it is repeated.
_SHOWN: Final = 64


class InputMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """One text message of the conversation so far."""

    role: Role
    content: str


class StreamOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Asks for the usage chunk; a stream must."""

    include_usage: Literal[True]


class ChatRequest(Struct, frozen=True, kw_only=True):
    """A request within the profile: its five members and no other."""

    model: str
    messages: list[InputMessage]
    #: The output ceiling that the buyer asks for, in tokens.
    max_completion_tokens: int
    stream: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is outside the profile: one rule, one place, and what to do instead."""

    #: The rule of `refuse/` that the request calls for.
    rule: str
    #: JSON pointer of the member, "" for the body as a whole.
    pointer: str
    found: str
    expected: str
    #: What to do instead; "" where `expected` says it all.
    remedy: str = ""

    @property
    def param(self) -> str | None:
        """The member as the OpenAI SDKs name it, such as `messages[0].role`; None for the body."""
        name = ""
        for step in self.pointer.split("/")[1:]:
            plain = step.replace("~1", "/").replace("~0", "~")
            name += f"[{plain}]" if plain.isdecimal() else f".{plain}" if name else plain
        return name or None

    @property
    def message(self) -> str:
        """One sentence for the sender; text of messages is never quoted."""
        sentence = f"{self.param or 'body'}: expected {self.expected}, found {self.found}"
        return f"{sentence}; {self.remedy}" if self.remedy else sentence


_SAMPLING: Final = "leave it out: the profile has no sampling controls"
_TOOLS: Final = "leave it out: the profile is text only, without tools"
_SAMPLES: Final = "leave it out: the profile answers one choice, without its probabilities"
_STORED: Final = "leave it out: nothing is stored or referred to"
_MODEL: Final = "leave it out: how the model works is the endpoint's own affair"

#: Members of the upstream API that the profile excludes, with what to do instead.
EXCLUDED: Final = {
    "max_tokens": "use max_completion_tokens",
    "tools": _TOOLS,
    "tool_choice": _TOOLS,
    "functions": _TOOLS,
    "function_call": _TOOLS,
    "parallel_tool_calls": _TOOLS,
    "response_format": "leave it out: answers are plain text; ask for a format in a message",
    "temperature": _SAMPLING,
    "top_p": _SAMPLING,
    "n": "leave it out: the profile answers one choice; send the request again for another",
    "stop": _SAMPLING,
    "seed": _SAMPLING,
    "logprobs": _SAMPLES,
    "top_logprobs": _SAMPLES,
    "logit_bias": _SAMPLING,
    "presence_penalty": _SAMPLING,
    "frequency_penalty": _SAMPLING,
    "user": "leave it out: the bearer key says who asks",
    "store": _STORED,
    "metadata": _STORED,
    "modalities": "leave it out: the profile is text only",
    "audio": "leave it out: the profile is text only",
    "prediction": _MODEL,
    "reasoning_effort": _MODEL,
    "service_tier": _MODEL,
    "verbosity": _MODEL,
    "previous_response_id": "send the whole conversation in messages",
}

_MEMBERS: Final = ("model", "messages", "max_completion_tokens", "stream", "stream_options")


class _Typed(Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of a valid request; the pairing and the lengths are checked afterwards."""

    model: str
    messages: list[InputMessage]
    max_completion_tokens: int
    stream: bool
    stream_options: StreamOptions | UnsetType = UNSET


_decode_typed: Final = msgspec.json.Decoder(_Typed).decode


def decode_request(body: bytes) -> ChatRequest | Refusal:
    """Return the request that a body states, or the first reason why it is outside the profile.

    Accepts exactly what the request schema accepts of strict JSON. Whether the model exists and
    whether the limit is within a ceiling is for the caller, who knows them.
    """
    request = _usual(body)
    if request is not None:
        return request
    value = strict_json.decode(body)
    if isinstance(value, Unreadable):
        return _unreadable(value)
    refusal = next(_refusals(value), None)
    if refusal is not None:
        return refusal
    return ChatRequest(
        model=value["model"],
        messages=msgspec.convert(value["messages"], list[InputMessage]),
        max_completion_tokens=int(value["max_completion_tokens"]),
        stream=value["stream"],
    )


def refuse_content_type(content_type: str | None) -> Refusal | None:
    """Refuse a body that is not declared JSON (profile, "Request": POST JSON)."""
    if essence(content_type) == "application/json":
        return None
    found = quote(essence(content_type)) if content_type else "no content type"
    return Refusal(
        rule="refuse/content-type",
        pointer="",
        found=found,
        expected="content-type application/json",
    )


def _usual(body: bytes) -> ChatRequest | None:
    """Take the usual request by its type alone; what this leaves undecided is read the full way.

    The type has all members of the profile and no other, at fixed depths, and msgspec reads strict
    JSON but for duplicate names, which `hides_nothing` excludes.
    """
    try:
        typed = _decode_typed(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    options = typed.stream_options
    if (
        not 1 <= typed.max_completion_tokens <= MAX_SAFE_INTEGER
        or not 1 <= len(typed.model) <= _NAME_LENGTH
        or not typed.messages
        or (options is UNSET if typed.stream else options is not UNSET)
        or not hides_nothing(body, typed)
    ):
        return None
    return ChatRequest(
        model=typed.model,
        messages=typed.messages,
        max_completion_tokens=typed.max_completion_tokens,
        stream=typed.stream,
    )


_UNREADABLE: Final = {
    "empty": ("empty-body", "a JSON object"),
    "invalid-utf8": ("invalid-utf8", "UTF-8"),
    "not-json": ("not-json", "one JSON object"),
    "duplicate-key": ("duplicate-key", "each name once in an object"),
    "lone-surrogate": ("lone-surrogate", "escapes that spell Unicode text"),
    "too-deep": ("not-json", f"at most {JSON_DEPTH} levels of nesting"),
}


def _unreadable(problem: Unreadable) -> Refusal:
    rule, expected = _UNREADABLE[problem.reason]
    found = problem.what if problem.reason == "empty" else f"{problem.what} at byte {problem.at}"
    return Refusal(rule=f"refuse/{rule}", pointer="", found=found, expected=expected)


def _refusals(value: Any) -> Iterator[Refusal]:  # noqa: ANN401 -- JSON is any value
    if isinstance(value, dict):
        yield from _members(value)
    else:
        yield Refusal(
            rule="refuse/not-an-object", pointer="", found=describe(value), expected="an object"
        )


def _members(value: dict[str, Any]) -> Iterator[Refusal]:
    for name in value:
        if name not in _MEMBERS:
            yield Refusal(
                rule=f"refuse/{name if name in EXCLUDED else 'unknown-field'}",
                pointer=f"/{token(name[:_SHOWN])}",
                found="a member outside the profile",
                expected="only " + ", ".join(_MEMBERS),
                remedy=EXCLUDED.get(name, "leave it out"),
            )
    yield from _model(value)
    yield from _messages(value)
    yield from _limit(value)
    yield from _stream(value)


def _model(value: dict[str, Any]) -> Iterator[Refusal]:
    model = value.get("model")
    if isinstance(model, str) and 1 <= len(model) <= _NAME_LENGTH:
        return
    rule = "model-missing"
    if isinstance(model, str):
        rule = "model-too-long" if model else "model-empty"
    yield _refusal(value, rule, "model", f"a model id of 1 to {_NAME_LENGTH} characters")


def _messages(value: dict[str, Any]) -> Iterator[Refusal]:
    messages = value.get("messages")
    if not isinstance(messages, list) or not messages:
        rule = "messages-empty" if messages == [] else "messages-missing"
        yield _refusal(value, rule, "messages", "an array of at least one message")
    else:
        for index, message in enumerate(messages):
            yield from _message(message, f"/messages/{index}")


def _message(message: Any, pointer: str) -> Iterator[Refusal]:  # noqa: ANN401 -- JSON
    if isinstance(message, dict):
        yield from _message_members(message, pointer)
    else:
        yield Refusal(
            rule="refuse/role-missing",
            pointer=pointer,
            found=describe(message),
            expected="an object with role and content",
        )


def _message_members(message: dict[str, Any], pointer: str) -> Iterator[Refusal]:
    for name in message:
        if name not in ("role", "content"):
            yield Refusal(
                rule="refuse/message-extra-field",
                pointer=f"{pointer}/{token(name[:_SHOWN])}",
                found="a member outside the profile",
                expected="only role and content",
                remedy="leave it out",
            )
    role = message.get("role")
    if role not in ("system", "user", "assistant") or not isinstance(role, str):
        rules = {None: "role-missing", "tool": "role-tool", "developer": "role-developer"}
        named = role if isinstance(role, str | None) else ""
        yield Refusal(
            rule=f"refuse/{rules.get(named, 'role-unknown')}",
            pointer=f"{pointer}/role",
            found=quote(role) if "role" in message else "no such member",
            expected='"system", "user" or "assistant"',
            remedy='use "system"' if role == "developer" else "",
        )
    content = message.get("content")
    if not isinstance(content, str):
        rule = "content-parts"
        if content is None:
            rule = "content-null" if "content" in message else "content-missing"
        yield Refusal(
            rule=f"refuse/{rule}",
            pointer=f"{pointer}/content",
            found=describe(content) if "content" in message else "no such member",
            expected="a string",
            remedy="join the text parts into one string" if isinstance(content, list) else "",
        )


def _limit(value: dict[str, Any]) -> Iterator[Refusal]:
    limit = value.get("max_completion_tokens")
    match limit:
        case None:
            rule = "limit-null" if "max_completion_tokens" in value else "limit-missing"
        case bool():
            rule = "limit-boolean"
        case float() if not limit.is_integer():
            rule = "limit-fraction"
        case int() | float():
            if 1 <= limit <= MAX_SAFE_INTEGER:
                return
            rule = "limit-unsafe" if limit > 0 else "limit-negative" if limit else "limit-zero"
        case _:
            rule = "limit-string"
    wanted = f"an integer from 1 to {MAX_SAFE_INTEGER} (tokens)"
    yield _refusal(value, rule, "max_completion_tokens", wanted)


def _stream(value: dict[str, Any]) -> Iterator[Refusal]:
    stream = value.get("stream")
    if not isinstance(stream, bool):
        rule = "stream-string"
        if stream is None:
            rule = "stream-null" if "stream" in value else "stream-missing"
        yield _refusal(value, rule, "stream", "true or false")
    elif stream:
        yield from _options(value)
    elif "stream_options" in value:
        wanted = "no stream_options where stream is false"
        yield _refusal(value, "options-without-stream", "stream_options", wanted)


def _options(value: dict[str, Any]) -> Iterator[Refusal]:
    wanted = '{"include_usage": true} where stream is true'
    options = value.get("stream_options")
    if options is None:
        yield _refusal(value, "usage-not-requested", "stream_options", wanted)
    elif not isinstance(options, dict) or not options:
        yield _refusal(value, "options-empty", "stream_options", wanted)
    elif options.get("include_usage") is not True:
        rule = "usage-false" if "include_usage" in options else "options-extra-field"
        found = describe(options.get("include_usage"))
        yield Refusal(
            rule=f"refuse/{rule}",
            pointer="/stream_options/include_usage",
            found=found if "include_usage" in options else "no such member",
            expected="true",
        )
    elif len(options) > 1:
        extra = next(name for name in options if name != "include_usage")
        yield Refusal(
            rule="refuse/options-extra-field",
            pointer=f"/stream_options/{token(extra[:_SHOWN])}",
            found="a member outside the profile",
            expected="only include_usage",
            remedy="leave it out",
        )


def _refusal(value: dict[str, Any], rule: str, member: str, expected: str) -> Refusal:
    found = describe(value[member]) if member in value else "no such member"
    return Refusal(rule=f"refuse/{rule}", pointer=f"/{member}", found=found, expected=expected)
