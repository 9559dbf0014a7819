"""A request as the simulated endpoint understood it, and the rule that it should be refused by."""

import hmac
import json
from dataclasses import dataclass
from typing import Any, Final, Self

from cheapgpu.core.exchange import Credential
from cheapgpu.core.request import (
    ChatRequest,
    InputMessage,
    Refusal,
    decode_request,
    refuse_content_type,
)

#: What a request that cannot be read is taken to ask for, by an endpoint that answers it anyway.
_LIMIT: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request as it came over HTTP."""

    method: str
    #: The path, without the query.
    path: str
    content_type: str | None
    authorization: str | None
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request for an answer."""

    body: bytes
    credential: Credential
    #: The rule that calls for a refusal, with the reason; None if the request is right.
    rule: str | None
    why: str = ""
    param: str | None = None
    #: What is asked for, as well as it can be told from the body.
    model: str
    messages: tuple[InputMessage, ...]
    #: The most completion tokens.
    limit: int
    stream: bool
    #: The number of this request among all that were answered or refused, from 1.
    number: int
    #: The last request that was answered before this one; its own `before` is None.
    before: Self | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the endpoint knows and admits."""

    model: str
    key: str
    #: The largest max_completion_tokens, in tokens.
    ceiling: int


def credential_of(authorization: str | None, key: str) -> Credential:
    """Tell what is known of the key in an Authorization field (RFC 6750 section 2.1)."""
    if authorization is None:
        return "none"
    scheme, _, token = authorization.partition(" ")
    right = hmac.compare_digest(token.encode("latin-1"), key.encode("latin-1"))
    return "valid" if right and scheme.lower() == "bearer" else "wrong"


def read(message: Message, known: Known, *, number: int, before: Asked | None) -> Asked:
    """Read a request: its checks in their order (key, body, model, limit), and what it asks for."""
    body = message.body
    credential = credential_of(message.authorization, known.key)
    request = refuse_content_type(message.content_type) or decode_request(body)
    wrong = _wrong(request, credential, known)
    decoded = decode_request(body)
    if not isinstance(decoded, ChatRequest):
        decoded = _guessed(body, known.model)
    return Asked(
        body=body,
        credential=credential,
        rule=wrong[0] if wrong else None,
        why=wrong[1] if wrong else "",
        param=wrong[2] if wrong else None,
        model=decoded.model,
        messages=tuple(decoded.messages),
        limit=decoded.max_completion_tokens,
        stream=decoded.stream,
        number=number,
        before=before,
    )


def _wrong(
    request: ChatRequest | Refusal, credential: Credential, known: Known
) -> tuple[str, str, str | None] | None:
    """The rule by which a request must be refused, a message for its sender, and the member."""
    if credential != "valid":
        rule = "auth/missing-refused" if credential == "none" else "auth/wrong-refused"
        return rule, "a valid bearer key is needed", None
    if isinstance(request, Refusal):
        return request.rule, request.message, request.param
    if request.model != known.model:
        return "refuse/unknown-model", "model: this endpoint does not have it", "model"
    if request.max_completion_tokens > known.ceiling:
        message = f"max_completion_tokens: at most {known.ceiling} are admitted"
        return "refuse/limit-over-ceiling", message, "max_completion_tokens"
    return None


def _guessed(body: bytes, model: str) -> ChatRequest:
    """What an endpoint that looks away would take a request outside the profile for."""
    try:
        value: Any = json.loads(body.decode(errors="replace"))
    except (ValueError, RecursionError):
        value = None
    value = value[0] if isinstance(value, list) and value else value
    value = value if isinstance(value, dict) else {}
    messages = value.get("messages")
    limit = value.get("max_completion_tokens", value.get("max_tokens"))
    limited = isinstance(limit, int | float) and not isinstance(limit, bool) and limit >= 1
    named = value.get("model")
    return ChatRequest(
        model=named if isinstance(named, str) and named else model,
        messages=[_message(one) for one in messages] if isinstance(messages, list) else [],
        max_completion_tokens=int(limit) if limited else _LIMIT,
        stream=value.get("stream") in (True, "true"),
    )


def _message(value: Any) -> InputMessage:  # noqa: ANN401 -- JSON is any value
    content = value.get("content") if isinstance(value, dict) else None
    return InputMessage(role="user", content=content if isinstance(content, str) else "")
