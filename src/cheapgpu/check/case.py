"""A case: one request worth sending, as data, and how the bytes of its body are made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from cheapgpu.core import examples
from cheapgpu.core.exchange import Credential, ModelKnown

_encode: Final = msgspec.json.Encoder().encode

#: Makes the bytes of a request from the model id and the limit (tokens) that it is to name.
Body = Callable[[str, int], bytes]

#: How the key is sent. `bearer`: as it should be (or a wrong key, where the case wants one);
#: `capitals`: the field's name in capitals, which is the same name (RFC 9110 section 5.1). All
#: others are no valid bearer key: `empty` and `spaces` the scheme without a key; `other-case` the
#: key with its letters' case swapped; `basic` another scheme, well-formed; `token` the key under
#: another scheme.
KeyForm = Literal["bearer", "capitals", "empty", "spaces", "other-case", "basic", "token"]

#: With what else a case may be under way: nothing, as where times are judged; the other cases of
#: its kind, as many at once as the plan allows; or all of its kind, always.
Beside = Literal["nothing", "refusals", "streams"]

#: Stands in a body for a word that is another in each exchange, so that an answer which holds it
#: can be told to belong there (core.across).
NONCE: Final = "cg00000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request worth sending; the answer is judged by every rule that applies to it."""

    name: str
    #: What is asked, in a few words.
    purpose: str
    body: Body
    #: The most completion tokens that it can cost: the limit in its body. A request that must be
    #: refused and sets no sure limit is left at the first bytes of an answer; a few are counted.
    tokens: int
    #: Whether the limit in the body is `tokens`, so that asking for fewer changes it.
    adjustable: bool = True
    #: The id of the rule by which it must be refused; None: it must be answered.
    refused_by: str | None = None
    credential: Credential = "valid"
    key: KeyForm = "bearer"
    model: ModelKnown = "known"
    stream: bool = True
    #: "" sends no content type.
    content_type: str = "application/json"
    #: Rules about what several exchanges show together, or about writing, that it is there for.
    feeds: tuple[str, ...] = ()
    beside: Beside = "nothing"
    #: After how many events of an answer of 200 we go away; 0: at its first bytes. None: never.
    leave_after: int | None = None
    #: Whether the answer is read slowly, a little at a time.
    slow: bool = False


def said(*texts: str) -> list[dict[str, str]]:
    """Messages in which a user says these texts."""
    return [{"role": "user", "content": text} for text in texts]


def asking(messages: Any, /, *, stream: bool = True, **members: Any) -> Body:  # noqa: ANN401 -- JSON
    """The body of a request with these messages; members are replaced, or left out where `...`.

    The model id and the limit are those of the run unless a member replaces them.
    """
    options = {"include_usage": True} if stream else ...

    def body(model: str, tokens: int) -> bytes:
        fields: dict[str, Any] = {
            "model": model,
            "messages": messages,
            "max_completion_tokens": tokens,
            "stream": stream,
            "stream_options": options,
        }
        return examples.request(**(fields | members))

    return body


def limited_to(number: str, body: Body) -> Body:
    """The same body with its limit written as `number`, which need not be the usual notation."""

    def written(model: str, tokens: int) -> bytes:
        return body(model, tokens).replace(
            b'"max_completion_tokens":%d' % tokens, b'"max_completion_tokens":' + number.encode()
        )

    return written


def example(request: bytes) -> Body:
    """A rule's example of a request, for another model and with another limit."""

    def body(model: str, tokens: int) -> bytes:
        limit = b'"max_completion_tokens":%d'
        named = request.replace(_encode(examples.MODEL), _encode(model))
        return named.replace(limit % 64, limit % tokens)

    return body
