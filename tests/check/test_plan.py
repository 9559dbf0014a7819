"""What a run is asked to do, and the requests that follow from it."""

import re
from typing import Any

import pytest

from cheapgpu import __version__
from cheapgpu.check.case import Beside
from cheapgpu.check.cases import CASES, STREAM_LONG, Case
from cheapgpu.check.limits import Budget, Limits
from cheapgpu.check.plan import Plan, PlanError
from cheapgpu.wire.target import parse_target

KINDS: tuple[Beside, ...] = ("nothing", "refusals", "streams")
TARGET = parse_target("https://gpu.example/v1/chat/completions")


def case(name: str) -> Case:
    """A case of the catalogue."""
    return next(case for case in CASES if case.name == name)


def sent(plan: Plan, name: str, field: str = "authorization") -> str | None:
    """The value of a field of a case's request, as it is sent."""
    return dict(plan.request(case(name)).headers).get(field)


def told(plan: Plan, name: str, field: str = "authorization") -> str | None:
    """The same as it is told to everyone else."""
    return dict(plan.request(case(name)).request.headers).get(field)


def test_key_is_told_apart_from_the_request() -> None:
    """The request that is told has a masked credential; the real one is given beside it."""
    plan = Plan(target=TARGET, model="m", key="the-key")
    assert told(plan, "stream-short") == "Bearer ***"
    assert sent(plan, "stream-short") == "Bearer the-key"
    assert "the-key" not in repr(plan.request(case("stream-short")))
    assert "the-key" not in repr(plan)


def test_credential_of_each_case_is_what_it_says() -> None:
    """no-key sends none, wrong-key another in each run, and others the key if there is one."""
    plan = Plan(target=TARGET, model="m", key="the-key")
    assert sent(plan, "no-key") is None
    assert told(plan, "no-key") is None
    wrong = {sent(plan, "wrong-key") for _ in range(3)}
    assert len(wrong) == 3
    assert "Bearer the-key" not in wrong
    keyless = Plan(target=TARGET, model="m")
    assert sent(keyless, "stream-short") is None
    assert told(keyless, "stream-short") is None
    assert sent(keyless, "wrong-key") is not None


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("empty-key", "Bearer", "Bearer"),
        ("spaces-for-key", "Bearer  \t ", "Bearer ***"),
        ("key-in-other-case", "Bearer THE-kEY", "Bearer ***"),
        ("key-under-other-scheme", "Token the-Key", "Token ***"),
    ],
)
def test_key_is_no_bearer_key_in_other_forms(name: str, value: str, shown: str) -> None:
    """Each form is sent as it is meant, and told as a recording writes it: no key in it."""
    plan = Plan(target=TARGET, model="m", key="the-Key")
    assert sent(plan, name) == value
    assert told(plan, name) == shown
    assert case(name).credential == "wrong"


def test_key_without_letters_has_no_other_case() -> None:
    """Where swapping the case gives the right key, a wrong one is sent."""
    plan = Plan(target=TARGET, model="m", key="12345678")
    assert "12345678" not in (sent(plan, "key-in-other-case") or "")
    assert (sent(plan, "basic-key") or "").startswith("Basic ")


def test_field_in_capitals_is_the_same_field() -> None:
    """key-in-capitals is a valid request whose key stands under AUTHORIZATION."""
    plan = Plan(target=TARGET, model="m", key="the-key")
    assert sent(plan, "key-in-capitals", "AUTHORIZATION") == "Bearer the-key"
    assert told(plan, "key-in-capitals", "AUTHORIZATION") == "Bearer ***"
    assert case("key-in-capitals").credential == "valid"


def test_secrets_are_all_that_must_not_be_seen() -> None:
    """The key, the key as a case changes it, and long values of headers; not short ones."""
    headers = (("x-gate", "gate-secret"), ("x-version", "2"))
    plan = Plan(target=TARGET, model="m", key="the-Key-0", headers=headers)
    assert sorted(plan.secrets) == ["THE-kEY-0", "gate-secret", "the-Key-0"]
    assert told(plan, "stream-short", "x-gate") == told(plan, "stream-short", "x-version") == "***"
    assert sent(plan, "no-key", "x-gate") == "gate-secret"
    assert "gate-secret" not in repr(plan)


def test_word_of_a_concurrent_stream_is_its_own() -> None:
    """Two streams, and two runs, never ask for the same word."""
    plan = Plan(target=TARGET, model="m")
    words = {
        re.findall(rb"cg[0-9a-f]{8}", plan.request(case(name)).request.body)[0]
        for name in ("concurrent-1", "concurrent-2") * 2
    }
    assert len(words) == 4
    assert b"cg00000000" not in words


def test_concurrency_says_what_may_be_under_way() -> None:
    """Cases whose times are judged are alone; with 1 everything is."""
    plan = Plan(target=TARGET, model="m", concurrency=3)
    assert (plan.at_once("nothing"), plan.at_once("refusals")) == (1, 3)
    assert plan.at_once("streams") >= 2
    alone = Plan(target=TARGET, model="m", concurrency=1)
    assert {alone.at_once(beside) for beside in KINDS} == {1}


def test_unknown_model_is_another_in_each_run() -> None:
    """The id of the unknown model is made up, so that no endpoint can have it."""
    plan = Plan(target=TARGET, model="m")
    bodies = {plan.request(case("unknown-model")).request.body for _ in range(3)}
    assert len(bodies) == 3
    assert all(b'"model":"no-such-model-' in body for body in bodies)


def test_fields_of_a_request() -> None:
    """Each request says who asks, what it takes, and that no coding is wanted."""
    plan = Plan(target=TARGET, model="m", key="the-key")
    request = plan.request(case("stream-short")).request
    assert request.headers == (
        ("host", "gpu.example"),
        ("user-agent", f"cheapgpu/{__version__}"),
        ("accept", "text/event-stream"),
        ("accept-encoding", "identity"),
        ("authorization", "Bearer ***"),
        ("content-type", "application/json"),
        ("content-length", str(len(request.body))),
    )
    assert told(plan, "whole-short", "accept") == "application/json"
    assert told(plan, "content-type", "content-type") == "text/plain"
    assert told(plan, "content-type-none", "content-type") is None


def test_ceiling_bounds_every_limit() -> None:
    """No case asks for more tokens than the endpoint is said to admit."""
    plan = Plan(target=TARGET, model="m", ceiling=100)
    assert plan.asked(STREAM_LONG) == 100
    assert b'"max_completion_tokens":100' in plan.request(STREAM_LONG).request.body
    assert plan.tokens < Plan(target=TARGET, model="m").tokens


@pytest.mark.parametrize("key", ["", "two words", "line\n", "tab\t", "schlüssel", "\x00"])
def test_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    """A key with a space, a line break or a letter outside ASCII is refused without quoting it."""
    with pytest.raises(PlanError, match="key: ") as raised:
        Plan(target=TARGET, model="m", key=key)
    assert not key or key not in str(raised.value)


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("model", {"model": ""}),
        ("model", {"model": "m" * 257}),
        ("ceiling", {"ceiling": 0}),
        ("tokens", {"budget": Budget(tokens=100)}),
        ("budget", {"budget": Budget(seconds=0)}),
        ("budget", {"budget": Budget(seconds=float("inf"))}),
        ("budget", {"budget": Budget(seconds=float("nan"))}),
        ("timeout", {"limits": Limits(first_byte_seconds=-1)}),
        ("concurrency", {"concurrency": 0}),
        ("concurrency", {"concurrency": 65}),
        ("header", {"headers": (("", "v"),)}),
        ("header", {"headers": (("two words", "v"),)}),
        ("header", {"headers": (("Authorization", "v"),)}),
        ("header", {"headers": (("content-length", "1"),)}),
        ("header", {"headers": (("x-a", "line\r\nx-b: 1"),)}),
        ("header", {"headers": (("x-a", "schlüssel"),)}),
    ],
)
def test_plan_that_makes_no_sense_is_refused(field: str, more: dict[str, Any]) -> None:
    """The refusal begins with the field."""
    with pytest.raises(PlanError, match=f"^{field}: ") as raised:
        Plan(**{"target": TARGET, "model": "m", **more})
    assert "schlüssel" not in str(raised.value)
