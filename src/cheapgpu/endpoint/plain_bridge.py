"""An engine's plain answer in, the profile's out: edited honestly, verified before it leaves."""

from collections.abc import Callable
from typing import Any

from cheapgpu.core import strict_json
from cheapgpu.core.completion_verifier import verify_completion
from cheapgpu.core.messages import FinishReason, fast_value
from cheapgpu.core.schema import quote
from cheapgpu.core.strict_json import Unreadable
from cheapgpu.endpoint.canonical import Identity, completion
from cheapgpu.endpoint.chunk_edits import (
    Report,
    in_one_line,
    only_choice,
    read_finish,
    read_model,
    read_report,
    read_text,
)
from cheapgpu.endpoint.dialects import Dialect
from cheapgpu.endpoint.edits import Edit, EditCount
from cheapgpu.endpoint.failures import Fault, Reason
from cheapgpu.endpoint.stream_bridge import StreamBridge
from cheapgpu.endpoint.usual_answer import usual_answer

_MEMBERS = frozenset(("id", "object", "created", "model", "choices", "usage", "error"))
_CHOICE_MEMBERS = frozenset(("index", "message", "finish_reason"))
#: What the verifier's finding about our own bytes says about the engine.
_REASONS: dict[str, Reason] = {
    "whole/usage-within-limit": "limit-exceeded",
    "whole/usage-adds-up": "usage-wrong",
}


class PlainAnswer:
    """A plain answer that passed verification."""

    __slots__ = ("body", "edits", "finish_reason", "report")

    def __init__(
        self, body: bytes, finish_reason: FinishReason, report: Report, edits: EditCount
    ) -> None:
        self.body = body
        self.finish_reason = finish_reason
        self.report = report
        self.edits = edits


def bridge_plain(
    body: bytes, dialect: Dialect, identity: Identity, limit: int, is_pinned: Callable[[str], bool]
) -> PlainAnswer:
    """Bridge the whole body of an engine's plain answer; raises Fault where that is not honest."""
    usual = usual_answer(body)
    if usual is None:
        return bridge_any(body, dialect, identity, limit, is_pinned)
    answer, usage = usual
    edits: list[Edit] = ["identity"]
    if answer.has_more:
        edits.append("members-left-out")
    if answer.has_empty_tools:
        edits.append("tools-empty")
    if answer.model != identity.model:
        edits.append("model")
    if not is_pinned(answer.model):
        raise _other_model()
    choice = answer.choices[0]
    report = Report(usage, in_one_line(bytes(answer.usage)))
    return _verified(
        choice.message.content, choice.finish_reason, report, EditCount(edits), identity, limit
    )


def bridge_any(
    body: bytes, dialect: Dialect, identity: Identity, limit: int, is_pinned: Callable[[str], bool]
) -> PlainAnswer:
    """As `bridge_plain`, by way of a dictionary: for answers with members of any kind."""
    value = fast_value(body)
    if value is None:
        value = strict_json.decode(body)
    if isinstance(value, Unreadable):
        raise Fault("malformed", value.what)
    if not isinstance(value, dict):
        raise Fault("malformed", "JSON, but no object")
    if value.get("error") is not None:
        raise Fault("engine-error", "200 with an error object")
    edits: set[Edit] = {"identity"}
    if value.get("object") != "chat.completion":
        raise Fault("not-a-chunk", f"/object is {quote(value.get('object'))}")
    if value.keys() - _MEMBERS:
        edits.add("members-left-out")
    content, finish = _read_choice(only_choice(value.get("choices")), dialect, edits)
    model = read_model(value)
    if model is not None and not is_pinned(model):
        raise _other_model()
    if model != identity.model:
        edits.add("model")
    report = read_report(value, body, edits)
    if report is None:
        raise Fault("usage-missing", "no usage in the answer")
    return _verified(content, finish, report, EditCount(edits), identity, limit)


def collect(bridge: StreamBridge, identity: Identity, limit: int) -> PlainAnswer:
    """Make a plain answer of a stream that a collecting bridge has read to its good end."""
    finish, report, texts = bridge.finish_reason, bridge.report, bridge.texts
    if bridge.failure is not None or finish is None or report is None or texts is None:
        raise Fault("unverified", "the stream did not end well")
    edits = bridge.edits
    edits.add(("collected",))
    return _verified("".join(texts), finish, report, edits, identity, limit)


def _other_model() -> Fault:
    return Fault("model-changed", "the answer names another model")


def _read_choice(
    choice: dict[str, Any], dialect: Dialect, edits: set[Edit]
) -> tuple[str | None, FinishReason]:
    if choice.keys() - _CHOICE_MEMBERS:
        edits.add("members-left-out")
    if choice.get("index") != 0:
        edits.add("index")
    finish = read_finish(choice, dialect.synonyms, edits)
    if finish is None:
        raise Fault("finish-missing", "no finish reason in the answer")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Fault("not-a-chunk", "/choices/0/message is no object")
    content = read_text(message, "/choices/0/message", edits)
    if content is None:
        edits.discard("content-null")  # it stays null
        if finish != "content_filter":
            raise Fault("not-a-chunk", "/choices/0/message/content is null, and not filtered")
    return content, finish


def _verified(  # noqa: PLR0913, PLR0917 -- the parts of an answer
    content: str | None,
    finish: FinishReason,
    report: Report,
    edits: EditCount,
    identity: Identity,
    limit: int,
) -> PlainAnswer:
    """The answer written anew; raises Fault where what was written does not pass verification."""
    body = completion(identity, content, finish, report.raw)
    broken = verify_completion(body, model=identity.model, limit=limit)
    if broken:
        raise Fault(_REASONS.get(broken[0], "unverified"), f"verification: {', '.join(broken)}")
    return PlainAnswer(body, finish, report, edits)
