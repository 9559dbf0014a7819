"""Faults of `auth/`, `refuse/`, `accepted/` and `error/`: who is let in, and what others get."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from cheapgpu.core import strict_json
from cheapgpu.core.rules import RULES
from cheapgpu.simulate.answer import Answer, encode, error_answer, with_body
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.gallery.fault import Fault, in_both
from cheapgpu.simulate.model import usage

_SUBJECT: Final = re.compile(r"A(n?) (.+?) (?:is refused|gets )")


def _tolerated() -> Iterator[Fault]:
    """One endpoint for each rule of `refuse/`, which answers what that rule says to refuse."""
    for rule in RULES:
        if rule.area == "refuse":
            subject = _SUBJECT.match(rule.sentence)
            what = f"a{subject[1]} {subject[2]}" if subject else "a request outside the profile"
            yield Fault(
                name=rule.id,
                sentence=f"Answers {what} as if nothing were wrong.",
                breaks=(rule.id,),
                tolerates=frozenset({rule.id}),
            )


def refused(status: int, message: str = "not in the profile") -> Answer:
    """A refusal of a request that deserves none."""
    return error_answer(status, message, "invalid_request_error")


def _picky(name: str, sentence: str, minds: Callable[[Asked], bool]) -> Fault:
    return Fault(
        name=f"accepted/{name}",
        sentence=sentence,
        breaks=(f"accepted/{name}",),
        refuses=lambda asked: refused(400) if minds(asked) else None,
    )


def _has_fraction_or_exponent(asked: Asked) -> bool:
    value = strict_json.decode(asked.body)
    return isinstance(value, dict) and isinstance(value.get("max_completion_tokens"), float)


def _counts_inference(answer: Answer, asked: Asked) -> Answer:
    if asked.rule is None or not asked.rule.startswith("auth/"):
        return answer
    counted = encode(usage(12, 3))
    return with_body(answer, lambda body: body[:-2] + b',"usage":%b}}' % counted)


def _all_500(answer: Answer, asked: Asked) -> Answer:
    at_fault = asked.rule is not None and asked.rule.startswith("refuse/")
    return replace(answer, status=500) if at_fault else answer


def _plain_text(answer: Answer) -> Answer:
    answer = with_body(answer, lambda _: b"Bad Request")
    return replace(answer, headers=(("content-type", "text/plain"),))


ADMISSION: Final = (
    Fault(
        name="auth/missing-refused",
        sentence="Answers a request without a bearer key.",
        breaks=("auth/missing-refused",),
        tolerates=frozenset({"auth/missing-refused"}),
    ),
    Fault(
        name="auth/wrong-refused",
        sentence="Answers a request with any key, or none in it, under any scheme.",
        breaks=("auth/wrong-refused",),
        tolerates=frozenset({"auth/wrong-refused"}),
    ),
    Fault(
        name="auth/refused-before-inference",
        sentence="Puts usage into the refusal of a wrong key: the model has worked for it.",
        breaks=("auth/refused-before-inference",),
        refusal=_counts_inference,
    ),
    *_tolerated(),
    _picky(
        "integers",
        "Refuses a limit that is written 1e1 or 12.0.",
        _has_fraction_or_exponent,
    ),
    _picky(
        "unicode",
        "Refuses a message that is not ASCII.",
        lambda asked: any(not message.content.isascii() for message in asked.messages),
    ),
    _picky(
        "roles",
        "Refuses a conversation of more than one role.",
        lambda asked: len({message.role for message in asked.messages}) > 1,
    ),
    Fault(
        name="error/status",
        sentence="Answers 500 to every request that is at fault.",
        breaks=("error/status",),
        refusal=_all_500,
    ),
    Fault(
        name="error/json",
        sentence="Leaves the last brace out of every refusal.",
        breaks=("error/json",),
        refusal=in_both(lambda answer: with_body(answer, lambda body: body[:-1])),
    ),
    Fault(
        name="error/schema",
        sentence="Writes the code of an error as a number.",
        breaks=("error/schema",),
        refusal=lambda answer, _: with_body(
            answer, lambda body: body.replace(b'"code":null', b'"code":%d' % answer.status)
        ),
    ),
    Fault(
        name="error/content-type",
        sentence="Refuses with a line of plain text.",
        breaks=("error/content-type",),
        refusal=in_both(_plain_text),
    ),
)
