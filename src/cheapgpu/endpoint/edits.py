"""The honest edits: what may be changed of an engine's answer, because it adds nothing to it.

Each is framing. None states a count, an ending or a text that the engine did not state. They are
counted for every answer, and `cheapgpu endpoint --explain` prints this table.
"""

from collections.abc import Iterable
from typing import Final, Literal

Edit = Literal[
    "identity",
    "model",
    "usage-null",
    "usage-empty",
    "usage-moved",
    "finish-null",
    "finish-empty",
    "finish-translated",
    "terminal-split",
    "content-null",
    "role-empty",
    "tools-empty",
    "index",
    "delta-added",
    "members-left-out",
    "chunk-left-out",
    "event-left-out",
    "done",
    "closed-after-done",
    "collected",
]

#: Each edit in one sentence.
EDITS: Final[dict[Edit, str]] = {
    "identity": "one id and one created, made here, stand in every chunk of an answer",
    "model": "the declared model id stands where the engine wrote its own name for the model",
    "usage-null": '"usage": null is added to a chunk that has no usage member',
    "usage-empty": "an empty usage object on a chunk becomes null",
    "usage-moved": "usage that the engine reported beside a choice moves into a chunk of its own, "
    "its numbers untouched; of growing reports the last",
    "finish-null": '"finish_reason": null is added to a choice that has none',
    "finish-empty": "an empty finish_reason on a choice becomes null",
    "finish-translated": "a finish reason becomes the profile's word for it, where the dialect "
    "declares that it means the same",
    "terminal-split": "text in the choice that ends the answer goes ahead in a chunk of its own",
    "content-null": "a content that is null is left out of a delta",
    "role-empty": "a role that is null or empty is left out of a delta",
    "tools-empty": "tool_calls without any call, and function_call or audio of null, are left out",
    "index": "the index of the only choice becomes 0",
    "delta-added": "an empty delta is added to a choice that has none",
    "members-left-out": "members that the profile does not define are left out",
    "chunk-left-out": "a chunk without a choice and without usage is left out",
    "event-left-out": "an event without data, sent to keep the connection alive, is left out",
    "done": "data: [DONE] is written after a finish reason, usage and a clean end of the engine's "
    "answer",
    "closed-after-done": "the answer ends at the engine's first [DONE], whatever may follow",
    "collected": "a stream of the engine is collected into one plain answer",
}


class EditCount:
    """How often each edit was made in one answer; at first, each of `edits` once."""

    __slots__ = ("_counts",)

    def __init__(self, edits: Iterable[Edit] = ()) -> None:
        self._counts: dict[str, int] = dict.fromkeys(edits, 1)

    def add(self, edits: Iterable[Edit], times: int = 1) -> None:
        """Count each of `edits` as made so many times."""
        counts = self._counts
        for edit in edits:
            counts[edit] = counts.get(edit, 0) + times

    def as_dict(self) -> dict[str, int]:
        """Edit to count, of those that were made at all."""
        return dict(self._counts)

    def __str__(self) -> str:
        """The counts as a header field shows them: `identity=12, usage-null=10`."""
        return ", ".join([f"{edit}={count}" for edit, count in sorted(self._counts.items())])
