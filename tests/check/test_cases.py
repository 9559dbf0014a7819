"""The catalogue of cases: each sends what its name says."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from cheapgpu.check.case import NONCE, Case
from cheapgpu.check.cases import CASES, STREAM_LONG, WHOLE_LONG, catalogue, refusal
from cheapgpu.check.forecast import Forecast, forecast
from cheapgpu.check.plan import Plan
from cheapgpu.core import across
from cheapgpu.core.exchange import Closed, Exchange, Request
from cheapgpu.core.expectation import expectation
from cheapgpu.core.request import ChatRequest, decode_request
from cheapgpu.core.rules import RULES
from cheapgpu.wire.target import parse_target

MODEL = 'a/"quoted" model'
CEILING = 400
ALL = catalogue(ceiling=CEILING)
ANSWERED = [case for case in ALL if case.refused_by is None]
REFUSED = [case for case in ALL if case.refused_by is not None]

#: Rules that no request calls for: what an endpoint does by itself, and what a file adds.
UNASKED = {"honesty/tokens-as-counted"}


def called_for(case: Case, ceiling: int | None = CEILING) -> str | None:
    """The rule by which the request of a case must be refused, as core reads its bytes."""
    declared = (("content-type", case.content_type),) if case.content_type else ()
    request = Request(
        method="POST",
        url="http://127.0.0.1/",
        headers=declared,
        body=case.body(MODEL, case.tokens),
    )
    exchange = Exchange(
        case=case.name,
        credential=case.credential,
        model=case.model,
        request=request,
        closed=Closed(t=0.0, how="length"),
        ceiling=ceiling,
    )
    return expectation(exchange).rule


def by_name(name: str) -> Case:
    """A case of the catalogue."""
    return next(case for case in ALL if case.name == name)


def decoded(case: Case) -> ChatRequest:
    """The request of a case that must be answered."""
    request = decode_request(case.body(MODEL, case.tokens))
    assert isinstance(request, ChatRequest)
    return request


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_case_that_must_be_refused_breaks_the_rule_that_it_says(case: Case) -> None:
    """Core reads from the bytes of each case the very rule that the case is there for."""
    assert called_for(case) == case.refused_by


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.name)
def test_case_that_must_be_answered_is_within_the_profile(case: Case) -> None:
    """Each names the model of the run and the limit that it says it costs, in the mode it says."""
    assert called_for(case, ceiling=None) is None
    request = decoded(case)
    assert request.model == MODEL
    assert request.max_completion_tokens == case.tokens
    assert request.stream == case.stream
    if case.adjustable:
        fewer = decode_request(case.body(MODEL, 7))
        assert isinstance(fewer, ChatRequest)
        assert fewer.max_completion_tokens == 7


def fed() -> dict[str, list[str]]:
    """Rule → the cases that feed it."""
    target = parse_target("http://127.0.0.1/")
    plan = Plan(target=target, model=MODEL, key="the-key", cases=ALL, ceiling=CEILING)
    feeding: dict[str, list[str]] = {}
    for one in forecast(plan):
        for rule in one.rules:
            feeding.setdefault(rule, []).append(one.case.name)
    return feeding


def test_every_rule_has_its_case() -> None:
    """No rule of the registry is left without a request that can show whether it holds."""
    assert {rule.id for rule in RULES} - fed().keys() == UNASKED


@pytest.mark.parametrize("rule", [r for r in RULES if r.area == "refuse"], ids=lambda r: r.id)
def test_every_rule_of_requests_is_fed_by_its_own_example(rule: Any) -> None:
    """What a rule is explained with is what is asked: the same bytes but for model and limit."""
    name = rule.id.partition("/")[2]
    if name in ("unknown-model", "limit-over-ceiling"):  # made up in each run; known to the plan
        assert fed()[rule.id]
        return
    case = next(case for case in REFUSED if case.name in (name, f"with-{name}"))
    body = case.body("example-local-model", 1)
    limit = b'"max_completion_tokens":'
    assert body == rule.request.replace(limit + b"64", limit + b"1")


def test_boundary_integers_are_all_sent() -> None:
    """0, -1, 1.5, text, true, null, 2^53 and more are limits that are sent, as they are written."""
    written = set()
    for case in ALL:
        found = re.search(rb'"max_completion_tokens":([^,}]+)', case.body("m", case.tokens))
        if found and not case.name.startswith("json-"):
            written.add(found[1].decode())
    assert written >= {"0", "-1", "1.5", '"64"', "true", "false", "null", "[4]", "1e29"}
    assert written >= {str(2**53), "1e1", "1e3", "12.0", "1", str(CEILING + 1)}


def test_names_are_unique() -> None:
    """A report names cases: each name stands for one."""
    assert Counter(case.name for case in catalogue(ceiling=9, streams=8)).most_common(1)[0][1] == 1


def test_ceiling_adds_its_case_and_nothing_else() -> None:
    """A limit over the ceiling can be asked for only where the ceiling is known."""
    added = set(ALL) - set(CASES)
    assert [(case.name, case.refused_by) for case in added if case.beside == "refusals"] == [
        ("limit-over-ceiling", "refuse/limit-over-ceiling")
    ]


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        ("whole-cut", "whole-again", "honesty/prompt-tokens-repeatable"),
        ("stream-cut", "whole-cut", "honesty/modes-agree"),
        ("stream-one-token", "whole-one-token", "honesty/modes-agree"),
        ("whole-again", "whole-longer", "honesty/prompt-tokens-grow"),
    ],
)
def test_pairs_can_be_compared(first: str, second: str, rule: str) -> None:
    """Cases that are there to be compared differ in the one thing that the rule is about."""
    one, other = decoded(by_name(first)), decoded(by_name(second))
    assert across._comparison(one, other) == rule  # noqa: SLF001 -- the judge's own question
    assert by_name(first).feeds.count(rule) == by_name(second).feeds.count(rule) == 1


def test_plain_twin_of_the_long_stream_asks_the_same() -> None:
    """The times of stream-long and whole-long can be compared: one question, one limit."""
    stream, whole = decoded(STREAM_LONG), decoded(WHOLE_LONG)
    assert (stream.messages, stream.max_completion_tokens) == (
        whole.messages,
        whole.max_completion_tokens,
    )
    assert STREAM_LONG.tokens >= 256


def test_concurrent_streams_have_a_word_each() -> None:
    """Each stream that is under way with others is asked for a word that is replaced by its own."""
    streams = [case for case in catalogue(streams=5) if case.beside == "streams"]
    assert [case.name for case in streams] == [f"concurrent-{n}" for n in range(1, 6)]
    assert re.fullmatch(r"cg[0-9a-f]{8}", NONCE)
    assert all(case.body("m", 1).count(NONCE.encode()) == 1 for case in streams)


def test_unlimited_requests_are_left() -> None:
    """A request whose limit an endpoint may take for none is left when it is answered."""
    left = {case.name for case in REFUSED if case.leave_after == 0}
    assert left >= {"limit-missing", "limit-null", "limit-negative", "limit-unsafe"}
    for case in REFUSED:
        limits = re.findall(rb'"max_(?:completion_)?tokens":(\d+)', case.body("m", 1))
        asked = max(map(int, limits), default=0)
        assert case.leave_after == 0 or asked <= case.tokens


def test_multibyte_text_is_asked_for_in_both_writings() -> None:
    """Emoji, Chinese characters and combining marks stand as UTF-8 and as escapes."""
    plain, escaped = by_name("text-unicode"), by_name("text-escaped")
    assert decoded(plain).messages == decoded(escaped).messages
    assert escaped.body("m", 1).isascii()
    assert not plain.body("m", 1).isascii()
    text = json.loads(plain.body("m", 1))["messages"][0]["content"]
    assert {"雨", "\u0301", "\U0001f327"} <= set(text)


@pytest.mark.parametrize("rule", [rule.id for rule in RULES if rule.area in ("auth", "refuse")])
def test_every_rule_of_admission_can_be_a_case(rule: str) -> None:
    """The example of every rule on requests makes a case that calls for that rule."""
    wanted = "auth/wrong-refused" if rule == "auth/refused-before-inference" else rule
    if rule != "refuse/limit-over-ceiling":
        assert called_for(refusal("case", rule)) == wanted


def test_forecast_says_what_must_come_back() -> None:
    """Answers and refusals are told by status, and what a case can cost by its limit."""
    target = parse_target("http://127.0.0.1/")
    plan = Plan(target=target, model=MODEL, key="the-key", cases=ALL, ceiling=100)
    told: dict[str, Forecast] = {one.case.name: one for one in forecast(plan)}
    assert told["stream-long"].calls_for == "200 text/event-stream"
    assert told["stream-long"].tokens == 100
    assert told["whole-short"].calls_for == "200 application/json"
    assert told["no-key"].calls_for == "401 or 403"
    assert told["unknown-model"].calls_for == "400 or 404"
    assert told["limit-zero"].calls_for == "400 or 422"
    # Over the ceiling that the plan knows, what is otherwise a good request is none.
    assert told["integer-1e3"].calls_for == "400 or 422"
    assert "accepted/integers" not in told["integer-1e3"].rules
    assert told["no-key"].rules[:2] == ("auth/missing-refused", "auth/refused-before-inference")
