"""What an engine is sent: the buyer's request made anew in the engine's dialect."""

from typing import Any, Final

import msgspec

from cheapgpu.core.request import ChatRequest
from cheapgpu.endpoint.dialects import Dialect

_encode: Final = msgspec.json.Encoder().encode
_USAGE: Final = {"include_usage": True}


def engine_body(request: ChatRequest, engine_model: str, dialect: Dialect) -> bytes:
    """The body of the engine's request: the five members of the profile, in its own terms.

    Nothing of the buyer's bytes is passed on but the texts of the messages.
    """
    stream = request.stream or dialect.collects
    body: dict[str, Any] = {
        "model": engine_model,
        "messages": request.messages,
        "stream": stream,
    }
    for limit in dialect.limits:
        body[limit] = request.max_completion_tokens
    if stream:
        body["stream_options"] = _USAGE
    return _encode(body)
