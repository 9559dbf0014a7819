"""The cases of a run in the order in which they are sent; what each is stands beside it.

What must be answered comes first, one after another, since its times are judged; what must be
refused comes last, several at once, and at the very end one more answer.
"""

from typing import Final

from cheapgpu.check.answered import (
    ANSWERED,
    STILL_THERE,
    STREAM_LONG,
    STREAM_SHORT,
    WHOLE_LONG,
    WHOLE_SHORT,
    streams_at_once,
)
from cheapgpu.check.case import Case
from cheapgpu.check.refused import REFUSED, over_ceiling, refusal

__all__ = [
    "CASES",
    "STREAM_LONG",
    "STREAM_SHORT",
    "WHOLE_LONG",
    "WHOLE_SHORT",
    "Case",
    "catalogue",
    "refusal",
]

#: Streams that are under way at once.
STREAMS: Final = 2


def catalogue(*, ceiling: int | None = None, streams: int = STREAMS) -> tuple[Case, ...]:
    """Every case, for an endpoint with this output ceiling (tokens; None: not known)."""
    return (
        *ANSWERED,
        *streams_at_once(streams),
        *REFUSED,
        *((over_ceiling(ceiling),) if ceiling is not None else ()),
        STILL_THERE,
    )


#: The cases where nothing is known of the endpoint.
CASES: Final = catalogue()
