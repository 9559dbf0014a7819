"""A run: cases sent in order, some of them at once, each judged; and all is told as it happens."""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple

from cheapgpu.check.case import Case
from cheapgpu.check.cases import STREAM_LONG, WHOLE_LONG
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
from cheapgpu.check.long_stream import moment_for, next_question, plain_twin
from cheapgpu.check.masking import Mask
from cheapgpu.check.plan import TOOL, Plan, Prepared
from cheapgpu.check.timed_exchange import Question, exchange
from cheapgpu.check.worker import in_worker, result_within
from cheapgpu.core.across import judge_across
from cheapgpu.core.exchange import STOPPED_BY_US, Closed, Exchange, Head, How, Read
from cheapgpu.core.findings import Judgement
from cheapgpu.core.recording import Recording
from cheapgpu.core.verify import Report, judge, report

#: After so many exchanges in a row without a whole answer the run stops: others would wait in vain.
_UNANSWERED: Final = 2
#: Answers of an endpoint that is asked for more at once than it takes.
_BUSY: Final = frozenset({429, 503})
#: Seconds that judging may go on after the run's time, and after an interruption.
_JUDGING_SECONDS: Final = 10.0
_LAST_SECONDS: Final = 1.0
_UNJUDGED: Final = "there was no time to judge it; cheapgpu verify judges the recording"


class _Stop(NamedTuple):
    """Why a run ended before all cases were sent."""

    #: For a person, in a sentence.
    why: str
    #: What the recording says of each case that was left out.
    how: How = "cancelled"


_INTERRUPTED: Final = _Stop("interrupted")


@dataclass(slots=True, kw_only=True)
class _Flight:
    """A case that is under way, and what has come of it."""

    case: Case
    prepared: Prepared
    #: Whether each step is told when it happens; else all are told once it has its turn.
    live: bool
    steps: list[Step] = field(default_factory=list)
    task: "asyncio.Task[ConnectError | None] | None" = None


async def run(plan: Plan, *listeners: Listener) -> Report:
    """Send the cases of `plan`, tell `listeners` all that happens in the cases' order, and judge.

    Every case ends in the recording: one that was not sent stands there without an answer, so that
    what was not looked at can be seen. When cancelled, the run is told as finished before
    CancelledError is passed on. What a listener raises ends the run at once, unfinished.
    """
    running = _Run(plan, listeners)
    running.start()
    try:
        stop = await running.ask_all()
        if stop is not None:
            await running.end_flights(stop)
        return await running.finish(stop)
    except asyncio.CancelledError:
        running.hurry()
        await running.end_flights(_INTERRUPTED)
        await running.finish(_INTERRUPTED)
        raise
    except BaseException:
        await running.abandon_flights()
        raise


class _Run:
    """A run that is going on."""

    def __init__(self, plan: Plan, listeners: tuple[Listener, ...]) -> None:
        self._plan = plan
        self._listeners = listeners
        self._began = time.perf_counter()
        now = datetime.now(UTC).replace(microsecond=0)
        self._time_of_day = now.timestamp()
        self._started = now.isoformat().replace("+00:00", "Z")
        self._left = deque(plan.cases)
        #: Under way, in the cases' order.
        self._flights: deque[_Flight] = deque()
        #: Whether the endpoint has said that it is busy: then nothing more is sent at once.
        self._busy = False
        self._tokens = plan.tokens
        self._received = 0
        self._unanswered = 0
        #: Until when judging may go on, in seconds since the run began.
        self._judging_until = plan.budget.seconds + _JUDGING_SECONDS
        self._exchanges: list[Exchange] = []
        self._judgements: list[Judgement] = []

    def start(self) -> None:
        plan = self._plan
        target = plan.target.url
        self._tell(RunStarted(tool=TOOL, started=self._started, target=target, cases=plan.cases))

    async def ask_all(self) -> _Stop | None:
        """Send the cases; say why some are left, if some are."""
        while self._left or self._flights:
            stop = self._exhausted() if self._left else None
            if stop is not None and not self._flights:
                return stop
            while stop is None and self._left and self._may_start(self._left[0]):
                self._send(self._left.popleft())
            flight = self._flights[0]
            error = await flight.task if flight.task is not None else None
            await self._land(self._flights.popleft())
            stop = self._stop_after(error)
            if stop is not None:
                return stop
            if flight.case.name.startswith(STREAM_LONG.name):
                await self._ask_for_longer(flight.case)
        return None

    async def end_flights(self, stop: _Stop) -> None:
        """Cut what is under way, and tell it so."""
        await self.abandon_flights()
        while self._flights:
            flight = self._flights.popleft()
            match flight.steps:
                case []:  # it was cut before it had begun
                    flight.steps.append(_not_sent(stop))
                    if flight.live:
                        self._tell(flight.steps[0])
                case [*_, Closed(how="cancelled") as closed] if stop is not _INTERRUPTED:
                    cut = replace(closed, how=stop.how, detail="cut: the run had ended")
                    flight.steps[-1] = cut
                case _:
                    pass
            await self._land(flight)

    def hurry(self) -> None:
        """Leave little time for what is still to be judged."""
        self._judging_until = time.perf_counter() - self._began + _LAST_SECONDS

    async def abandon_flights(self) -> None:
        """Cut what is under way, and tell nothing."""
        tasks = [flight.task for flight in self._flights if flight.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def finish(self, stop: _Stop | None) -> Report:
        """Tell what was left out, and the end."""
        if stop is not None:
            while self._left:
                case = self._left.popleft()
                prepared = self._plan.request(case)
                self._begin(case, prepared, left_out=True)
                closed = _not_sent(stop)
                self._tell(closed)
                await self._judge(case, prepared, [closed])
        combined = await self._report()
        recording = Recording(
            tool=TOOL,
            started=self._started,
            target=self._plan.target.url,
            exchanges=tuple(self._exchanges),
        )
        why = stop.why if stop is not None else ""
        self._tell(RunFinished(recording=recording, report=combined, stopped=why))
        return combined

    def _exhausted(self) -> _Stop | None:
        """Whether the run may take no more."""
        budget = self._plan.budget
        if self._seconds_left() <= 0:
            return _Stop(f"the {budget.seconds:g} s of the run are over", "deadline")
        if self._received >= budget.received_bytes:
            return _Stop("the answers are longer than a run can hold")
        return None

    def _may_start(self, case: Case) -> bool:
        """Whether a case may be sent beside those that are under way."""
        flights = self._flights
        if not flights:
            return True
        if "nothing" in (case.beside, flights[0].case.beside) or (
            case.beside != flights[0].case.beside
        ):
            return False
        at_once = 1 if self._busy else self._plan.at_once(case.beside)
        return len(flights) < at_once

    def _send(self, case: Case) -> None:
        prepared = self._plan.request(case)
        flight = _Flight(case=case, prepared=prepared, live=case.beside == "nothing")
        if flight.live:
            self._begin(case, prepared)
        flight.task = asyncio.create_task(self._ask(flight))
        self._flights.append(flight)

    async def _ask(self, flight: _Flight) -> ConnectError | None:
        plan, case = self._plan, flight.case

        def tell(step: Step) -> None:
            flight.steps.append(step)
            if flight.live:
                self._tell(step)

        for secret in reversed(plan.secrets):
            tell = Mask(secret, tell)
        limits = plan.limits
        if not flight.live:
            # What is under way at once is held until it is told: together no more than one answer.
            share = limits.answer_bytes // plan.at_once(case.beside)
            limits = replace(limits, answer_bytes=share)
        question = Question(
            request=flight.prepared.request,
            headers=flight.prepared.headers,
            seconds=self._seconds_left(),
            leave_after=case.leave_after,
            slow=case.slow,
        )
        return await exchange(plan.target, question, plan.context, limits, tell)

    async def _land(self, flight: _Flight) -> None:
        """Tell a case that has ended, as far as it was not told before, and judge it."""
        if not flight.live:
            self._begin(flight.case, flight.prepared)
            for step in flight.steps:
                self._tell(step)
        await self._judge(flight.case, flight.prepared, flight.steps)

    def _begin(self, case: Case, prepared: Prepared, *, left_out: bool = False) -> None:
        number = len(self._exchanges) + 1
        self._tell(
            CaseStarted(
                case=case,
                request=prepared.request,
                number=number,
                cases=number + len(self._flights) + len(self._left),
                ceiling=self._plan.ceiling,
                left_out=left_out,
            )
        )

    async def _judge(self, case: Case, prepared: Prepared, steps: list[Step]) -> None:
        made = Exchange(
            case=case.name,
            credential=case.credential,
            model=case.model,
            request=prepared.request,
            sent=next((step.t for step in steps if isinstance(step, Sent)), None),
            head=next((step for step in steps if isinstance(step, Head)), None),
            reads=tuple(step for step in steps if isinstance(step, Read)),
            closed=next(step for step in steps if isinstance(step, Closed)),
            ceiling=self._plan.ceiling,
        )
        self._exchanges.append(made)
        self._received += sum(len(read.data) for read in made.reads)
        # Whatever ends the wait, the case has its judgement: it has been told, and is recorded.
        judgement = _unjudged(case)
        try:
            judgement = await self._judgement(made) or judgement
        finally:
            self._judgements.append(judgement)
            self._tell(CaseFinished(case=case, exchange=made, judgement=judgement))

    async def _judgement(self, made: Exchange) -> Judgement | None:
        """Judge an exchange, a body beside the event loop; None if there is no time for it."""
        work = partial(judge, made, started=self._time_of_day)
        if not made.reads:
            return work()
        return await result_within(in_worker(work), self._judging_left())

    async def _report(self) -> Report:
        """Judge what the exchanges show together, and combine all."""
        exchanges, judgements = tuple(self._exchanges), tuple(self._judgements)
        count_tokens = self._plan.count_tokens

        def work() -> Report:
            return report(judge_across(exchanges, judgements, count_tokens))

        combined = await result_within(in_worker(work), self._judging_left())
        if combined is not None:
            return combined
        # What was not compared could take a pass back: no verdict may rest on it.
        return report([*judgements[:-1], *(replace(j, unseen=_UNJUDGED) for j in judgements[-1:])])

    def _judging_left(self) -> float:
        return self._judging_until - (time.perf_counter() - self._began)

    def _stop_after(self, error: ConnectError | None) -> _Stop | None:
        """Whether the last exchange says that the rest would be in vain."""
        last = self._exchanges[-1]
        address = self._plan.target.address
        if error is not None and len(self._exchanges) == 1:
            return _Stop(f"{address} cannot be reached: {error}; {error.remedy}")
        if last.head is not None:
            self._busy = self._busy or last.head.status in _BUSY
            if last.closed.how == "left" or last.closed.how not in STOPPED_BY_US:
                self._unanswered = 0
                return None
        elif error is None and self._answered() and last.closed.how not in STOPPED_BY_US:
            # An endpoint that hangs up on a hostile request, and answers others, keeps nobody.
            return None
        if last.closed.how == "deadline":  # the next look at the clock ends the run
            return None
        self._unanswered += 1
        if self._unanswered < _UNANSWERED or not (self._left or self._flights):
            return None
        detail = last.closed.detail or last.closed.how
        return _Stop(f"{address} is given up: {_UNANSWERED} requests in a row failed: {detail}")

    def _answered(self) -> bool:
        return any(exchange.head is not None for exchange in self._exchanges)

    async def _ask_for_longer(self, case: Case) -> None:
        """Put one more long question before the others, if the last answer was too short.

        Once that is answered, the plain question that is compared with the long stream becomes the
        same: not before, since its limit may be more than the model has room for.
        """
        plan = self._plan
        last = self._exchanges[-1]
        left = plan.budget.tokens - self._tokens
        twin = next((one for one in self._left if one.name == WHOLE_LONG.name), None)
        if twin is not None and case.name != STREAM_LONG.name and _is_answered(last):
            longer = plain_twin(case)
            self._left = deque(longer if one is twin else one for one in self._left)
            twin = longer
        if twin is not None:
            left = (left + plan.asked(twin)) // 2
        case = replace(case, tokens=plan.asked(case))
        more = next_question(
            case,
            last,
            self._judgements[-1],
            tokens_left=left if plan.ceiling is None else min(left, plan.ceiling),
            seconds=plan.long_seconds,
        )
        if more is None:
            return
        self._tokens += more.tokens
        if twin is not None:
            self._tokens += more.tokens - plan.asked(twin)
        self._left.appendleft(more)
        await asyncio.sleep(moment_for(more, case, last, time_of_day=time.time()))

    def _seconds_left(self) -> float:
        return self._plan.budget.seconds - (time.perf_counter() - self._began)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)


def _is_answered(exchange: Exchange) -> bool:
    return exchange.head is not None and exchange.head.status == 200


def _not_sent(stop: _Stop) -> Closed:
    return Closed(t=0.0, how=stop.how, detail="not sent: the run had ended")


def _unjudged(case: Case) -> Judgement:
    """Stand for the judgement of an exchange that there was no time to judge: nothing is seen."""
    return Judgement(
        case=case.name,
        outcome="unknown",
        finish_reason=None,
        usage=None,
        rules={},
        findings=(),
        unseen=_UNJUDGED,
    )
