"""A run: cases sent one after another, each judged when it ends; and all is told as it happens."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from cheapgpu.check.cases import STREAM_LONG, Case
from cheapgpu.check.connection import ConnectError
from cheapgpu.check.events import (
    CaseFinished,
    CaseStarted,
    Event,
    Listener,
    RunFinished,
    RunStarted,
    Sent,
    Step,
)
from cheapgpu.check.long_stream import moment_for, next_question
from cheapgpu.check.masking import Mask, secrets_of
from cheapgpu.check.plan import TOOL, Plan
from cheapgpu.check.timed_exchange import Question, exchange
from cheapgpu.core.across import judge_across
from cheapgpu.core.exchange import STOPPED_BY_US, Closed, Exchange, Head, How, Read, Request
from cheapgpu.core.recording import Recording
from cheapgpu.core.verify import Report, judge, report

if TYPE_CHECKING:
    from cheapgpu.core.findings import Judgement

#: After so many exchanges in a row without a whole answer the run stops: others would wait in vain.
_UNANSWERED: Final = 2


class _Stop(NamedTuple):
    """Why a run ended before all cases were sent."""

    #: For a person, in a sentence.
    why: str
    #: What the recording says of each case that was left out.
    how: How = "cancelled"


_INTERRUPTED: Final = _Stop("interrupted")


async def run(plan: Plan, *listeners: Listener) -> Report:
    """Send the cases of `plan` in order, tell `listeners` all that happens, and judge.

    Every case ends in the recording: one that was not sent stands there without an answer, so that
    what was not looked at can be seen. When cancelled, the run is told as finished before
    CancelledError is passed on. What a listener raises ends the run at once, unfinished.
    """
    running = _Run(plan, listeners)
    running.start()
    try:
        stop = await running.ask_all()
    except asyncio.CancelledError:
        running.finish(_INTERRUPTED)
        raise
    return running.finish(stop)


class _Run:
    """A run that is going on."""

    def __init__(self, plan: Plan, listeners: tuple[Listener, ...]) -> None:
        self._plan = plan
        self._listeners = listeners
        self._began = time.perf_counter()
        now = datetime.now(UTC).replace(microsecond=0)
        self._time_of_day = now.timestamp()
        self._started = now.isoformat().replace("+00:00", "Z")
        self._left = list(plan.cases)
        self._tokens = plan.tokens
        self._received = 0
        self._unanswered = 0
        self._exchanges: list[Exchange] = []
        self._judgements: list[Judgement] = []

    def start(self) -> None:
        plan = self._plan
        target = plan.target.url
        self._tell(RunStarted(tool=TOOL, started=self._started, target=target, cases=plan.cases))

    async def ask_all(self) -> _Stop | None:
        """Send the cases; say why some are left, if some are."""
        budget = self._plan.budget
        while self._left:
            if self._seconds_left() <= 0:
                return _Stop(f"the {budget.seconds:g} s of the run are over", "deadline")
            if self._received >= budget.received_bytes:
                return _Stop("the answers are longer than a run can hold")
            case = self._left.pop(0)
            error = await self._ask(case)
            stop = self._stop_after(error)
            if stop is not None:
                return stop
            if case.name.startswith(STREAM_LONG.name):
                await self._ask_for_longer(case)
        return None

    def finish(self, stop: _Stop | None) -> Report:
        """Tell what was left out, and the end."""
        if stop is not None:
            while self._left:
                case = self._left.pop(0)
                request, _ = self._begin(case, left_out=True)
                closed = Closed(t=0.0, how=stop.how, detail="not sent: the run had ended")
                self._tell(closed)
                self._judge(case, request, [closed])
        combined = report(judge_across(self._exchanges, self._judgements))
        recording = Recording(
            tool=TOOL,
            started=self._started,
            target=self._plan.target.url,
            exchanges=tuple(self._exchanges),
        )
        why = stop.why if stop is not None else ""
        self._tell(RunFinished(recording=recording, report=combined, stopped=why))
        return combined

    async def _ask(self, case: Case) -> ConnectError | None:
        plan = self._plan
        request, credential = self._begin(case)
        steps: list[Step] = []

        def tell(step: Step) -> None:
            steps.append(step)
            self._tell(step)

        for secret in secrets_of(plan.key):
            tell = Mask(secret, tell)
        try:
            error = await exchange(
                plan.target,
                Question(request=request, credential=credential, seconds=self._seconds_left()),
                plan.context,
                plan.limits,
                tell,
            )
        except asyncio.CancelledError:
            self._judge(case, request, steps)
            raise
        self._judge(case, request, steps)
        return error

    def _begin(self, case: Case, *, left_out: bool = False) -> tuple[Request, str | None]:
        request, credential = self._plan.request(case)
        number = len(self._exchanges) + 1
        self._tell(
            CaseStarted(
                case=case,
                request=request,
                number=number,
                cases=number + len(self._left),
                left_out=left_out,
            )
        )
        return request, credential

    def _judge(self, case: Case, request: Request, steps: list[Step]) -> None:
        made = Exchange(
            case=case.name,
            credential=case.credential,
            model=case.model,
            request=request,
            sent=next((step.t for step in steps if isinstance(step, Sent)), None),
            head=next((step for step in steps if isinstance(step, Head)), None),
            reads=tuple(step for step in steps if isinstance(step, Read)),
            closed=next(step for step in steps if isinstance(step, Closed)),
        )
        judgement = judge(made, started=self._time_of_day)
        self._exchanges.append(made)
        self._judgements.append(judgement)
        self._received += sum(len(read.data) for read in made.reads)
        self._tell(CaseFinished(case=case, exchange=made, judgement=judgement))

    def _stop_after(self, error: ConnectError | None) -> _Stop | None:
        """Whether the last exchange says that the rest would be in vain."""
        last = self._exchanges[-1]
        address = self._plan.target.address
        if error is not None and len(self._exchanges) == 1:
            return _Stop(f"{address} cannot be reached: {error}; {error.remedy}")
        if last.head is not None and last.closed.how not in STOPPED_BY_US:
            self._unanswered = 0
            return None
        self._unanswered += 1
        if self._unanswered < _UNANSWERED or not self._left:
            return None
        detail = last.closed.detail or last.closed.how
        return _Stop(f"{address} is given up: {_UNANSWERED} requests in a row ended by {detail}")

    async def _ask_for_longer(self, case: Case) -> None:
        """Put one more long question before the others, if the last answer was too short."""
        plan = self._plan
        last = self._exchanges[-1]
        left = plan.budget.tokens - self._tokens
        case = replace(case, tokens=plan.asked(case))
        more = next_question(
            case,
            last,
            self._judgements[-1],
            tokens_left=left if plan.ceiling is None else min(left, plan.ceiling),
            seconds=plan.long_seconds,
        )
        if more is not None:
            self._tokens += more.tokens
            self._left.insert(0, more)
            await asyncio.sleep(moment_for(more, case, last, time_of_day=time.time()))

    def _seconds_left(self) -> float:
        return self._plan.budget.seconds - (time.perf_counter() - self._began)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)
