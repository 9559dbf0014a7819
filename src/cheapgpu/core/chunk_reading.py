"""What one object of a stream says, whether or not it matches the chunk schema.

A wrong chunk is still read as far as its meaning is plain, so that one fault does not hide the
next: a finish reason that the profile does not define still ends the answer, and usage that is not
made of integers was still stated.
"""

from typing import Any

from msgspec import Struct

from cheapgpu.core.messages import Chunk, FinishReason, Usage
from cheapgpu.core.stream import Step
from cheapgpu.core.usual_chunk import UsualChunk, UsualUsage


class Reading(Struct, frozen=True, gc=False):
    """The step that an object takes, and what it states; None where it states nothing valid."""

    step: Step
    content: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    id: str | None = None
    created: int | None = None
    model: str | None = None


def read_chunk(chunk: Chunk | UsualChunk) -> Reading:
    """Read a chunk that matches the schema."""
    usage = chunk.usage
    if isinstance(usage, UsualUsage):
        usage = Usage(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    if not chunk.choices:
        step: Step = "empty" if usage is None else "usage"
        return Reading(step, "", None, usage, chunk.id, chunk.created, chunk.model)
    choice = chunk.choices[0]
    if choice.finish_reason is None:
        step = "delta" if usage is None else "delta+usage"
    else:
        step = "terminal" if usage is None else "terminal+usage"
    content = choice.delta.content
    return Reading(
        step,
        content if isinstance(content, str) else "",
        choice.finish_reason,
        usage,
        chunk.id,
        chunk.created,
        chunk.model,
    )


def read_wrong_chunk(value: dict[str, Any]) -> Reading:
    """Read an object that breaks the schema; what is wrong in it is left out, not guessed."""
    content, finish = "", None
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict):
        finish = choice.get("finish_reason")
        delta = choice.get("delta")
        text = delta.get("content") if isinstance(delta, dict) else None
        content = text if isinstance(text, str) else ""
    name, created, model = value.get("id"), value.get("created"), value.get("model")
    return Reading(
        _wrong_step(choices, finish, value.get("usage")),
        content,
        finish if finish in ("stop", "length", "content_filter") else None,
        None,
        name if isinstance(name, str) and 1 <= len(name) <= 256 else None,
        created if isinstance(created, int) and not isinstance(created, bool) else None,
        model if isinstance(model, str) and 1 <= len(model) <= 256 else None,
    )


def _wrong_step(choices: object, finish: object, usage: object) -> Step:
    states_usage = isinstance(usage, dict) and bool(usage)
    if not isinstance(choices, list):
        return "usage" if states_usage else "unreadable"
    if not choices:
        return "usage" if states_usage else "empty" if usage is None else "unreadable"
    terminal = finish is not None and finish != ""
    if states_usage:
        return "terminal+usage" if terminal else "delta+usage"
    return "terminal" if terminal else "delta"
