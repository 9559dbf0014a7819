"""What a run is asked to do, and the requests that follow from it."""

from typing import Any

import pytest

from cheapgpu import __version__
from cheapgpu.check.cases import CASES, STREAM_LONG, Case
from cheapgpu.check.limits import Budget, Limits
from cheapgpu.check.plan import Plan, PlanError
from cheapgpu.check.target import parse_target

TARGET = parse_target("https://gpu.example/v1/chat/completions")


def case(name: str) -> Case:
    """A case of the catalogue."""
    return next(case for case in CASES if case.name == name)


def header(plan: Plan, name: str, field: str) -> str | None:
    """The value of a field of a case's request."""
    request, _ = plan.request(case(name))
    return dict(request.headers).get(field)


def test_key_is_told_apart_from_the_request() -> None:
    """The request that is told has a masked credential; the real one is given beside it."""
    plan = Plan(target=TARGET, model="m", key="the-key")
    request, credential = plan.request(case("stream-short"))
    assert dict(request.headers)["authorization"] == "Bearer ***"
    assert credential == "Bearer the-key"
    assert "the-key" not in repr(request)


def test_credential_of_each_case_is_what_it_says() -> None:
    """no-key sends none, wrong-key another in each run, and others the key if there is one."""
    plan = Plan(target=TARGET, model="m", key="the-key")
    assert plan.request(case("no-key"))[1] is None
    assert header(plan, "no-key", "authorization") is None
    wrong = {plan.request(case("wrong-key"))[1] for _ in range(3)}
    assert len(wrong) == 3
    assert "Bearer the-key" not in wrong
    keyless = Plan(target=TARGET, model="m")
    assert keyless.request(case("stream-short"))[1] is None
    assert header(keyless, "stream-short", "authorization") is None
    assert keyless.request(case("wrong-key"))[1] is not None


def test_unknown_model_is_another_in_each_run() -> None:
    """The id of the unknown model is made up, so that no endpoint can have it."""
    plan = Plan(target=TARGET, model="m")
    bodies = {plan.request(case("unknown-model"))[0].body for _ in range(3)}
    assert len(bodies) == 3
    assert all(b'"model":"no-such-model-' in body for body in bodies)


def test_fields_of_a_request() -> None:
    """Each request says who asks, what it takes, and that no coding is wanted."""
    plan = Plan(target=TARGET, model="m", key="the-key")
    request, _ = plan.request(case("stream-short"))
    assert request.headers == (
        ("host", "gpu.example"),
        ("user-agent", f"cheapgpu/{__version__}"),
        ("accept", "text/event-stream"),
        ("accept-encoding", "identity"),
        ("authorization", "Bearer ***"),
        ("content-type", "application/json"),
        ("content-length", str(len(request.body))),
    )
    assert header(plan, "whole-short", "accept") == "application/json"


def test_ceiling_bounds_every_limit() -> None:
    """No case asks for more tokens than the endpoint is said to admit."""
    plan = Plan(target=TARGET, model="m", ceiling=100)
    assert plan.asked(STREAM_LONG) == 100
    assert b'"max_completion_tokens":100' in plan.request(STREAM_LONG)[0].body
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
    ],
)
def test_plan_that_makes_no_sense_is_refused(field: str, more: dict[str, Any]) -> None:
    """The refusal begins with the field."""
    with pytest.raises(PlanError, match=f"^{field}: "):
        Plan(**{"target": TARGET, "model": "m", **more})
