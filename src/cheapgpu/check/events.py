"""What happens in a run, as it happens: the run tells, and recordings and displays listen."""

from collections.abc import Callable
from dataclasses import dataclass

from cheapgpu.check.case import Case
from cheapgpu.core.exchange import Closed, Exchange, Head, Read, Request
from cheapgpu.core.findings import Judgement
from cheapgpu.core.recording import Recording
from cheapgpu.core.verify import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run begins."""

    tool: str
    #: Time of day in UTC, as RFC 3339 writes it.
    started: str
    target: str
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStarted:
    """A case is about to be sent, or left out; the credentials in its request are masked.

    Of cases that were under way at once, each is told when it has ended and all before it have.
    """

    case: Case
    request: Request
    #: Its number, from 1, and how many there are as far as is known.
    number: int
    cases: int
    #: The largest max_completion_tokens that the endpoint admits, if that is known.
    ceiling: int | None = None
    #: Whether it is only recorded, since the run has ended: Closed follows at once.
    left_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The last byte of the request has been handed to the network, `t` seconds after it began."""

    t: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFinished:
    """A case was answered, or not, and has been judged."""

    case: Case
    exchange: Exchange
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A run is over, and nothing more comes of it."""

    recording: Recording
    report: Report
    #: Why cases were left out, in one sentence; "" if none was.
    stopped: str = ""


#: What an exchange consists of.
Step = Sent | Head | Read | Closed

#: Everything that a listener is told, in order: RunStarted, then for each case CaseStarted, its
#: steps (Closed last) and CaseFinished, then RunFinished.
Event = RunStarted | CaseStarted | Step | CaseFinished | RunFinished

Listener = Callable[[Event], None]
