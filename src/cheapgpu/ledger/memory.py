"""The ledger in memory: the stand-in for tests and trials, and what the real stores are held to.

It answers as they do, and forgets everything at its end. Nothing in it awaits, so that each
operation is whole. What they count, it sums anew from its rows each time, where it can.
"""

from cheapgpu.ledger.answers import (
    AlreadyClosed,
    Closed,
    Credited,
    Opened,
    Recorded,
    Refused,
    TooLate,
)
from cheapgpu.ledger.bounds import check_page, check_range, check_reversal, over_limit
from cheapgpu.ledger.clock import Clock, steady_clock
from cheapgpu.ledger.closing import ENDS, Occasion, believe, closed, end_of, terms_of
from cheapgpu.ledger.errors import ClosedError, ConflictError, IllegalError, UnknownError
from cheapgpu.ledger.facts import (
    ALL_ATTEMPTS,
    NO_LIMITS,
    OPERATOR,
    OUTSIDE,
    Account,
    AccountKind,
    Admission,
    Attempt,
    Balance,
    Closure,
    Credit,
    Entry,
    Holds,
    Limits,
    Outcome,
    Selection,
)


class MemoryStore:
    """A `Store` that keeps nothing; see there for what each operation promises."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or steady_clock()
        self._accounts: dict[str, AccountKind] = {OPERATOR: "operator", OUTSIDE: "outside"}
        self._admissions: dict[str, Admission] = {}
        self._idempotent: dict[tuple[str, str], str] = {}
        self._open: dict[str, Admission] = {}
        #: The outcome, when it was recorded, and whether that was after the closure.
        self._outcomes: dict[str, tuple[Outcome, int, bool]] = {}
        self._closures: dict[str, Closure] = {}
        self._credits: dict[str, Credit] = {}
        self._entries: list[Entry] = []
        self._posted: dict[str, int] = {}
        self._charged: dict[str, int] = {}
        self._closed = False

    async def add_account(self, account: Account) -> None:
        """See `Store`."""
        self._check_open()
        if self._accounts.setdefault(account.account_id, account.kind) != account.kind:
            raise ConflictError(f"the account {account.account_id} is there already")

    async def open_attempt(
        self, admission: Admission, limits: Limits = NO_LIMITS
    ) -> Opened | Refused:
        """See `Store`."""
        self._check_open()
        for account_id, kind in (
            (admission.buyer_id, "buyer"),
            (admission.supplier_id, "supplier"),
        ):
            if self._accounts.get(account_id) != kind:
                raise UnknownError(f"there is no {kind} {account_id}")
        refused = self._refused(admission, limits)
        if refused is not None:
            return refused
        if admission.attempt_id in self._admissions:
            raise ConflictError(f"the attempt {admission.attempt_id} was opened before")
        self._admissions[admission.attempt_id] = self._open[admission.attempt_id] = admission
        if admission.idempotency_key is not None:
            key = (admission.buyer_id, admission.idempotency_key)
            self._idempotent[key] = admission.attempt_id
        return Opened(admission.attempt_id)

    async def record_outcome(self, outcome: Outcome) -> Recorded:
        """See `Store`."""
        self._check_open()
        believe(terms_of(self._admitted(outcome.attempt_id)), outcome)
        before = self._outcomes.get(outcome.attempt_id)
        if before is None:
            late = outcome.attempt_id in self._closures
            self._outcomes[outcome.attempt_id] = (outcome, self._clock(), late)
            return Recorded(late=late, again=False)
        if before[0] != outcome:
            raise ConflictError(f"another outcome of {outcome.attempt_id} is on record")
        return Recorded(late=before[2], again=True)

    async def settle(self, outcome: Outcome) -> Closed | AlreadyClosed | TooLate:
        """See `Store`."""
        return await self._close_by("settle", outcome)

    async def zero(self, outcome: Outcome) -> Closed | AlreadyClosed:
        """See `Store`."""
        answer = await self._close_by("zero", outcome)
        if isinstance(answer, TooLate):  # the deadline binds what is charged, only
            raise IllegalError("a zero closure is never too late")
        return answer

    async def sweep(self, limit: int = 256) -> tuple[Closure, ...]:
        """See `Store`."""
        check_page(limit)
        self._check_open()
        now_us = self._clock()
        due = [a for a in self._open.values() if a.deadline_us <= now_us]
        due.sort(key=lambda admission: (admission.deadline_us, admission.attempt_id))
        closures = []
        for admission in due[:limit]:
            seen = self._outcomes.get(admission.attempt_id)
            end = ENDS["deadline"][seen and seen[0].outcome]
            closure = closed(end, terms_of(admission), None, now_us)
            if isinstance(closure, Closure):
                self._write(admission, closure)
                closures.append(closure)
        return tuple(closures)

    async def credit(self, credit: Credit) -> Credited | Refused:
        """See `Store`."""
        self._check_open()
        before = self._credits.get(credit.credit_id)
        if before is not None:
            if before != credit:
                raise ConflictError(f"the credit {credit.credit_id} is there already")
            return Credited(again=True)
        kind = self._accounts.get(credit.account_id, "outside")
        if kind == "outside":
            raise UnknownError(f"there is no account {credit.account_id} that can be credited")
        if credit.reverses is not None:
            self._check_reversal(credit, credit.reverses)
        balance = self._balance(credit.account_id)
        check_range(balance.posted + credit.amount, self._balance(OUTSIDE).posted - credit.amount)
        if kind != "operator" and balance.available + credit.amount < 0:
            return Refused("overspend")
        self._credits[credit.credit_id] = credit
        self._post(credit.account_id, credit.credit_id, credit.amount, credit.made_us)
        self._post(OUTSIDE, credit.credit_id, -credit.amount, credit.made_us)
        return Credited(again=False)

    async def attempt(self, attempt_id: str) -> Attempt | None:
        """See `Store`."""
        self._check_open()
        return self._attempt(attempt_id) if attempt_id in self._admissions else None

    async def attempt_of_key(self, buyer_id: str, idempotency_key: str) -> Attempt | None:
        """See `Store`."""
        self._check_open()
        attempt_id = self._idempotent.get((buyer_id, idempotency_key))
        return self._attempt(attempt_id) if attempt_id is not None else None

    async def attempts(self, selection: Selection = ALL_ATTEMPTS) -> tuple[Attempt, ...]:
        """See `Store`."""
        check_page(selection.limit)
        self._check_open()
        ids = [
            attempt_id
            for attempt_id, admission in sorted(self._admissions.items(), reverse=True)
            if selection.buyer_id in (None, admission.buyer_id)
            and selection.supplier_id in (None, admission.supplier_id)
            and selection.key_id in (None, admission.key_id)
            and (selection.before is None or attempt_id < selection.before)
            and selection.is_open in (None, attempt_id in self._open)
        ]
        return tuple(self._attempt(attempt_id) for attempt_id in ids[: selection.limit])

    async def balance(self, account_id: str) -> Balance | None:
        """See `Store`."""
        self._check_open()
        return self._balance(account_id) if account_id in self._accounts else None

    async def entries(
        self, account_id: str, after: str = "", limit: int = 100
    ) -> tuple[Entry, ...]:
        """See `Store`."""
        check_page(limit)
        self._check_open()
        lines = [e for e in self._entries if e.account_id == account_id and e.cause_id > after]
        return tuple(sorted(lines, key=lambda entry: entry.cause_id)[:limit])

    async def holds(self) -> Holds:
        """See `Store`."""
        self._check_open()
        return Holds(
            count=len(self._open),
            reserved=sum(admission.reserved for admission in self._open.values()),
            oldest_us=min((a.opened_us for a in self._open.values()), default=None),
            next_deadline_us=min((a.deadline_us for a in self._open.values()), default=None),
        )

    async def close(self) -> None:
        """See `Store`."""
        self._closed = True

    async def _close_by(
        self, occasion: Occasion, outcome: Outcome
    ) -> Closed | AlreadyClosed | TooLate:
        self._check_open()
        admission = self._admitted(outcome.attempt_id)
        terms = terms_of(admission)
        end = end_of(occasion, terms, outcome)
        await self.record_outcome(outcome)
        before = self._closures.get(outcome.attempt_id)
        if before is not None:
            return AlreadyClosed(before, (before.kind, before.reason) == end)
        closure = closed(end, terms, outcome, self._clock())
        if isinstance(closure, TooLate):
            return closure
        self._write(admission, closure)
        return Closed(closure)

    def _write(self, admission: Admission, closure: Closure) -> None:
        """Close an open attempt, and move the money."""
        cause, at_us = closure.attempt_id, closure.closed_us
        self._closures[cause] = closure
        del self._open[cause]
        self._charged[admission.key_id] = self._charged.get(admission.key_id, 0) + closure.charge
        self._post(admission.buyer_id, cause, -closure.charge, at_us)
        self._post(admission.supplier_id, cause, closure.supplier_credit, at_us)
        self._post(OPERATOR, cause, closure.fee, at_us)

    def _post(self, account_id: str, cause_id: str, amount: int, at_us: int) -> None:
        if amount:
            entry = Entry(account_id=account_id, cause_id=cause_id, amount=amount, at_us=at_us)
            self._entries.append(entry)
            self._posted[account_id] = self._posted.get(account_id, 0) + amount

    def _refused(self, admission: Admission, limits: Limits) -> Refused | None:
        """The first thing that speaks against opening an attempt."""
        if admission.idempotency_key is not None:
            other = self._idempotent.get((admission.buyer_id, admission.idempotency_key))
            if other is not None:
                if self._admissions[other].body_sha256 != admission.body_sha256:
                    return Refused("idempotency_mismatch", other)
                is_open = other in self._open
                return Refused("idempotency_open" if is_open else "idempotency_finished", other)
        if self._clock() >= admission.deadline_us:
            return Refused("too_late")
        of_key = [a for a in self._open.values() if a.key_id == admission.key_id]
        spent = self._charged.get(admission.key_id, 0) + sum(a.reserved for a in of_key)
        balance = self._balance(admission.buyer_id)
        reason = over_limit(
            limits,
            buyer_open=balance.open_attempts,
            key_open=len(of_key),
            key_cost=spent + admission.reserved,
            left=balance.available - admission.reserved,
        )
        return None if reason is None else Refused(reason)

    def _balance(self, account_id: str) -> Balance:
        of_account = [a for a in self._open.values() if a.buyer_id == account_id]
        return Balance(
            account_id=account_id,
            kind=self._accounts[account_id],
            posted=self._posted.get(account_id, 0),
            held=sum(admission.reserved for admission in of_account),
            open_attempts=len(of_account),
        )

    def _attempt(self, attempt_id: str) -> Attempt:
        outcome, recorded_us, late = self._outcomes.get(attempt_id, (None, None, False))
        return Attempt(
            admission=self._admissions[attempt_id],
            outcome=outcome,
            recorded_us=recorded_us,
            late=late,
            closure=self._closures.get(attempt_id),
        )

    def _admitted(self, attempt_id: str) -> Admission:
        admission = self._admissions.get(attempt_id)
        if admission is None:
            raise UnknownError(f"there is no attempt {attempt_id}")
        return admission

    def _check_reversal(self, credit: Credit, reverses: str) -> None:
        original = self._credits.get(reverses)
        if original is None:
            raise UnknownError(f"there is no credit {reverses}")
        again = any(other.reverses == reverses for other in self._credits.values())
        check_reversal(credit, original, again)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the ledger is closed")
