"""Judges what only several exchanges can show together: `service/`, `honesty/`, and replayed text.

Everything here is advice, or tells that a pass was not one, or that a fail was none: counts and
texts of a model cannot prove a fault, only make it unlikely that they are right. The numbers are
shown, so that a reader can disagree. Only the bytes of requests and answers, their order and their
times are read.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import (
    ERROR_REPORTED,
    Finding,
    Judgement,
    Outcome,
    exchange_outcome,
    worst,
)
from cheapgpu.core.looks import Look, advice_of, looks_at
from cheapgpu.core.messages import Usage
from cheapgpu.core.request import ChatRequest, InputMessage
from cheapgpu.core.service import judge_service

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
_INCREMENTAL: Final = "stream/incremental"

#: Counts the tokens of a text as a model's tokenizer does.
CountTokens = Callable[[str], int]


def judge_across(
    exchanges: Sequence[Exchange],
    judgements: Sequence[Judgement],
    count_tokens: CountTokens | None = None,
) -> tuple[Judgement, ...]:
    """Return the judgements with what the exchanges show together, each at the later exchange.

    `exchanges` and `judgements` are in the order in which the requests were sent. `count_tokens` is
    the model's own tokenizer, if it is at hand.
    """
    looks = looks_at(exchanges, judgements)
    replayed = list(_replayed(looks))
    # Of each rule one finding is kept at each exchange, the worst.
    found: dict[tuple[int, str], Finding] = {}
    for index, finding in (
        *judge_service(exchanges, looks),
        *_prompts(looks),
        *_limits(looks),
        *replayed,
        *_shown_elsewhere(looks, {index for index, _ in replayed}),
        *(_recounted(looks, count_tokens) if count_tokens is not None else ()),
    ):
        of_rule = found.setdefault((index, finding.rule), finding)
        if finding.outcome > of_rule.outcome:
            found[index, finding.rule] = finding
    added: dict[int, list[Finding]] = {}
    for (index, _), finding in found.items():
        added.setdefault(index, []).append(finding)
    return tuple(
        _with(judgement, exchange, added[index]) if index in added else judgement
        for index, (exchange, judgement) in enumerate(zip(exchanges, judgements, strict=True))
    )


def _with(judgement: Judgement, exchange: Exchange, found: list[Finding]) -> Judgement:
    own = judgement.findings
    outcome = judgement.outcome
    if any(finding.rule == _INCREMENTAL for finding in found):
        # A pass that another exchange puts in doubt is none, and so is a fail.
        own = tuple(finding for finding in own if finding.rule != _INCREMENTAL)
        stopped = bool(judgement.unseen) or exchange.ending == "stopped"
        failed = judgement.unseen == ERROR_REPORTED
        outcome = exchange_outcome(own, failed=failed, stopped=stopped)
    findings = (*own, *found)
    return replace(judgement, findings=findings, rules=worst(findings), outcome=outcome)


def _prompts(looks: Sequence[Look]) -> Iterator[tuple[int, Finding]]:
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
                advice_of(
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


def _limits(looks: Sequence[Look]) -> Iterator[tuple[int, Finding]]:
    """Whether text, usage, finish reason and limit fit together in one complete answer."""
    for look in looks:
        usage = look.usage
        if usage is None:
            continue
        limit = look.request.max_completion_tokens
        words = len(look.text.split())
        yield (
            look.index,
            advice_of(
                "honesty/limit-respected",
                holds=words <= limit,
                expected=f"at most {limit} words: no token holds more than one",
                observed=f"{words} words",
            ),
        )
        if look.judgement.finish_reason == "length":
            yield (
                look.index,
                advice_of(
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


def _plausible(look: Look, usage: Usage) -> Finding:
    text = len(look.text.encode())
    prompt = len(look.prompt.encode())
    most_prompt = prompt + _TEMPLATE_TOKENS * len(look.request.messages)
    most_text = text + _SILENT_TOKENS
    holds = usage.prompt_tokens <= most_prompt and (
        0 < usage.completion_tokens <= most_text if text else usage.completion_tokens <= most_text
    )
    finding = advice_of(
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


def _recounted(looks: Sequence[Look], count_tokens: CountTokens) -> Iterator[tuple[int, Finding]]:
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
                advice_of(
                    "honesty/tokens-as-counted",
                    holds=abs(usage.completion_tokens - counted) <= slack,
                    expected=f"{counted} completion tokens by the tokenizer, {slack} more or less",
                    observed=str(usage.completion_tokens),
                ),
            )


def _replayed(looks: Sequence[Look]) -> Iterator[tuple[int, Finding]]:
    """Whether a stream began only when a plain answer to the same question would have been whole.

    Profile, "SSE streaming": a final response wrapped in a stream is insufficient evidence of
    incremental delivery. Replayed in small pieces it looks incremental by itself; beside the plain
    answer it does not.
    """
    plain = {
        look.question: look
        for look in looks
        if not look.request.stream and look.judgement.outcome == "complete"
    }
    for look in looks:
        other = plain.get(look.question)
        if other is not None and not _as_long(other, look):
            continue
        passed = look.judgement.rules.get(_INCREMENTAL) is Outcome.PASS
        if other is None or not passed:
            continue
        first = look.judgement.notes.get("first_content_ms", 0.0)
        whole = other.judgement.notes.get("duration_ms", 0.0)
        if first - 1000 * look.exchange.lag >= _REPLAYED * whole > 0:
            yield (
                look.index,
                Finding(
                    rule=_INCREMENTAL,
                    outcome=Outcome.UNKNOWN,
                    expected="text well before a plain answer would have been whole",
                    observed=(
                        f"the first text came after {first / 1000:.3f} s; {other.exchange.case},"
                        f" the same question, was answered whole in {whole / 1000:.3f} s"
                    ),
                ),
            )


def _as_long(plain: Look, stream: Look) -> bool:
    """Whether a plain answer took tokens enough to be compared: at least half of the stream's."""
    if plain.usage is None or stream.usage is None:
        return False
    return 2 * plain.usage.completion_tokens >= stream.usage.completion_tokens


def _shown_elsewhere(
    looks: Sequence[Look], doubted: Collection[int]
) -> Iterator[tuple[int, Finding]]:
    """Take back that a stream was held back where another one showed increments.

    An endpoint that holds text back does so in every stream. What came at once only here may have
    been held up on its way: by a lost packet, or by a busy machine whose lag was not recorded.
    """
    outcomes = [(look, look.judgement.rules.get(_INCREMENTAL)) for look in looks]
    shown = (
        look for look, outcome in outcomes if outcome is Outcome.PASS and look.index not in doubted
    )
    other = next(shown, None)
    if other is None:
        return
    for look, outcome in outcomes:
        if outcome is Outcome.FAIL:
            fault = next(f for f in look.judgement.findings if f.rule == _INCREMENTAL)
            observed = f"{fault.observed}, while {other.exchange.case} came as it was made"
            yield look.index, replace(fault, outcome=Outcome.UNKNOWN, observed=observed)
