"""`cheapgpu check --dry-run`: what would be sent, and what it can cost."""

import base64
import json
from typing import Any

from cheapgpu.check.forecast import Forecast, forecast
from cheapgpu.check.plan import Plan
from cheapgpu.report.style import Style


def dry_run(plan: Plan, style: Style, *, bodies: bool) -> str:
    """List the cases of a plan; with `bodies` each request's body stands under its case."""
    cases = forecast(plan)
    lines = [f"{'':3}  {'case':<27}{'must get':<23}{'tokens':>6}  what is asked"]
    for number, one in enumerate(cases, 1):
        name, asked = one.case.name, one.case.purpose
        lines.append(f"{number:>3}  {name:<27}{one.calls_for:<23}{one.tokens:>6}  {asked}")
        if bodies:
            lines += [f"     {line}" for line in _body(one).splitlines()]
    total = sum(one.tokens for one in cases)
    return "".join(
        f"{style.text(line)}\n"
        for line in (
            *lines,
            "",
            f"{len(cases)} requests to {plan.target.url}",
            f"at most {total} completion tokens; with the longer questions that a fast model gets,",
            f"at most {plan.budget.tokens} (--tokens)",
            "nothing was sent",
        )
    )


def dry_run_json(plan: Plan) -> str:
    """The same as one JSON document, with the bytes of every request."""
    cases = forecast(plan)
    document = {
        "target": plan.target.url,
        "cases": [_document(one) for one in cases],
        "requests": len(cases),
        "tokens": sum(one.tokens for one in cases),
        "most_tokens": plan.budget.tokens,
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _document(one: Forecast) -> dict[str, Any]:
    request = one.request
    return {
        "case": one.case.name,
        "purpose": one.case.purpose,
        "calls_for": one.calls_for,
        "rules": one.rules,
        "tokens": one.tokens,
        "request": {
            "method": request.method,
            "url": request.url,
            "headers": request.headers,
            "body_base64": base64.b64encode(request.body).decode(),
        },
    }


def _body(one: Forecast) -> str:
    return one.request.body.decode("utf-8", "backslashreplace")
