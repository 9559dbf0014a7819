"""Faults of `whole/`: the plain answer."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from cheapgpu.simulate.answer import Answer, with_body
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.gallery.coding import gzipped
from cheapgpu.simulate.gallery.fault import Fault, in_plain
from cheapgpu.simulate.model import usage


def _head(name: str, sentence: str, change: Callable[[Answer], Answer]) -> Fault:
    rule = f"whole/{name}"
    return Fault(name=rule, sentence=sentence, breaks=(rule,), answer=in_plain(change))


def _body(
    name: str,
    sentence: str,
    change: Callable[[dict[str, Any], Asked], dict[str, Any]],
) -> Fault:
    rule = f"whole/{name}"
    return Fault(name=rule, sentence=sentence, breaks=(rule,), completion=change)


def _beyond_limit(completion: dict[str, Any], asked: Asked) -> dict[str, Any]:
    counted = usage(completion["usage"]["prompt_tokens"], asked.limit + 1)
    choice = {**completion["choices"][0], "finish_reason": "stop"}
    return {**completion, "choices": [choice], "usage": counted}


def _wrong_sum(completion: dict[str, Any], _: Asked) -> dict[str, Any]:
    counted = completion["usage"]
    return {**completion, "usage": {**counted, "total_tokens": counted["total_tokens"] + 84}}


def _cut(answer: Answer) -> Answer:
    """The announced length stays; the last bytes do not come."""
    length = sum(len(piece.data) for piece in answer.body)
    return replace(with_body(answer, lambda body: body[:-20]), announced=length, ending="cut")


ANSWERING: Final = (
    _head("status", "Answers 201.", lambda answer: replace(answer, status=201)),
    _head(
        "content-type",
        "Declares a plain answer text/plain.",
        lambda answer: replace(answer, headers=(("content-type", "text/plain"),)),
    ),
    _head("content-encoding", "Compresses a plain answer without being asked to.", gzipped),
    _head("body-complete", "Closes the connection 20 bytes before the announced end.", _cut),
    _head(
        "json",
        "Names created twice in one object.",
        lambda answer: with_body(answer, lambda body: body[:-1] + b',"created":1}'),
    ),
    _body(
        "schema",
        "Leaves usage out of a plain answer.",
        lambda completion, _: {n: v for n, v in completion.items() if n != "usage"},
    ),
    _body(
        "model-echoed",
        "Names another model than the one that was asked.",
        lambda completion, _: {**completion, "model": "another-model"},
    ),
    _body("usage-adds-up", "States a total that is not the sum.", _wrong_sum),
    _body(
        "usage-within-limit", "Counts one token more than the limit that was sent.", _beyond_limit
    ),
)
