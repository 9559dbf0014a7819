"""What was sent and received, with times: the only input of a judgement.

Times are seconds on a monotonic clock since the request began. Framing (chunk sizes, header bytes)
is gone; what is left is the body as it arrived, read by read.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

#: What the sender knew of the key that it sent; keys are masked, so the bytes alone cannot tell.
Credential = Literal["valid", "wrong", "none"]

#: Whether the sender believed that the endpoint has the model that it asked for.
ModelKnown = Literal["known", "unknown"]

#: How a body ended. `left`: we went away on purpose, to see what that does. `unstated`: a bare body
#: or an archive, which do not say.
How = Literal[
    "chunked-end",
    "length",
    "eof",
    "closed-after-done",
    "reset",
    "timeout",
    "deadline",
    "cancelled",
    "left",
    "unstated",
]

#: The endings that are ours: nothing that is missing then is the endpoint's fault.
STOPPED_BY_US = frozenset({"timeout", "deadline", "cancelled", "left"})

#: How a body ended: as its framing says · broken off by the peer · stopped by us.
Ending = Literal["whole", "cut", "stopped"]

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it was sent, the credential masked."""

    method: str
    url: str
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The status line and the header fields of an answer."""

    t: float
    status: int
    headers: Headers

    def header(self, name: str) -> str | None:
        """The first value of a header field, by its lower-case name; None if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The body bytes of one socket read; `at` is their offset in the body."""

    t: float
    at: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """When and how the exchange ended; `detail` says what the transport reported, if anything."""

    t: float
    how: How
    detail: str = ""
    #: The longest time for which nothing was read since our own machine was busy, in seconds; None
    #: where that was not measured.
    lag: float | None = None


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request and all that came back.

    `request` is None where only an answer is at hand, `head` where no answer came or none was kept
    (`timed` is false then: a bare body has neither head nor times).
    """

    case: str
    credential: Credential = "valid"
    model: ModelKnown = "known"
    request: Request | None = None
    sent: float | None = None
    head: Head | None = None
    reads: Sequence[Read] = ()
    closed: Closed
    timed: bool = True
    #: The largest max_completion_tokens that the endpoint admits, as far as the sender knew it.
    ceiling: int | None = None

    @property
    def lag(self) -> float:
        """By how much what was read may have come before, in seconds, as far as it is known."""
        return self.closed.lag or 0.0

    @cached_property
    def body(self) -> bytes:
        """The whole body that was received."""
        return b"".join(read.data for read in self.reads)

    @property
    def ending(self) -> Ending:
        """How the body ended, told from the framing and from who closed (RFC 9112 section 6.3)."""
        how = self.closed.how
        if how in STOPPED_BY_US:
            return "stopped"
        if how == "reset":
            return "cut"
        length = self.head.header("content-length") if self.head is not None else None
        coding = self.head.header("transfer-encoding") if self.head is not None else None
        if how == "eof" and (length or "chunked" in (coding or "").lower()):
            return "cut"
        if how == "length" and length is not None and length.strip() != str(len(self.body)):
            return "cut"
        return "whole"

    def time_of(self, offset: int) -> float | None:
        """When the body byte at `offset` arrived, in seconds; None where no times were kept."""
        if not self.timed or not self.reads:
            return None
        index = bisect_right(self._offsets, offset) - 1
        return self.reads[max(index, 0)].t

    def read_of(self, offset: int) -> int:
        """The number, from 0, of the read that brought the body byte at `offset`."""
        return max(bisect_right(self._offsets, offset) - 1, 0)

    @cached_property
    def _offsets(self) -> list[int]:
        return [0, *accumulate(len(read.data) for read in self.reads[:-1])]
