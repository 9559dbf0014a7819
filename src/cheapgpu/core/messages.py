"""What an endpoint answers: completion, chunk, usage and error, decoded fast and strictly.

Each `decode_*` accepts exactly what the published schema accepts of strict JSON (`strict_json`),
and explains nothing: a document that comes back as None is judged again by `schema.faults`, which
does. Tests hold the two equal.
"""

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from cheapgpu.core import schema, strict_json
from cheapgpu.core.limits import JSON_DEPTH
from cheapgpu.core.strict_json import Unreadable, too_deep

#: The largest integer that every JSON reader keeps exactly: 2^53 - 1.
MAX_SAFE_INTEGER: Final = 9007199254740991

Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
FinishReason = Literal["stop", "length", "content_filter"]


class Usage(Struct, frozen=True, gc=False):
    """Tokens as the endpoint reported them: a claim, whose sum is checked elsewhere."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count

    @property
    def adds_up(self) -> bool:
        """Whether the total is the sum of the two (profile, "Usage and abnormal termination")."""
        return self.total_tokens == self.prompt_tokens + self.completion_tokens


class Delta(Struct, frozen=True, gc=False):
    """What a chunk adds to the answer; a member that is left out adds nothing."""

    role: Literal["assistant"] = "assistant"
    content: str = ""
    tool_calls: None = None
    function_call: None = None
    audio: None = None


class ChunkChoice(Struct, frozen=True, gc=False):
    """The only choice of a chunk."""

    index: Literal[0]
    delta: Delta
    finish_reason: FinishReason | None


class Chunk(Struct, frozen=True, gc=False):
    """One JSON object of a stream."""

    id: Name
    object: Literal["chat.completion.chunk"]
    created: Count
    model: Name
    choices: Annotated[list[ChunkChoice], Meta(max_length=1)]
    usage: Usage | None


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """The text of a plain answer; null only where it was filtered.

    Encoded without the members that say nothing, so that the usual answer encodes to itself.
    """

    role: Literal["assistant"]
    content: str | None
    tool_calls: None = None
    function_call: None = None
    audio: None = None


class CompletionChoice(Struct, frozen=True, gc=False):
    """The only choice of a plain answer."""

    index: Literal[0]
    message: Message
    finish_reason: FinishReason


class Completion(Struct, frozen=True, gc=False):
    """A plain answer."""

    id: Name
    object: Literal["chat.completion"]
    created: Count
    model: Name
    choices: Annotated[list[CompletionChoice], Meta(min_length=1, max_length=1)]
    usage: Usage


class ErrorDetail(Struct, frozen=True, gc=False):
    """What went wrong, in the endpoint's words."""

    message: str
    type: Name
    code: str | None = None
    param: str | None = None


class ErrorBody(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The body of a refusal, and of an error within a stream."""

    error: ErrorDetail


T = TypeVar("T", bound=Struct)

#: A chunk no longer than this nests no deeper than our limit: beside the least that a chunk is,
#: there is no room for the brackets that would be needed within its deepest object of its own.
FLAT_CHUNK: Final = 2 * (JSON_DEPTH - 4) + len(
    b'{"id":"i","object":"chat.completion.chunk","created":0,"model":"m","choices":[],"usage":null}'
)
_BACKSLASH: Final = 0x5C

_decode: Final = msgspec.json.Decoder().decode
_decode_completion: Final = msgspec.json.Decoder(Completion).decode
_encode: Final = msgspec.json.Encoder().encode


def decode_chunk(data: bytes) -> Chunk | None:
    """Return the chunk that `data` is, or None if it is not strict JSON that the schema accepts."""
    return _typed(data, Chunk, "chunk")


def decode_completion(data: bytes) -> Completion | None:
    """Return the completion that `data` is, or None as for `decode_chunk`."""
    completion = _usual_completion(data) or _typed(data, Completion, "completion")
    if completion is not None:
        choice = completion.choices[0]
        if choice.message.content is None and choice.finish_reason != "content_filter":
            return None
    return completion


def decode_error(data: bytes) -> ErrorBody | None:
    """Return the error body that `data` is, or None as for `decode_chunk`."""
    return _typed(data, ErrorBody, "error")


def decode_usage(data: bytes) -> Usage | None:
    """Return the usage object that `data` is, or None as for `decode_chunk`."""
    return _typed(data, Usage, "usage")


def fast_value(data: bytes) -> Any | None:  # noqa: ANN401 -- JSON is any value
    """Return the value of a strict JSON text where that can be told quickly, else None.

    msgspec is as strict as the profile but for three things: it reads duplicate names (the last one
    wins), it nests deeper than our limit, and it refuses a number beyond a double. The first is
    excluded by `hides_nothing`, the second by counting brackets; the third stays None.
    """
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if not too_deep(data) and hides_nothing(data, value) else None


def fast_chunk(data: bytes) -> Chunk | None:
    """Return the chunk of a strict JSON text where that can be told quickly, else None.

    As `fast_value`; and None for a text that states an error, which is no chunk.
    """
    try:
        value = _decode(data)
        chunk = msgspec.convert(value, Chunk)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if value.get("error") is not None or (len(data) > FLAT_CHUNK and too_deep(data)):
        return None
    return chunk if hides_nothing(data, value) else None


def hides_nothing(data: bytes, value: object) -> bool:
    """Whether no name occurs twice in the JSON text `data`, which msgspec decoded to `value`.

    A text that the value encodes to has nothing that the value has not. In any other the colons
    are counted. The encoded value has one after each of its names, and those of its strings as they
    are. So has the text, unless it spells one as an escape; and a member that another of its name
    replaced would leave it one more at least.
    """
    text = _encode(value)
    return text == data or (
        data.count(b":") == text.count(b":") and (_BACKSLASH not in data or b"\\u003" not in data)
    )


def _usual_completion(data: bytes) -> Completion | None:
    """Return the completion of a text that has no member beside it, else None.

    Quicker than `_typed`, and equal to it: what the type leaves unread, `hides_nothing` would miss.
    So there is nothing unread, and a completion alone is four levels deep.
    """
    try:
        completion = _decode_completion(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return completion if hides_nothing(data, completion) else None


def _typed(data: bytes, kind: type[T], document: schema.Document) -> T | None:
    value = fast_value(data)
    if value is not None:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError:
            pass  # `12.0` is an integer to the schema; only the slow way can tell
    value = strict_json.decode(data)
    if isinstance(value, Unreadable) or not schema.is_valid(document, value):
        return None
    return msgspec.convert(_with_integers(value), kind)


def chunk_of(value: dict[str, Any]) -> Chunk:
    """Return the chunk of a decoded object that matches the chunk schema."""
    return msgspec.convert(_with_integers(value), Chunk)


def _with_integers(value: Any) -> Any:  # noqa: ANN401 -- JSON is any value
    """Write integral floats as the integers that they are to JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _with_integers(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    return value


def completion_of(value: dict[str, Any]) -> Completion:
    """Return the completion of a decoded object that matches the completion schema."""
    return msgspec.convert(_with_integers(value), Completion)
