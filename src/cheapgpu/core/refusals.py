"""Judges who is let in: `auth/`, `refuse/`, `accepted/`, and the `error/` body of every refusal."""

from typing import Any

from cheapgpu.core import schema, strict_json
from cheapgpu.core.exchange import Exchange, Head
from cheapgpu.core.expectation import TRANSIENT, Expectation
from cheapgpu.core.findings import Outcome, Sheet
from cheapgpu.core.places import place
from cheapgpu.core.sse import EventReader, essence
from cheapgpu.core.strict_json import Unreadable

#: A refusal of a request smaller than this cannot be for its size: bytes of body, tokens of limit.
_SMALL_BODY = 2048
_SMALL_LIMIT = 64


def judge_admission(sheet: Sheet, exchange: Exchange, head: Head, wanted: Expectation) -> None:
    """Judge whether a request that calls for a refusal got one, and the right one."""
    rule = wanted.rule
    if rule is None:
        return
    fits = " or ".join(str(status) for status in wanted.refusals)
    got = f"{head.status} {essence(head.header('content-type'))}".rstrip()
    if 200 <= head.status < 300:
        sheet.find(rule, expected=fits, observed=got)
        if rule.startswith("auth/"):
            sheet.find("auth/refused-before-inference", expected=fits, observed=got, follows=rule)
    elif head.status in wanted.refusals:
        sheet.hold(rule, "error/status")
        if rule.startswith("auth/"):
            _before_inference(sheet, exchange)
    elif head.status in TRANSIENT or head.status in (401, 403):
        # A key that is said to be valid and is refused, like a busy endpoint, hides the rest.
        sheet.find(rule, Outcome.ERROR, expected=fits, observed=f"{got}: nothing can be told")
    elif rule.startswith("auth/"):
        sheet.find(rule, expected=fits, observed=got)
        sheet.find("error/status", expected=fits, observed=got, follows=rule)
    else:
        sheet.find("error/status", expected=fits, observed=got)
        sheet.find(rule, expected=fits, observed=got, follows="error/status")


def is_small(exchange: Exchange, wanted: Expectation) -> bool:
    """Whether a request is too small to be refused for its size."""
    body = exchange.request.body if exchange.request else b""
    return len(body) <= _SMALL_BODY and (wanted.limit or 0) <= _SMALL_LIMIT


def judge_acceptance(
    sheet: Sheet, exchange: Exchange, head: Head, wanted: Expectation
) -> list[str]:
    """Judge that a request within the profile is not refused for how it is written.

    Returns the rules of `accepted/` that it has something to say about.
    """
    features = _features(exchange, wanted)
    if not features:
        return []
    if 200 <= head.status < 300:
        sheet.hold(*features)
        return features
    small = is_small(exchange, wanted)
    # Of several ways of writing, only one need be what is refused.
    certain = head.status in (400, 422) and small and len(features) == 1
    for rule in features:
        sheet.find(
            rule,
            Outcome.FAIL if certain else Outcome.UNKNOWN,
            expected="200",
            observed=str(head.status) if certain else f"{head.status}, perhaps for another reason",
        )
    return features


def judge_error_body(sheet: Sheet, exchange: Exchange, head: Head) -> None:
    """Judge the body of a refusal (profile: "Non-2xx JSON errors use the error schema")."""
    declared = essence(head.header("content-type"))
    if declared != "application/json":
        found = declared or "no content type"
        sheet.find(
            "error/content-type", Outcome.ADVICE, expected="application/json", observed=found
        )
        sheet.skip("the body is not declared JSON", "error/json", "error/schema")
        return
    sheet.hold("error/content-type")
    judge_error_json(sheet, exchange)


def judge_error_json(sheet: Sheet, exchange: Exchange) -> None:
    """Judge a body that is meant to be a JSON error."""
    if exchange.ending != "whole":
        sheet.find("error/json", Outcome.ERROR, observed=f"the body was cut: {exchange.closed.how}")
        return
    value = strict_json.decode(exchange.body)
    if isinstance(value, Unreadable):
        outcome = Outcome.UNKNOWN if value.reason == "too-deep" else Outcome.FAIL
        sheet.find(
            "error/json",
            outcome,
            expected="one JSON object",
            observed=value.what,
            at=value.at,
            length=min(16, len(exchange.body) - value.at),
        )
        sheet.skip("the body is not JSON", "error/schema")
        return
    sheet.hold("error/json")
    judge_document(sheet, "error/schema", "error", value, exchange.body)


def is_error_body(body: bytes) -> bool:
    """Whether a body without its head is an error object rather than an answer."""
    value = strict_json.decode(body)
    return isinstance(value, dict) and value.get("error") is not None and "choices" not in value


def judge_document(
    sheet: Sheet,
    rule: str,
    document: schema.Document,
    value: Any,  # noqa: ANN401 -- JSON is any value
    body: bytes,
) -> bool:
    """Judge a decoded body by the schema of `document`; return whether it matches."""
    faults = schema.faults(document, value)
    if not faults:
        sheet.hold(rule)
    for fault in faults:
        start, end = place(body, fault.pointer)
        observed = f"{fault.pointer or 'the object'}: {fault.found}"
        sheet.find(rule, expected=fault.expected, observed=observed, at=start, length=end - start)
    return not faults


def _before_inference(sheet: Sheet, exchange: Exchange) -> None:
    events = EventReader().feed(exchange.body + b"\n\n")
    values = [strict_json.decode(data) for data in (exchange.body, *(e.data for e in events))]
    sheet.test(
        "auth/refused-before-inference",
        holds=not any(_is_inferred(value) for value in values),
        expected="a refusal without completion, chunk or usage",
        observed="the refusal carries what only inference can give",
    )


def _is_inferred(value: Any) -> bool:  # noqa: ANN401 -- JSON is any value
    """Whether a value, or one directly within it, has choices or usage."""
    inner = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        inner = [value, value.get("error")]
    return any(
        isinstance(part, dict) and bool(part.get("choices") or part.get("usage")) for part in inner
    )


def _features(exchange: Exchange, wanted: Expectation) -> list[str]:
    """The ways of writing a valid request that an endpoint must take, if this one has them."""
    if wanted.rule is not None or exchange.request is None:
        return []
    value: Any = strict_json.decode(exchange.request.body)
    features = []
    if isinstance(value["max_completion_tokens"], float):
        features.append("accepted/integers")
    messages = value["messages"]
    if any(not str(message["content"]).isascii() for message in messages):
        features.append("accepted/unicode")
    if len({message["role"] for message in messages}) > 1:
        features.append("accepted/roles")
    return features
