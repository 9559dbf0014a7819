"""What an exchange's request calls for: an answer, or a refusal and for which reason.

Read from the request's own bytes and from what the sender knew of its key and model.
"""

from dataclasses import dataclass
from typing import Literal

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.request import ChatRequest, Refusal, decode_request, refuse_content_type

Mode = Literal["stream", "whole"]

#: Refusals that say nothing about the request: the endpoint is busy, or something before it is.
TRANSIENT = frozenset({408, 429, 502, 503, 504})
#: Cases of this name are sent while others are under way: an endpoint may be too busy for them.
CONCURRENT = "concurrent-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Which statuses fit, which rule is broken by an answer of 200, and how a body is judged."""

    #: The statuses that fit; empty where an answer of 200 is called for.
    refusals: tuple[int, ...]
    #: The rule that an accepted request breaks; None where it may be accepted.
    rule: str | None
    #: Why the request is outside the profile, where its own bytes put it there.
    outside: Refusal | None
    #: How a body of 200 is judged; None where the profile does not say what it should be.
    mode: Mode | None
    #: The supplier model id and the limit (tokens) that were sent; None where not known.
    model: str | None
    limit: int | None


def expectation(exchange: Exchange) -> Expectation:
    """Read what `exchange` calls for from its request (profile, "Request")."""
    request = _request(exchange)
    if request is None:
        mode = _apparent_mode(exchange)
        return Expectation(refusals=(), rule=None, outside=None, mode=mode, model=None, limit=None)
    if isinstance(request, Refusal):
        unauthorized = () if exchange.credential == "valid" else (401, 403)
        return Expectation(
            refusals=(400, 422, *unauthorized),
            rule=request.rule,
            outside=request,
            mode=None,
            model=None,
            limit=None,
        )
    refusals: tuple[int, ...] = ()
    rule = None
    if exchange.credential != "valid":
        refusals = (401, 403)
        rule = "auth/missing-refused" if exchange.credential == "none" else "auth/wrong-refused"
    elif exchange.model == "unknown":
        refusals, rule = (400, 404), "refuse/unknown-model"
    elif exchange.ceiling is not None and request.max_completion_tokens > exchange.ceiling:
        refusals, rule = (400, 422), "refuse/limit-over-ceiling"
    return Expectation(
        refusals=refusals,
        rule=rule,
        outside=None,
        mode="stream" if request.stream else "whole",
        model=request.model,
        limit=request.max_completion_tokens,
    )


def _request(exchange: Exchange) -> ChatRequest | Refusal | None:
    sent = exchange.request
    if sent is None:
        return None
    content_type = next((v for name, v in sent.headers if name.lower() == "content-type"), None)
    return refuse_content_type(content_type) or decode_request(sent.body)


def _apparent_mode(exchange: Exchange) -> Mode:
    """How an answer without its request is judged: by what it looks like."""
    start = exchange.body[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    return "whole" if start[:1] in (b"{", b"[") else "stream"
