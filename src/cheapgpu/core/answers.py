"""Judges what a request within the profile was answered: `whole/` and the head of `stream/`."""

from dataclasses import dataclass

from cheapgpu.core import strict_json
from cheapgpu.core.exchange import Exchange, Head
from cheapgpu.core.expectation import TRANSIENT, Expectation, Mode
from cheapgpu.core.findings import Outcome, Sheet
from cheapgpu.core.limits import ANSWER_BYTES
from cheapgpu.core.messages import Completion, completion_of
from cheapgpu.core.places import place
from cheapgpu.core.refusals import judge_document
from cheapgpu.core.schema import quoted
from cheapgpu.core.sse import essence
from cheapgpu.core.strict_json import Unreadable

_MEDIA_TYPE = {"stream": "text/event-stream", "whole": "application/json"}


def judge_head(
    sheet: Sheet, head: Head, mode: Mode, *, small: bool = False, arrived: str = ""
) -> bool:
    """Judge status, media type and coding; return whether there is a body to judge.

    `small`: the request is too small to be refused for its size, and unusual in nothing. `arrived`
    is said of a body whose coding keeps it from being judged.

    Profile, "JSON completion" and "SSE streaming": HTTP 200 with the media type. A refusal proves
    nothing about answers: it leaves the rules of the answer open.
    """
    status = f"{mode}/status"
    if head.status == 200:
        sheet.hold(status)
    elif 200 <= head.status < 400:
        sheet.find(status, expected="200", observed=str(head.status))
    elif head.status in (400, 422) and small:
        observed = f"{head.status}: a small request within the profile was refused"
        sheet.find(status, expected="200", observed=observed)
    elif head.status in (400, 413, 422):
        observed = f"{head.status}: refused, perhaps for its size"
        sheet.find(status, Outcome.UNKNOWN, expected="200", observed=observed)
    else:
        busy = "the endpoint is busy" if head.status in TRANSIENT else "a refusal"
        sheet.find(status, Outcome.ERROR, expected="200", observed=f"{head.status}: {busy}")
    if head.status != 200:
        return False
    media_type = essence(head.header("content-type"))
    wanted = _MEDIA_TYPE[mode]
    sheet.test(
        f"{mode}/content-type",
        holds=media_type == wanted,
        expected=wanted,
        observed=media_type or "no content type",
    )
    coding = (head.header("content-encoding") or "identity").strip().lower()
    return sheet.test(
        f"{mode}/content-encoding",
        holds=coding == "identity",
        expected="no content coding: none was asked for",
        observed=f"{coding}; {arrived}" if arrived else coding,
    )


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """What the body of a plain answer gave."""

    #: None unless it matches the schema.
    completion: Completion | None = None
    #: Whether it reports an error, as a stream may; then it is no success, whatever else it says.
    failed: bool = False
    #: Whether a limit or a decision of ours kept it from being read.
    stopped: bool = False


def judge_whole(sheet: Sheet, exchange: Exchange, wanted: Expectation) -> WholeAnswer:
    """Judge the body of a plain answer (profile, "JSON completion")."""
    rules = ("whole/json", "whole/schema", "whole/model-echoed", "whole/usage-adds-up")
    over = len(exchange.body) > ANSWER_BYTES
    if exchange.ending == "stopped" or over:
        why = f"over {ANSWER_BYTES} bytes" if over else exchange.closed.how
        observed = f"we stopped reading: {why}"
        sheet.find("whole/body-complete", Outcome.ERROR, observed=observed)
        sheet.skip("the body was not read to its end", *rules)
        return WholeAnswer(stopped=True)
    if exchange.ending == "cut":
        sheet.find(
            "whole/body-complete",
            expected="an end as the framing announced",
            observed="the connection ended",
        )
        sheet.skip("the body was cut", *rules)
        return WholeAnswer()
    if exchange.closed.how != "unstated":
        sheet.hold("whole/body-complete")
    value = strict_json.decode(exchange.body)
    if isinstance(value, Unreadable) or not isinstance(value, dict):
        return WholeAnswer(stopped=_judge_unreadable(sheet, value, exchange.body))
    sheet.hold("whole/json")
    valid = judge_document(sheet, "whole/schema", "completion", value, exchange.body)
    model = value.get("model")
    if wanted.model is not None and isinstance(model, str) and model:
        _test(
            sheet,
            exchange.body,
            "whole/model-echoed",
            "/model",
            holds=model == wanted.model,
            expected=quoted(wanted.model),
            observed=quoted(model),
        )
    if not valid:
        return WholeAnswer()
    completion = completion_of(value)
    _judge_usage(sheet, exchange.body, completion, wanted.limit)
    return WholeAnswer(completion, failed=value.get("error") is not None)


def _judge_unreadable(sheet: Sheet, value: object, body: bytes) -> bool:
    """Judge a body that is no JSON object; return whether a limit of ours hides what it is."""
    too_deep = isinstance(value, Unreadable) and value.reason == "too-deep"
    at = value.at if isinstance(value, Unreadable) else 0
    sheet.find(
        "whole/json",
        Outcome.UNKNOWN if too_deep else Outcome.FAIL,
        expected="one JSON object",
        observed=value.what if isinstance(value, Unreadable) else "JSON, but not an object",
        at=at,
        length=min(16, len(body) - at),
    )
    sheet.skip("the body is no JSON object", "whole/schema", "whole/model-echoed")
    return too_deep


def _test(  # noqa: PLR0913 -- the fields of a finding
    sheet: Sheet,
    body: bytes,
    rule: str,
    pointer: str,
    *,
    holds: bool,
    expected: str,
    observed: str,
) -> None:
    """Say of a rule about one member whether it holds, and where the member stands if not."""
    if holds:
        sheet.hold(rule)
        return
    start, end = place(body, pointer)
    sheet.find(rule, expected=expected, observed=observed, at=start, length=end - start)


def _judge_usage(sheet: Sheet, body: bytes, completion: Completion, limit: int | None) -> None:
    usage = completion.usage
    total = usage.prompt_tokens + usage.completion_tokens
    _test(
        sheet,
        body,
        "whole/usage-adds-up",
        "/usage/total_tokens",
        holds=usage.adds_up,
        expected=f"{usage.prompt_tokens} + {usage.completion_tokens} = {total}",
        observed=str(usage.total_tokens),
    )
    if limit is not None:
        _test(
            sheet,
            body,
            "whole/usage-within-limit",
            "/usage/completion_tokens",
            holds=usage.completion_tokens <= limit,
            expected=f"at most {limit} completion tokens",
            observed=str(usage.completion_tokens),
        )
