"""The bytes that explain the rules: a conforming request, answer and stream, and how to bend them.

Examples are HTTP messages as they stand on the wire, so that they can be shown and judged alike.
"""

from typing import Any, Final

import msgspec

#: Reads of an answer, head included: seconds since the request began, and bytes.
Example = tuple[tuple[float, bytes], ...]

MODEL: Final = "example-local-model"
_encode: Final = msgspec.json.Encoder().encode


def request(**members: Any) -> bytes:  # noqa: ANN401 -- JSON is any value
    """The body of a conforming streamed request, with members replaced, or left out where `...`."""
    body: dict[str, Any] = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Describe how rain forms."}],
        "max_completion_tokens": 64,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    body.update(members)
    return _encode({name: value for name, value in body.items() if value is not ...})


WHOLE_REQUEST: Final = request(stream=False, stream_options=...)
STREAM_REQUEST: Final = request()

USAGE: Final = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}


def response(
    body: bytes, content_type: str | None = "application/json", status: int = 200
) -> bytes:
    """An answer as it stands on the wire, its length announced."""
    phrase = {200: "OK", 400: "Bad Request", 401: "Unauthorized"}.get(status, "Answer")
    kind = f"content-type: {content_type}\r\n" if content_type else ""
    return (
        f"HTTP/1.1 {status} {phrase}\r\n{kind}content-length: {len(body)}\r\n\r\n"
    ).encode() + body


def completion(**members: Any) -> bytes:  # noqa: ANN401 -- JSON is any value
    """The body of a conforming plain answer, with members replaced, or left out where `...`."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Rain falls."},
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
    }
    body.update(members)
    return _encode({name: value for name, value in body.items() if value is not ...})


def error(status: int = 400, message: str = "not in the profile") -> bytes:
    """A conforming refusal."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None}}
    return response(_encode(body), status=status)


def event(data: bytes) -> bytes:
    """One event of one data line."""
    return b"data: " + data + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **members: Any) -> bytes:  # noqa: ANN401 -- JSON is any value
    """An event with one chunk; members replaced, or left out where `...`."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": MODEL,
        "choices": [choice],
        "usage": None,
    }
    body.update(members)
    return event(_encode({name: value for name, value in body.items() if value is not ...}))


ROLE: Final = chunk({"role": "assistant", "content": ""})
RAIN: Final = chunk({"content": "Rain"})
FALLS: Final = chunk({"content": " falls."})
STOP: Final = chunk(finish="stop")
SUMMARY: Final = chunk(choices=[], usage=USAGE)
DONE: Final = b"data: [DONE]\n\n"


def stream(*events: bytes, content_type: str | None = "text/event-stream") -> bytes:
    """A streamed answer of these events."""
    return response(b"".join(events), content_type)


STREAM: Final = stream(ROLE, RAIN, FALLS, STOP, SUMMARY, DONE)
WHOLE: Final = response(completion())
#: The gallery's model text for a long answer: events with one word each.
_LONG: Final = [chunk({"content": " drop"}) for _ in range(80)]


def at_once(message: bytes) -> Example:
    """An answer that arrives whole a moment after it was asked for."""
    return ((0.1, message),)


def long_stream(*, held_back: bool) -> Example:
    """A long stream whose text comes as it is made, or all at the end."""
    usage = {"prompt_tokens": 12, "completion_tokens": len(_LONG), "total_tokens": 12 + len(_LONG)}
    events = [ROLE, *_LONG, STOP, chunk(choices=[], usage=usage), DONE]
    body = b"".join(events)
    head = stream(body)[: -len(body)]
    if held_back:
        return ((0.01, head), (2.0, body))
    return ((0.01, head), *((0.02 + 0.02 * n, data) for n, data in enumerate(events)))
