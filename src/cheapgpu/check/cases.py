"""The requests worth sending, as data: what each is for, what it sends, what it can cost.

Where a rule has an example of a request (`core.catalogue`), the case sends that example, with the
endpoint's model id in it and a smaller limit: what the rule is explained with is what is asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from cheapgpu.core import examples
from cheapgpu.core.exchange import Credential, ModelKnown
from cheapgpu.core.rules import BY_ID

_encode: Final = msgspec.json.Encoder().encode

#: Completion tokens that a case asks for where a few are enough.
_FEW_TOKENS: Final = 16

#: Makes the bytes of a request from the model id and the limit (tokens) that it is to name.
Body = Callable[[str, int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request worth sending; the answer is judged by every rule that applies to it."""

    name: str
    #: What is asked, in a few words.
    purpose: str
    body: Body
    #: The most completion tokens that it asks for.
    tokens: int = _FEW_TOKENS
    #: Whether the limit in the body is `tokens`, so that asking for fewer changes it.
    adjustable: bool = True
    credential: Credential = "valid"
    model: ModelKnown = "known"
    stream: bool = True
    content_type: str = "application/json"


def question(*texts: str, stream: bool = True) -> Body:
    """The body of a conforming request whose user says these texts."""
    messages = [{"role": "user", "content": text} for text in texts]
    options = {"include_usage": True} if stream else ...

    def body(model: str, tokens: int) -> bytes:
        return examples.request(
            model=model,
            messages=messages,
            max_completion_tokens=tokens,
            stream=stream,
            stream_options=options,
        )

    return body


def example_of(rule: str) -> Body:
    """The example request of a rule, for another model and with another limit."""
    example = BY_ID[rule].request

    def body(model: str, tokens: int) -> bytes:
        limit = b'"max_completion_tokens":%d'
        named = example.replace(_encode(examples.MODEL), _encode(model))
        return named.replace(limit % 64, limit % tokens)

    return body


def refusal(name: str, rule: str) -> Case:
    """The case of a request that must be refused by `rule`."""
    subject = BY_ID[rule]
    known = subject.model == "known"
    # An unknown model has another id in each run; the example has one of its own.
    body = example_of(rule) if known else question("Describe how rain forms.")
    return Case(
        name=name,
        purpose=subject.sentence,
        body=body,
        adjustable=body("m", 1) != body("m", 2),
        credential=subject.credential,
        model=subject.model,
        stream=b'"stream":true' in subject.request,
        content_type=subject.content_type,
    )


STREAM_SHORT: Final = Case(
    name="stream-short",
    purpose="A short answer, streamed.",
    body=question("Describe how rain forms."),
    tokens=32,
)
STREAM_LONG: Final = Case(
    name="stream-long",
    purpose="A long answer, streamed: text must come while it is made, for over a second.",
    body=question(
        "Explain, in many paragraphs and in full detail, how rain forms, how rivers reach the sea, "
        "and why the sea is salt."
    ),
    tokens=256,
)
WHOLE_SHORT: Final = Case(
    name="whole-short",
    purpose="A short answer, not streamed.",
    body=question("Describe how snow forms.", stream=False),
    tokens=32,
    stream=False,
)
INTEGER_FORMS: Final = Case(
    name="integer-forms",
    purpose=BY_ID["accepted/integers"].sentence,
    body=example_of("accepted/integers"),
    tokens=10,
    adjustable=False,
)

#: The cases of a run, in the order in which they are sent.
CASES: Final = (
    STREAM_SHORT,
    STREAM_LONG,
    WHOLE_SHORT,
    refusal("no-key", "auth/missing-refused"),
    refusal("wrong-key", "auth/wrong-refused"),
    refusal("unknown-model", "refuse/unknown-model"),
    refusal("unknown-field", "refuse/unknown-field"),
    refusal("with-max_tokens", "refuse/max_tokens"),
    refusal("with-tools", "refuse/tools"),
    refusal("with-temperature", "refuse/temperature"),
    refusal("messages-empty", "refuse/messages-empty"),
    refusal("limit-zero", "refuse/limit-zero"),
    refusal("usage-not-requested", "refuse/usage-not-requested"),
    refusal("not-json", "refuse/not-json"),
    INTEGER_FORMS,
)
