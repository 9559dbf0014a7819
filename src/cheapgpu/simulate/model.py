"""The scripted model: the same messages always get the same text and the same counts."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Final

from cheapgpu.core.messages import FinishReason
from cheapgpu.core.request import InputMessage

#: One entry is one token; no token holds more than one word.
_WORDS: Final = (
    "rain", "falls", "clouds", "rise", "rivers", "run", "to", "the", "sea", "and", "slowly", "over",
    "hills", "where", "water", "stays", "cold", "until", "it", "warms",
)  # fmt: skip
#: Two bytes, three bytes, four bytes, a combining accent, and a sequence of several characters.
_MULTI_BYTE: Final = ("café", "雨", "🌧", "ne\u0301ve", "☔\ufe0f", "вода")
#: Every so many tokens one is of several bytes.
_MULTI_BYTE_EVERY: Final = 7
#: Tokens for each word of the last message; then the model has said all it has to say.
_TOKENS_PER_WORD: Final = 15
#: Words of the last message that are repeated, if they hold a digit; at most so many.
_REPEATED: Final = 8
_WITH_DIGIT: Final = re.compile(r"\w*\d\w*")
#: A piece of a prompt that counts as one token: a word, or eight characters of a long one.
_PIECE: Final = re.compile(r"\S{1,8}")
#: What a template would add for each message, in tokens.
_MESSAGE_TOKENS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """What the model said and what it counted."""

    #: The text, one entry for each token.
    pieces: tuple[str, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)

    @property
    def usage(self) -> dict[str, int]:
        """The counts as the profile reports them."""
        return usage(self.prompt_tokens, self.completion_tokens)


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """A usage object whose total is the sum (profile, "Usage and abnormal termination")."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def speak(messages: Sequence[InputMessage], limit: int) -> Speech:
    """Answer messages with at most `limit` tokens.

    The text is chosen by a hash of the messages, after the words of the last one that hold a digit:
    so an answer shows which request it belongs to. It ends by itself after fifteen tokens for each
    word of the last message (`stop`), or at the limit (`length`).
    """
    said = messages[-1].content if messages else ""
    wanted = max(1, len(said.split())) * _TOKENS_PER_WORD
    pieces = tuple(islice(_pieces(messages, said, wanted), min(wanted, limit)))
    return Speech(
        pieces=pieces,
        finish_reason="length" if wanted > limit else "stop",
        prompt_tokens=prompt_tokens(messages),
        completion_tokens=len(pieces),
    )


def prompt_tokens(messages: Sequence[InputMessage]) -> int:
    """Count a prompt: repeatable, the same in both modes, never less for a longer text."""
    return sum(_MESSAGE_TOKENS + len(_PIECE.findall(message.content)) for message in messages)


def _pieces(messages: Sequence[InputMessage], said: str, wanted: int) -> Iterator[str]:
    seed = "\n".join(f"{message.role}: {message.content}" for message in messages)
    chance = hashlib.shake_256(seed.encode(errors="surrogatepass")).digest(wanted)
    repeated = _WITH_DIGIT.findall(said)[:_REPEATED]
    for number, byte in zip(count(), chance, strict=False):
        if number < len(repeated):
            word = repeated[number]
        elif number % _MULTI_BYTE_EVERY == _MULTI_BYTE_EVERY - 1:
            word = _MULTI_BYTE[byte % len(_MULTI_BYTE)]
        else:
            word = _WORDS[byte % len(_WORDS)]
        yield f" {word}" if number else word
