"""What each case of a plan calls for, which rules it feeds, and what it can cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cheapgpu.check.case import Case
from cheapgpu.check.plan import Plan
from cheapgpu.core.exchange import Closed, Exchange, Request
from cheapgpu.core.expectation import Expectation, expectation
from cheapgpu.core.rules import RULES

_ANSWERS: Final = {"stream": "200 text/event-stream", "whole": "200 application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A case as it would be sent: its request, and what must come back."""

    case: Case
    #: The credentials in it are masked.
    request: Request
    #: Status, and for an answer its media type, such as `400 or 422`.
    calls_for: str
    #: The ids of the rules that it feeds, in the registry's order.
    rules: tuple[str, ...]
    #: The most completion tokens that it can cost.
    tokens: int


def forecast(plan: Plan) -> list[Forecast]:
    """Return what a run of `plan` would send, case by case; nothing is sent.

    A run may put up to two more long questions, with a plain one for comparison, as far as the
    tokens of its budget go. What is made up for a run (a wrong key, an unknown model id, a word to
    repeat) is other in the run itself.
    """
    return [_forecast(plan, case) for case in plan.cases]


def needed(plan: Plan, rules: Iterable[str]) -> tuple[Case, ...]:
    """The cases of a plan that feed at least one of these rules (ids), in their order."""
    wanted = frozenset(rules)
    return tuple(one.case for one in forecast(plan) if not wanted.isdisjoint(one.rules))


def _forecast(plan: Plan, case: Case) -> Forecast:
    request = plan.request(case).request
    exchange = Exchange(
        case=case.name,
        credential=case.credential,
        model=case.model,
        request=request,
        closed=Closed(t=0.0, how="unstated"),
        ceiling=plan.ceiling,
    )
    wanted = expectation(exchange)
    fed = _fed(case, wanted)
    return Forecast(
        case=case,
        request=request,
        calls_for=_calls_for(wanted),
        rules=tuple(rule.id for rule in RULES if {rule.id, rule.area} & fed),
        tokens=plan.asked(case),
    )


def _calls_for(wanted: Expectation) -> str:
    if wanted.refusals or wanted.mode is None:
        return " or ".join(str(status) for status in wanted.refusals)
    return _ANSWERS[wanted.mode]


def _fed(case: Case, wanted: Expectation) -> set[str]:
    """Ids of rules, and areas whose rules are fed all together."""
    if wanted.rule is None:
        return {*case.feeds, str(wanted.mode)}
    before_inference = "auth/refused-before-inference"
    auth = {before_inference} if wanted.rule.startswith("auth/") else set()
    feeds = {rule for rule in case.feeds if not rule.startswith("accepted/")}
    return {wanted.rule, "error"} | auth | feeds
