"""Whether a long stream was long enough to tell something, and what to ask if it was not.

Some faults show only in a stream that lasts: llama.cpp writes the time of day into every chunk, and
a stream that is over within one second looks right. Asking again is a new question, with another
text and a larger limit, recorded as a case of its own; it is no retry, and the first answer stands.
"""

from dataclasses import replace
from typing import Final

from cheapgpu.check.answered import STREAM_LONG, WHOLE_LONG
from cheapgpu.check.case import Case, asking, said
from cheapgpu.core.exchange import STOPPED_BY_US, Exchange
from cheapgpu.core.findings import Judgement, Outcome
from cheapgpu.core.streaming import LONG_EVENTS

#: Seconds for which a long stream must have gone on.
LONG_SECONDS: Final = 1.0
#: The most tokens that one more question asks for.
MOST_TOKENS: Final = 3072
#: How much more is asked for than the last answer's speed calls for.
_MARGIN: Final = 1.5

#: What is asked next: a model that stopped early may go on with another task.
_QUESTIONS: Final = (
    said(
        "Write out the whole numbers from one to one thousand in English words, separated by "
        "commas. Do not stop before you have reached one thousand."
    ),
    said(
        "Tell a very long story of a river from its spring to the sea, with every village, bridge "
        "and mill on its way. Take many chapters, and do not hurry."
    ),
)


def is_long(exchange: Exchange, judgement: Judgement, *, seconds: float = LONG_SECONDS) -> bool:
    """Whether text came in enough events, and the stream went on for long enough."""
    events = judgement.notes.get("content_events", 0)
    return events >= LONG_EVENTS and _span(exchange, judgement) > seconds


def next_question(
    case: Case,
    exchange: Exchange,
    judgement: Judgement,
    *,
    tokens_left: int,
    seconds: float = LONG_SECONDS,
) -> Case | None:
    """What to ask after a long stream that was not long; None where asking would tell no more.

    That is so after a refusal, after an answer without text or one that we cut, after the last
    question, where `tokens_left` (of the run, or below the ceiling) leave no room for more, and
    where the model's context did not: a longer limit would be refused.
    """
    number = _number(case)
    head = exchange.head
    if (
        head is None
        or head.status != 200
        or not (judgement.notes.get("content_events") or judgement.notes.get("reasoning"))
        or exchange.closed.how in STOPPED_BY_US
        or number > len(_QUESTIONS)
        or is_long(exchange, judgement, seconds=seconds)
    ):
        return None
    events = max(1, judgement.notes["content_events"])
    span = max(0.001, _span(exchange, judgement))
    factor = max(LONG_EVENTS / events, seconds / span, 1.0) * _MARGIN
    wanted = 1 << (int(case.tokens * factor) - 1).bit_length()
    tokens = min(wanted, MOST_TOKENS, tokens_left)
    if tokens < LONG_EVENTS:
        return None
    if judgement.finish_reason == "length":
        usage = judgement.usage
        context_full = usage is not None and usage.completion_tokens < case.tokens
        if context_full or tokens <= case.tokens:
            return None
    return replace(
        STREAM_LONG,
        name=f"{STREAM_LONG.name}-{number + 1}",
        purpose="Another long answer, since the one before was too short to tell.",
        body=asking(_QUESTIONS[number - 1]),
        tokens=tokens,
    )


def plain_twin(case: Case) -> Case:
    """The question of a further long stream, with its limit, to be answered plainly."""
    messages = _QUESTIONS[_number(case) - 2]
    return replace(WHOLE_LONG, body=asking(messages, stream=False), tokens=case.tokens)


def moment_for(more: Case, case: Case, exchange: Exchange, *, time_of_day: float) -> float:
    """Seconds to wait before `more` is sent, so that a second of the clock begins within it.

    A fast model's longest stream can be over within a second. Where the clocks of both sides agree,
    a time of day that is written anew into each chunk is then still seen to change. Judged by the
    speed of the answer to `case`; 0 for a stream that will last longer than a second anyway.
    """
    start, end = exchange.reads[0].t, exchange.reads[-1].t
    span = (end - start) * more.tokens / case.tokens
    return (1.0 - time_of_day - start - span / 2) % 1.0 if span < 1.0 else 0.0


def _number(case: Case) -> int:
    return int(case.name.removeprefix(STREAM_LONG.name).removeprefix("-") or "1")


def _span(exchange: Exchange, judgement: Judgement) -> float:
    """How long the text was in the making, in seconds, as far as its arrival shows it."""
    held_back = judgement.rules.get("stream/incremental") is Outcome.FAIL
    first = exchange.sent or 0.0 if held_back else exchange.reads[0].t
    return exchange.reads[-1].t - first
