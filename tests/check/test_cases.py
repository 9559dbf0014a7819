"""The catalogue of cases: each sends what its name says."""

import json

import pytest

from cheapgpu.check.cases import CASES, Case, refusal
from cheapgpu.core.exchange import Closed, Exchange, Request
from cheapgpu.core.expectation import expectation
from cheapgpu.core.request import ChatRequest, decode_request
from cheapgpu.core.rules import RULES

MODEL = 'a/"quoted" model'

#: Case → the rule that must refuse it.
REFUSED = {
    "no-key": "auth/missing-refused",
    "wrong-key": "auth/wrong-refused",
    "unknown-model": "refuse/unknown-model",
    "unknown-field": "refuse/unknown-field",
    "with-max_tokens": "refuse/max_tokens",
    "with-tools": "refuse/tools",
    "with-temperature": "refuse/temperature",
    "messages-empty": "refuse/messages-empty",
    "limit-zero": "refuse/limit-zero",
    "usage-not-requested": "refuse/usage-not-requested",
    "not-json": "refuse/not-json",
}


def called_for(case: Case) -> str | None:
    """The rule by which the request of a case must be refused, as core reads its bytes."""
    request = Request(
        method="POST",
        url="http://127.0.0.1/",
        headers=(("content-type", case.content_type),),
        body=case.body(MODEL, case.tokens),
    )
    exchange = Exchange(
        case=case.name,
        credential=case.credential,
        model=case.model,
        request=request,
        closed=Closed(t=0.0, how="length"),
    )
    return expectation(exchange).rule


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_calls_for_the_rule_of_its_name(case: Case) -> None:
    """Each case must be answered, or refused by exactly the rule that its name speaks of."""
    assert called_for(case) == REFUSED.get(case.name)


def test_names_are_unique_and_all_there() -> None:
    """Every case of the issue is in the catalogue, once."""
    names = [case.name for case in CASES]
    answered = {"stream-short", "stream-long", "whole-short", "integer-forms"}
    assert set(names) == {*REFUSED, *answered}
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_model_and_limit_are_those_of_the_run(case: Case) -> None:
    """The bytes name the model that is asked for, and the limit that the case says it costs."""
    body = case.body(MODEL, 7 if case.adjustable else case.tokens)
    text = body + b"}" if case.name == "not-json" else body
    sent = json.loads(text)
    assert sent["model"] == MODEL
    limit = 0 if case.name == "limit-zero" else 7 if case.adjustable else case.tokens
    assert sent["max_completion_tokens"] == limit
    assert sent["stream"] == case.stream


def test_answered_cases_are_requests_of_the_profile() -> None:
    """What must be answered is within the profile, and the long stream is long enough to judge."""
    for case in CASES:
        if case.name in REFUSED:
            continue
        request = decode_request(case.body("m", case.tokens))
        assert isinstance(request, ChatRequest)
        assert request.max_completion_tokens == case.tokens
        if case.name == "stream-long":
            assert case.tokens >= 256


def test_limit_in_another_notation_is_sent_as_written() -> None:
    """integer-forms sends 1e1, not 10."""
    case = next(case for case in CASES if case.name == "integer-forms")
    assert b'"max_completion_tokens":1e1' in case.body("m", case.tokens)


@pytest.mark.parametrize("rule", [rule.id for rule in RULES if rule.area in ("auth", "refuse")])
def test_every_rule_of_admission_can_be_a_case(rule: str) -> None:
    """The example of every rule on requests makes a case that calls for that rule."""
    wanted = "auth/wrong-refused" if rule == "auth/refused-before-inference" else rule
    assert called_for(refusal("case", rule)) == wanted
