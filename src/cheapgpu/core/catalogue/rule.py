"""One rule of the profile: what must hold, who says so, and what it looks like when it does not."""

from dataclasses import dataclass
from typing import Literal

from cheapgpu.core.examples import STREAM_REQUEST, Example
from cheapgpu.core.exchange import Credential, How, ModelKnown

Level = Literal["MUST", "SHOULD"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """An exchange that came before the one that a rule is explained with."""

    #: The body of its request, its answer, and how it ended where that matters.
    request: bytes
    answer: Example
    how: How | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A demand on an endpoint, judged on received bytes.

    `good` and `bad` are answers to `request`: one that holds the rule, and one that breaks it and
    no other.
    """

    #: `area/what-must-hold`; permanent, never renamed and never reused.
    id: str
    #: The demand, in one sentence.
    sentence: str
    #: Why it matters to someone who pays or is paid.
    why: str
    #: MUST decides the verdict; SHOULD is advice.
    level: Level = "MUST"
    #: Section and paragraph of the profile, or the standard.
    citation: str
    #: The module and function of this package that judges it.
    judge: str
    #: Body of the request that both examples answer, and what its sender knew.
    request: bytes = STREAM_REQUEST
    content_type: str = "application/json"
    credential: Credential = "valid"
    model: ModelKnown = "known"
    ceiling: int | None = None
    #: An exchange that came before, for a rule about several; None for most.
    before: Before | None = None
    good: Example
    bad: Example

    @property
    def area(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]
