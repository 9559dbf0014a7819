"""Every rule once, in the profile's order; ids are permanent.

The rules themselves stand in `catalogue`, each under its citation.
"""

import difflib
import fnmatch
from collections.abc import Iterable
from typing import Final

from cheapgpu.core.catalogue.admission import ACCEPTED, AUTH, REFUSE
from cheapgpu.core.catalogue.answering import ERROR, WHOLE_RULES
from cheapgpu.core.catalogue.conduct import HONESTY, SERVICE
from cheapgpu.core.catalogue.rule import Level, Rule
from cheapgpu.core.catalogue.streams import STREAM_RULES
from cheapgpu.core.errors import SelectionError

__all__ = ["AREAS", "BY_ID", "RETIRED", "RULES", "Level", "Rule", "select"]

RULES: Final[tuple[Rule, ...]] = (
    *AUTH,
    *REFUSE,
    *ACCEPTED,
    *ERROR,
    *WHOLE_RULES,
    *STREAM_RULES,
    *SERVICE,
    *HONESTY,
)
BY_ID: Final = {rule.id: rule for rule in RULES}
#: The areas in the order of the profile, with what each is about.
AREAS: Final = {
    "auth": "who is let in",
    "refuse": "what must be refused",
    "accepted": "what must be taken",
    "error": "the body of a refusal",
    "whole": "the plain answer",
    "stream": "the streamed answer",
    "service": "one exchange and the next",
    "honesty": "whether the counts can be right",
}
#: Ids that were rules once, with the rule that took their place. Never used again.
RETIRED: Final[dict[str, str]] = {}


def select(patterns: Iterable[str]) -> list[Rule]:
    """Return the rules that ids or globs (`stream/*`) name, in the registry's order, each once.

    Raises SelectionError for a pattern that matches nothing, with the ids nearest to it.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        matching = fnmatch.filter(BY_ID, pattern)
        if not matching:
            raise SelectionError(pattern, _nearest(pattern))
        chosen.update(matching)
    return [rule for rule in RULES if rule.id in chosen]


def _nearest(pattern: str) -> list[str]:
    near = difflib.get_close_matches(pattern, BY_ID, n=3, cutoff=0.8)
    if not near:
        near = [rule for rule in BY_ID if rule.partition("/")[2] == pattern][:3]
    if not near and "/" not in pattern:
        names = {rule.partition("/")[2]: rule for rule in BY_ID}
        near = [names[name] for name in difflib.get_close_matches(pattern, names, n=3, cutoff=0.7)]
    return near
