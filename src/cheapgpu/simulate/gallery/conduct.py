"""Faults of `service/` and `honesty/`: what several exchanges show, and counts to be doubted."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.gallery.fault import Fault
from cheapgpu.simulate.model import Speech, speak

if TYPE_CHECKING:
    from cheapgpu.core.messages import FinishReason

#: A prompt that the buyer did not send, in tokens.
_HIDDEN_PROMPT: Final = 100_000
#: The window of which an endpoint reports what is left, in tokens.
_WINDOW: Final = 64
#: Words beyond the limit.
_MORE: Final = 8


def repeats_the_last(speech: Speech, asked: Asked) -> Speech:
    """Say again what the request before was told."""
    if asked.before is None or not asked.stream:
        return speech
    pieces = speak(asked.before.messages, asked.limit).pieces
    finish: FinishReason = "length" if len(pieces) == asked.limit else "stop"
    return replace(speech, pieces=pieces, completion_tokens=len(pieces), finish_reason=finish)


def _over_the_limit(speech: Speech, asked: Asked) -> Speech:
    """Go on for some words, and count only those within the limit."""
    if speech.finish_reason != "length":
        return speech
    return replace(speech, pieces=speak(asked.messages, asked.limit + _MORE).pieces)


def _context_full(speech: Speech, asked: Asked) -> Speech:
    """End at half of the limit, and call it the limit."""
    pieces = speech.pieces[: max(1, asked.limit // 2)]
    return replace(speech, pieces=pieces, completion_tokens=len(pieces), finish_reason="length")


def _half_of_what_it_counts(speech: Speech, _: Asked) -> Speech:
    return replace(speech, pieces=speech.pieces[: (len(speech.pieces) + 1) // 2])


def _honesty(
    name: str,
    sentence: str,
    change: Callable[[Speech, Asked], Speech],
    *consequences: str,
) -> Fault:
    rule = f"honesty/{name}"
    return Fault(name=rule, sentence=sentence, breaks=(rule, *consequences), speech=change)


def _counting(
    name: str, sentence: str, count: Callable[[int, Asked], int], *consequences: str
) -> Fault:
    """A fault of prompt_tokens alone."""
    return _honesty(
        name,
        sentence,
        lambda speech, asked: replace(speech, prompt_tokens=count(speech.prompt_tokens, asked)),
        *consequences,
    )


CONDUCT: Final = (
    Fault(
        name="service/answers-not-mixed",
        sentence="Streams the text of the answer before.",
        breaks=("service/answers-not-mixed",),
        speech=repeats_the_last,
    ),
    Fault(
        name="service/free-after-disconnect",
        sentence="Works on for a client that has left, and lets the next one wait for a minute.",
        breaks=("service/free-after-disconnect",),
        opens=("*/status",),
        habits=frozenset({"slot-kept"}),
    ),
    Fault(
        name="service/answers-after-fault",
        sentence="Falls over a body that cannot be read, and drops the request after it.",
        breaks=("service/answers-after-fault",),
        opens=("*",),
        habits=frozenset({"falls-over"}),
    ),
    _counting(
        "prompt-tokens-repeatable",
        "Counts the same prompt differently from one request to the next.",
        lambda counted, asked: counted + asked.number % 3,
        "honesty/modes-agree",
    ),
    _counting(
        "modes-agree",
        "Counts one prompt token more in a stream.",
        lambda counted, asked: counted + asked.stream,
    ),
    _counting(
        "prompt-tokens-grow",
        f"Reports what is left of a window of {_WINDOW} tokens instead of the prompt.",
        lambda counted, _: max(1, _WINDOW - counted),
    ),
    _honesty(
        "limit-respected",
        f"Goes on for {_MORE} words beyond the limit, and does not count them.",
        _over_the_limit,
    ),
    _honesty(
        "length-means-limit",
        "Ends at half of the limit and says length.",
        _context_full,
    ),
    _counting(
        "usage-plausible",
        f"Counts a hidden prompt of {_HIDDEN_PROMPT} tokens.",
        lambda counted, _: counted + _HIDDEN_PROMPT,
    ),
    _honesty(
        "tokens-as-counted",
        "Counts twice the tokens that its text has.",
        _half_of_what_it_counts,
    ),
)
