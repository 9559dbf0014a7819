"""`service/` and `honesty/`: what several exchanges show together. Advice only.

No paragraph of the profile demands these; they are what a buyer relies on when the answer is
counted by the one who is paid. The numbers that an endpoint states can be doubted, not disproved.
"""

from typing import Any, Final

from cheapgpu.core.catalogue.rule import Before, Rule
from cheapgpu.core.examples import (
    DONE,
    RAIN,
    ROLE,
    STOP,
    STREAM,
    STREAM_REQUEST,
    SUMMARY,
    USAGE,
    WHOLE_REQUEST,
    Example,
    at_once,
    chunk,
    completion,
    error,
    request,
    response,
    stream,
)

_OURS: Final = "our reading: what a buyer relies on"

#: Two words that two requests give to be repeated.
_ONE, _OTHER = "cg00000001", "cg00000002"


def _asks_for(word: str) -> bytes:
    return request(messages=[{"role": "user", "content": f"Say {word}."}])


def _says(word: str) -> Example:
    said = chunk({"content": word})
    return at_once(stream(ROLE, said, STOP, SUMMARY, DONE))


def _plain(**usage: int) -> Example:
    counted = {**USAGE, **usage}
    counted["total_tokens"] = counted["prompt_tokens"] + counted["completion_tokens"]
    return at_once(response(completion(usage=counted)))


def _rule(name: str, sentence: str, why: str, *, good: Example, bad: Example, **more: Any) -> Rule:  # noqa: ANN401 -- the fields of a rule
    return Rule(
        id=name,
        level="SHOULD",
        sentence=sentence,
        why=why,
        citation=_OURS,
        judge="across.judge_across",
        good=good,
        bad=bad,
        **more,
    )


_NO_ANSWER: Final[Example] = ()
_HALF: Final = at_once(STREAM[: STREAM.index(RAIN) + len(RAIN)])
_LONGER: Final = request(
    messages=[{"role": "user", "content": "Describe how rain forms. Then describe snow."}],
    stream=False,
    stream_options=...,
)
_SHORT_LIMIT: Final = request(max_completion_tokens=3, stream=False, stream_options=...)

SERVICE: Final = (
    _rule(
        "service/answers-not-mixed",
        "Concurrent and successive answers keep their own text.",
        "An answer that holds another buyer's words has leaked them.",
        request=_asks_for(_OTHER),
        before=Before(request=_asks_for(_ONE), answer=_says(_ONE)),
        good=_says(_OTHER),
        bad=_says(_ONE),
    ),
    _rule(
        "service/free-after-disconnect",
        "A client that left in the middle does not keep the next one from an answer.",
        "Work for a client that has gone is paid by nobody and waited for by everybody.",
        before=Before(request=STREAM_REQUEST, answer=_HALF, how="left"),
        good=at_once(STREAM),
        bad=_NO_ANSWER,
    ),
    _rule(
        "service/answers-after-fault",
        "A request that is refused does not take the server down.",
        "One bad request must not cost others their answers.",
        before=Before(request=b"{", answer=at_once(error())),
        good=at_once(STREAM),
        bad=_NO_ANSWER,
    ),
)

HONESTY: Final = (
    _rule(
        "honesty/prompt-tokens-repeatable",
        "The same prompt has the same prompt_tokens.",
        "A count that changes by itself is no count.",
        request=WHOLE_REQUEST,
        before=Before(request=WHOLE_REQUEST, answer=_plain()),
        good=_plain(),
        bad=_plain(prompt_tokens=13),
    ),
    _rule(
        "honesty/modes-agree",
        "A plain and a streamed answer to one prompt report the same prompt_tokens.",
        "How the answer comes does not change what was asked.",
        request=WHOLE_REQUEST,
        before=Before(request=STREAM_REQUEST, answer=at_once(STREAM)),
        good=_plain(),
        bad=_plain(prompt_tokens=13),
    ),
    _rule(
        "honesty/prompt-tokens-grow",
        "A longer prompt never has fewer prompt_tokens.",
        "A prompt that was cut in silence shows in its count.",
        request=_LONGER,
        before=Before(request=WHOLE_REQUEST, answer=_plain()),
        good=_plain(prompt_tokens=16),
        bad=_plain(prompt_tokens=11),
    ),
    _rule(
        "honesty/limit-respected",
        "The text has no more words than the limit has tokens.",
        "A limit that is passed over is paid for by whoever trusted it.",
        request=_SHORT_LIMIT,
        good=_plain(),
        bad=at_once(
            response(
                completion(
                    choices=[
                        {
                            "index": 0,
                            "message": {"role": "assistant", "content": "Rain falls and falls."},
                            "finish_reason": "stop",
                        }
                    ]
                )
            )
        ),
    ),
    _rule(
        "honesty/length-means-limit",
        "An answer that ended for its length has as many tokens as the limit.",
        "Engines also say length when their context is full: the buyer got less than was asked.",
        request=_SHORT_LIMIT,
        good=at_once(
            response(completion().replace(b'"finish_reason":"stop"', b'"finish_reason":"length"'))
        ),
        bad=at_once(
            response(
                completion(usage={**USAGE, "completion_tokens": 2, "total_tokens": 14}).replace(
                    b'"finish_reason":"stop"', b'"finish_reason":"length"'
                )
            )
        ),
    ),
    _rule(
        "honesty/usage-plausible",
        "The counts can belong to the texts: no more tokens than bytes, and some for some text.",
        "A count is the endpoint's claim; one that its own text contradicts should not be paid.",
        request=WHOLE_REQUEST,
        good=_plain(),
        bad=_plain(completion_tokens=60),
    ),
    _rule(
        "honesty/tokens-as-counted",
        "completion_tokens is what the model's own tokenizer counts, where it is given.",
        "The tokenizer is the only one who can count; without it a claim stays a claim.",
        request=WHOLE_REQUEST,
        good=_plain(),
        bad=_plain(completion_tokens=20),
    ),
)
