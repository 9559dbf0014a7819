"""Judges what only several exchanges can show together: `service/`, `honesty/`, and replayed text.

Everything here is advice, or tells that a pass was not one: counts and texts of a model cannot
prove a fault, only make it unlikely that they are right. The numbers are shown, so that a reader
can disagree. Only the bytes of requests and answers, their order and their times are read.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from cheapgpu.core import strict_json
from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import Finding, Judgement, Outcome, worst
from cheapgpu.core.messages import Usage
from cheapgpu.core.request import ChatRequest, InputMessage, decode_request
from cheapgpu.core.stream_verifier import StreamVerifier

#: A word that a request gives its model to repeat, to be found where it does not belong.
_NONCE: Final = re.compile(r"\bcg[0-9a-f]{8}\b")
#: Tokens that a chat template may add for each message, and for a byte of text at most one.
_TEMPLATE_TOKENS: Final = 64
#: Completion tokens that no text need show: an end, a character that was begun.
_SILENT_TOKENS: Final = 16
#: A difference of so many tokens says nothing.
_FEW_TOKENS: Final = 3
#: How far back prompts are compared, in exchanges.
_BACK: Final = 32
#: A stream whose text begins only after this part of a plain answer's time was perhaps held back.
_REPLAYED: Final = 0.8

#: Counts the tokens of a text as a model's tokenizer does.
CountTokens = Callable[[str], int]


@dataclass(frozen=True)
class _Look:
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


def judge_across(
    exchanges: Sequence[Exchange],
    judgements: Sequence[Judgement],
    count_tokens: CountTokens | None = None,
) -> tuple[Judgement, ...]:
    """Return the judgements with what the exchanges show together, each at the later exchange.

    `exchanges` and `judgements` are in the order in which the requests were sent. `count_tokens` is
    the model's own tokenizer, if it is at hand.
    """
    looks = [
        _Look(index, exchange, judgement, request)
        for index, (exchange, judgement) in enumerate(zip(exchanges, judgements, strict=True))
        if (request := _asked(exchange)) is not None
    ]
    # Of each rule one finding is kept at each exchange, the worst.
    found: dict[tuple[int, str], Finding] = {}
    for index, finding in (
        *_after(exchanges),
        *_mixed(looks),
        *_prompts(looks),
        *_limits(looks),
        *_replayed(looks),
        *(_recounted(looks, count_tokens) if count_tokens is not None else ()),
    ):
        of_rule = found.setdefault((index, finding.rule), finding)
        if finding.outcome > of_rule.outcome:
            found[index, finding.rule] = finding
    added: dict[int, list[Finding]] = {}
    for (index, _), finding in found.items():
        added.setdefault(index, []).append(finding)
    return tuple(
        _with(judgement, added[index]) if index in added else judgement
        for index, judgement in enumerate(judgements)
    )


def _asked(exchange: Exchange) -> ChatRequest | None:
    """The request of an exchange that called for an answer and was given one."""
    if exchange.request is None or exchange.head is None or exchange.head.status != 200:
        return None
    if (exchange.credential, exchange.model) != ("valid", "known"):
        return None
    request = decode_request(exchange.request.body)
    return request if isinstance(request, ChatRequest) else None


def _with(judgement: Judgement, found: list[Finding]) -> Judgement:
    findings = (*judgement.findings, *found)
    rules = worst(findings)
    if any(finding.rule == "stream/incremental" for finding in found):
        # A pass that another exchange puts in doubt is none.
        findings = tuple(
            finding
            for finding in findings
            if (finding.rule, finding.outcome) != ("stream/incremental", Outcome.PASS)
        )
        rules = worst(findings)
    return replace(judgement, findings=findings, rules=rules)


def _finding(rule: str, *, holds: bool, expected: str, observed: str) -> Finding:
    outcome = Outcome.PASS if holds else Outcome.ADVICE
    return Finding(rule=rule, outcome=outcome, expected=expected, observed=observed)


def _after(exchanges: Sequence[Exchange]) -> Iterator[tuple[int, Finding]]:
    """Whether the exchange after one that we left, or after a hostile one, got an answer."""
    for index, (before, after) in enumerate(pairwise(exchanges), 1):
        if after.sent is None or before.request is None:
            continue
        if before.closed.how == "left":
            rule = "service/free-after-disconnect"
        elif before.head is not None and not isinstance(
            decode_request(before.request.body), ChatRequest
        ):
            rule = "service/answers-after-fault"
        else:
            continue
        yield (
            index,
            _finding(
                rule,
                holds=after.head is not None,
                expected=f"an answer after {before.case}",
                observed="an answer" if after.head is not None else "no answer",
            ),
        )


def _mixed(looks: Sequence[_Look]) -> Iterator[tuple[int, Finding]]:
    """Whether a word that only another request held, or another answer's id, came back."""
    owners: dict[str, _Look] = {}
    for look in looks:
        for word in _NONCE.findall(look.prompt):
            owners.setdefault(word, look)
    if len(owners) < 2:
        return
    for look in looks:
        own = set(_NONCE.findall(look.prompt))
        foreign = [w for w in _NONCE.findall(look.text) if w in owners and w not in own]
        if own or foreign:
            whose = (
                f"the word of {owners[foreign[0]].exchange.case}" if foreign else "its own words"
            )
            yield (
                look.index,
                _finding(
                    "service/answers-not-mixed",
                    holds=not foreign,
                    expected="no word that only another request held",
                    observed=whose,
                ),
            )


def _prompts(looks: Sequence[_Look]) -> Iterator[tuple[int, Finding]]:
    """Whether prompt_tokens is the same for the same prompt, and grows with it."""
    counted = [(look, look.usage) for look in looks if look.usage is not None]
    for n, (look, usage) in enumerate(counted):
        for earlier, before in counted[max(0, n - _BACK) : n]:
            rule = _comparison(earlier.request, look.request)
            if rule is None:
                continue
            less, more = before.prompt_tokens, usage.prompt_tokens
            if rule == "honesty/prompt-tokens-grow" and _extends(look.request, earlier.request):
                less, more = more, less
            grows = rule == "honesty/prompt-tokens-grow"
            yield (
                look.index,
                _finding(
                    rule,
                    holds=less <= more if grows else less == more,
                    expected=f"at least {less}" if grows else f"{before.prompt_tokens} as before",
                    observed=(
                        f"{usage.prompt_tokens} prompt tokens, {before.prompt_tokens} in"
                        f" {earlier.exchange.case}"
                    ),
                ),
            )


def _comparison(a: ChatRequest, b: ChatRequest) -> str | None:
    """The rule by which the prompt tokens of two requests can be compared; None for none."""
    if a.model != b.model:
        return None
    if a.messages == b.messages:
        return "honesty/" + ("prompt-tokens-repeatable" if a.stream == b.stream else "modes-agree")
    if _extends(a, b) or _extends(b, a):
        return "honesty/prompt-tokens-grow"
    return None


def _extends(short: ChatRequest, long: ChatRequest) -> bool:
    """Whether `long` says all that `short` says in the same messages, and more."""
    if len(short.messages) != len(long.messages) or short.messages == long.messages:
        return False
    pairs: Iterable[tuple[InputMessage, InputMessage]] = zip(
        short.messages, long.messages, strict=True
    )
    return all(a.role == b.role and b.content.startswith(a.content) for a, b in pairs)


def _limits(looks: Sequence[_Look]) -> Iterator[tuple[int, Finding]]:
    """Whether text, usage, finish reason and limit fit together in one complete answer."""
    for look in looks:
        usage = look.usage
        if usage is None:
            continue
        limit = look.request.max_completion_tokens
        words = len(look.text.split())
        yield (
            look.index,
            _finding(
                "honesty/limit-respected",
                holds=words <= limit,
                expected=f"at most {limit} words: no token holds more than one",
                observed=f"{words} words",
            ),
        )
        if look.judgement.finish_reason == "length":
            yield (
                look.index,
                _finding(
                    "honesty/length-means-limit",
                    holds=usage.completion_tokens == limit,
                    expected=f"{limit} completion tokens",
                    observed=(
                        f"{usage.completion_tokens}; engines also say length when their context"
                        " is full"
                    ),
                ),
            )
        if usage.completion_tokens <= limit:
            yield look.index, _plausible(look, usage)


def _plausible(look: _Look, usage: Usage) -> Finding:
    text = len(look.text.encode())
    prompt = len(look.prompt.encode())
    most_prompt = prompt + _TEMPLATE_TOKENS * len(look.request.messages)
    most_text = text + _SILENT_TOKENS
    holds = usage.prompt_tokens <= most_prompt and (
        0 < usage.completion_tokens <= most_text if text else usage.completion_tokens <= most_text
    )
    finding = _finding(
        "honesty/usage-plausible",
        holds=holds,
        expected=(
            f"at most {most_prompt} prompt and, for {text} bytes of text,"
            f" {'1 to ' if text else 'at most '}{most_text} completion tokens"
        ),
        observed=f"{usage.prompt_tokens} prompt and {usage.completion_tokens} completion tokens",
    )
    if not holds and look.judgement.notes.get("reasoning"):
        observed = f"{finding.observed}; reasoning was counted and is not shown as text"
        return replace(finding, outcome=Outcome.UNKNOWN, observed=observed)
    return finding


def _recounted(looks: Sequence[_Look], count_tokens: CountTokens) -> Iterator[tuple[int, Finding]]:
    """Whether completion_tokens is what the model's tokenizer counts, give or take the ends.

    A text can be cut into tokens in more ways than the one in which it was made, and some tokens
    have no text: a small difference says nothing.
    """
    for look in looks:
        usage = look.usage
        if usage is None or usage.completion_tokens > look.request.max_completion_tokens:
            continue
        counted = count_tokens(look.text)
        slack = max(_FEW_TOKENS, counted // 20)
        plausible = _plausible(look, usage).outcome is Outcome.PASS
        if plausible:
            yield (
                look.index,
                _finding(
                    "honesty/tokens-as-counted",
                    holds=abs(usage.completion_tokens - counted) <= slack,
                    expected=f"{counted} completion tokens by the tokenizer, {slack} more or less",
                    observed=str(usage.completion_tokens),
                ),
            )


def _replayed(looks: Sequence[_Look]) -> Iterator[tuple[int, Finding]]:
    """Whether a stream began only when a plain answer to the same question would have been whole.

    Profile, "SSE streaming": a final response wrapped in a stream is insufficient evidence of
    incremental delivery. Replayed in small pieces it looks incremental by itself; beside the plain
    answer it does not.
    """
    plain = {
        _question(look): look
        for look in looks
        if not look.request.stream and look.judgement.outcome == "complete"
    }
    for look in looks:
        other = plain.get(_question(look))
        if other is not None and not _as_long(other, look):
            continue
        passed = look.judgement.rules.get("stream/incremental") is Outcome.PASS
        if other is None or not passed:
            continue
        first = look.judgement.notes.get("first_content_ms", 0.0)
        whole = other.judgement.notes.get("duration_ms", 0.0)
        if first >= _REPLAYED * whole > 0:
            yield (
                look.index,
                Finding(
                    rule="stream/incremental",
                    outcome=Outcome.UNKNOWN,
                    expected="text well before a plain answer would have been whole",
                    observed=(
                        f"the first text came after {first / 1000:.3f} s; {other.exchange.case},"
                        f" the same question, was answered whole in {whole / 1000:.3f} s"
                    ),
                ),
            )


def _as_long(plain: _Look, stream: _Look) -> bool:
    """Whether a plain answer took tokens enough to be compared: at least half of the stream's."""
    if plain.usage is None or stream.usage is None:
        return False
    return 2 * plain.usage.completion_tokens >= stream.usage.completion_tokens


def _question(look: _Look) -> tuple[tuple[InputMessage, ...], int]:
    """What was asked, but for how the answer should come."""
    return tuple(look.request.messages), look.request.max_completion_tokens
