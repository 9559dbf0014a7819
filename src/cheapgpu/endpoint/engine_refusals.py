"""What an engine's refusal means for the buyer: its status and words, in terms of the profile."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cheapgpu.endpoint.failures import Failure, Reason

#: Bytes of a refusal that are read; what is beyond is let go.
REFUSAL_BYTES: Final = 65_536
#: How engines say that a request is too long, in `type`, `code` or words.
_TOO_LONG: Final = re.compile(
    r"exceed_context_size|context_length_exceeded|ContextWindowExceeded|max_model_len"
    r"|(?:context|sequence) (?:length|size|window)|maximum allowed length|max_total_tokens"
    r"|max_new_tokens` must be|tokens to keep from the initial prompt",
    re.IGNORECASE,
)
#: Characters of an engine's words that are looked through.
_LOOKED_AT: Final = 4000
_MOST_SECONDS: Final = 600

#: Status of the engine → what it means; others by their hundreds.
_BY_STATUS: Final[Mapping[int, Reason]] = {
    400: "engine-refused",
    413: "engine-context",
    422: "engine-refused",
    429: "engine-busy",
    503: "engine-busy",
}


def read_refusal(status: int, body: bytes) -> Failure:
    """What a non-200 answer means. 401, 403 and 404 are the operator's affair, not the buyer's."""
    reason = _BY_STATUS.get(status, "engine-error")
    what = f"the engine answered {status}"
    if reason in ("engine-refused", "engine-error") and 400 <= status < 600 and _too_long(body):
        reason = "engine-context"
    if reason == "engine-context":
        return Failure(reason, what, param="messages")
    if status in (408, 504):
        return Failure("engine-silent", what)
    return Failure(reason, what)


def retry_after(value: bytes | None) -> int | None:
    """The seconds of a Retry-After field, at most ten minutes; None where it has no number."""
    if value is None or not value.isdigit() or len(value) > 9:
        return None
    return min(int(value), _MOST_SECONDS)


def _too_long(body: bytes) -> bool:
    """Whether an error says that the request does not fit the model's context."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return any(_TOO_LONG.search(text[:_LOOKED_AT]) for text in _texts(value))


def _texts(value: Any) -> list[str]:  # noqa: ANN401 -- JSON is any value
    """The words of an error body: at its top, or within `error` or `detail`."""
    texts = []
    for part in (
        value,
        *((value.get("error"), value.get("detail")) if type(value) is dict else ()),
    ):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            members = (part.get(name) for name in ("message", "type", "code", "error_type"))
            texts += [member for member in members if isinstance(member, str)]
    return texts
