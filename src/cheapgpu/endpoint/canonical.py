"""The bytes that a buyer gets: every chunk and completion written anew, in the profile's members.

One id, one created and the declared model stand in all of an answer's chunks; text goes in as the
body of a JSON string, usage as the engine wrote it.
"""

import itertools
import secrets
from typing import Final

import msgspec
from msgspec import Struct

from cheapgpu.core.messages import FinishReason

DONE_EVENT: Final = b"data: [DONE]\n\n"
#: What a waiting buyer is sent: a comment, which no event-stream reader dispatches.
HEARTBEAT: Final = b": waiting for the model\n\n"

#: What tells the ids of this process from those of any other.
_PROCESS: Final = secrets.token_hex(8)
_numbers: Final = itertools.count(1)

_encode: Final = msgspec.json.Encoder().encode


class Identity(Struct, frozen=True):
    """Who an answer says it is."""

    id: str
    #: Unix time in seconds.
    created: int
    #: The declared model id.
    model: str


def new_identity(model: str, now: float) -> Identity:
    """An identity that no other answer has; `now` is Unix time in seconds."""
    return Identity(f"chatcmpl-{_PROCESS}{next(_numbers):08x}", int(now), model)


class ChunkFrames(Struct, frozen=True, gc=False):
    """The bytes around what changes from chunk to chunk of one answer."""

    #: Before the text, without a role and with one; after it.
    text: bytes
    role_text: bytes
    after_text: bytes
    #: A chunk with a role alone.
    role: bytes
    #: Before and after a finish reason.
    finish: bytes
    after_finish: bytes
    #: Before and after usage.
    usage: bytes
    after_usage: bytes

    def ending(self, finish_reason: FinishReason, usage: bytes) -> bytes:
        """The end of an answer: terminal choice, usage chunk and [DONE]."""
        return b"%b%b%b%b%b%b%b" % (
            self.finish,
            finish_reason.encode(),
            self.after_finish,
            self.usage,
            usage,
            self.after_usage,
            DONE_EVENT,
        )


def chunk_frames(identity: Identity) -> ChunkFrames:
    """The frames of an answer with this identity."""
    head = b'data: {"id":"%b","object":"chat.completion.chunk","created":%d,"model":%b,' % (
        identity.id.encode(),
        identity.created,
        _encode(identity.model),
    )
    delta = head + b'"choices":[{"index":0,"delta":{'
    after_text = b'"},"finish_reason":null}],"usage":null}\n\n'
    return ChunkFrames(
        text=delta + b'"content":"',
        role_text=delta + b'"role":"assistant","content":"',
        after_text=after_text,
        role=delta + b'"role":"assistant' + after_text,
        finish=delta + b'},"finish_reason":"',
        after_finish=b'"}],"usage":null}\n\n',
        usage=head + b'"choices":[],"usage":',
        after_usage=b"}\n\n",
    )


def completion(
    identity: Identity, content: str | None, finish_reason: FinishReason, usage: bytes
) -> bytes:
    """A plain answer; `usage` is JSON as the engine wrote it."""
    return (
        b'{"id":"%b","object":"chat.completion","created":%d,"model":%b,"choices":[{"index":0,'
        b'"message":{"role":"assistant","content":%b},"finish_reason":"%b"}],"usage":%b}'
    ) % (
        identity.id.encode(),
        identity.created,
        _encode(identity.model),
        _encode(content),
        finish_reason.encode(),
        usage,
    )


def string_body(text: str) -> bytes:
    """A text as the body of a JSON string: escaped, without the quotes."""
    return _encode(text)[1:-1]
