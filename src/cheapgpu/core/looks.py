"""Exchanges that called for an answer and got one, as those look at them who compare several."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cheapgpu.core import strict_json
from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import Finding, Judgement, Outcome
from cheapgpu.core.messages import Usage
from cheapgpu.core.request import ChatRequest, InputMessage, decode_request
from cheapgpu.core.stream_verifier import StreamVerifier


@dataclass(frozen=True)
class Look:
    """One exchange that called for an answer, and what it gave."""

    index: int
    exchange: Exchange
    judgement: Judgement
    request: ChatRequest

    @property
    def usage(self) -> Usage | None:
        """The usage that was stated, whatever else is wrong; None if the answer was cut short."""
        return None if self.judgement.unseen else self.judgement.usage

    @cached_property
    def text(self) -> str:
        """The text that was answered, as far as it can be read."""
        if self.request.stream:
            events = StreamVerifier().feed(self.exchange.body)
            return "".join(event.content for event in events if event.text)
        value: Any = strict_json.decode(self.exchange.body)
        try:
            content = value["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            content = None
        return content if isinstance(content, str) else ""

    @property
    def prompt(self) -> str:
        """The text of all messages."""
        return "\n".join(message.content for message in self.request.messages)

    @property
    def question(self) -> tuple[tuple[InputMessage, ...], int]:
        """What was asked, but for how the answer should come."""
        return tuple(self.request.messages), self.request.max_completion_tokens


def looks_at(exchanges: Sequence[Exchange], judgements: Sequence[Judgement]) -> list[Look]:
    """Return those of the exchanges that called for an answer and were given one, in order."""
    return [
        Look(index, exchange, judgement, request)
        for index, (exchange, judgement) in enumerate(zip(exchanges, judgements, strict=True))
        if (request := _asked(exchange)) is not None
    ]


def advice_of(rule: str, *, holds: bool, expected: str, observed: str) -> Finding:
    """Return what was seen of a rule that is no more than advice."""
    outcome = Outcome.PASS if holds else Outcome.ADVICE
    return Finding(rule=rule, outcome=outcome, expected=expected, observed=observed)


def _asked(exchange: Exchange) -> ChatRequest | None:
    if exchange.request is None or exchange.head is None or exchange.head.status != 200:
        return None
    if (exchange.credential, exchange.model) != ("valid", "known"):
        return None
    request = decode_request(exchange.request.body)
    return request if isinstance(request, ChatRequest) else None
