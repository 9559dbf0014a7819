"""Why a verdict stayed open, in words: no fault was seen, but no success either."""

from cheapgpu.core.exchange import STOPPED_BY_US, Exchange
from cheapgpu.core.findings import Judgement, Outcome
from cheapgpu.core.rules import RULES
from cheapgpu.report.run import Run


def open_reasons(run: Run) -> list[str]:
    """Return a phrase for each exchange that showed no success, and for what is not decided."""
    if run.report.verdict != "not established":
        return []
    reasons = [
        f"{exchange.case}: {reason}"
        for exchange, judgement in run.pairs()
        if (reason := _reason(exchange, judgement))
    ]
    undecided = [
        rule.id
        for rule in RULES
        if run.report.rules[rule.id] in (Outcome.UNKNOWN, Outcome.ERROR) and rule.level == "MUST"
    ]
    if undecided:
        reasons.append(f"not decided: {', '.join(undecided)}")
    must = (run.report.rules[rule.id] for rule in RULES if rule.level == "MUST")
    if all(outcome is Outcome.SKIP for outcome in must):
        reasons.append("no MUST rule was looked at")
    return reasons


def _reason(exchange: Exchange, judgement: Judgement) -> str:
    """Why an exchange that broke nothing shows no success; "" if it does, or is a refusal."""
    if judgement.outcome == "failed" and not judgement.broken:
        return "the endpoint reported an error in the stream: no success was seen"
    if judgement.outcome != "unknown":
        return ""
    if exchange.head is None and exchange.timed:
        return "no answer came"
    if exchange.closed.how in STOPPED_BY_US:
        return "we stopped reading before the answer ended: no success was seen"
    return "the answer was not read to its end: no success was seen"
