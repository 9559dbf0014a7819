"""The seam: what every store of the ledger does, whatever it keeps its rows in.

Each operation answers only when what it answers is durable. One that raises has changed nothing,
with one exception: UnavailableError while the connection or the disk fails may leave open whether
an attempt was opened. Then it must not be dispatched; the sweeper closes it.
"""

from typing import Protocol

from cheapgpu.ledger.answers import (
    AlreadyClosed,
    Closed,
    Credited,
    Opened,
    Recorded,
    Refused,
    TooLate,
)
from cheapgpu.ledger.facts import (
    ALL_ATTEMPTS,
    NO_LIMITS,
    Account,
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


class Store(Protocol):
    """Attempts, outcomes, closures and accounts. All may raise BusyError and UnavailableError."""

    async def add_account(self, account: Account) -> None:
        """Register an account; again is no change, as another kind raises ConflictError."""

    async def open_attempt(
        self, admission: Admission, limits: Limits = NO_LIMITS
    ) -> Opened | Refused:
        """Open an attempt and take its hold.

        Raises UnknownError for accounts that are not there, ConflictError for an id that is.
        """

    async def record_outcome(self, outcome: Outcome) -> Recorded:
        """Put on record what was seen, closed or not.

        Raises UnknownError for an attempt that is not there, ConflictError if something else was
        seen before, IllegalError for a complete answer with more tokens than were admitted.
        """

    async def settle(self, outcome: Outcome) -> Closed | AlreadyClosed | TooLate:
        """Record a complete outcome and charge it, until the deadline.

        Raises as `record_outcome`; IllegalError too where the outcome is not complete, or the mode
        is `evidence`.
        """

    async def zero(self, outcome: Outcome) -> Closed | AlreadyClosed:
        """Record an outcome and close at zero, at once: complete, not charged; refused; not sent.

        Raises as `record_outcome`; IllegalError too for what must wait for the deadline.
        """

    async def sweep(self, limit: int = 256) -> tuple[Closure, ...]:
        """Close at zero what is open at its deadline, the earliest first, at most `limit`."""

    async def credit(self, credit: Credit) -> Credited | Refused:
        """Move money between an account and the outside; the reversal of a credit is one too.

        Raises UnknownError for an account or reversed credit that is not there, ConflictError for
        an id that is there with another content, or what was reversed before, MoneyError where the
        balance would not fit 64 bits.
        """

    async def attempt(self, attempt_id: str) -> Attempt | None:
        """All that is recorded of an attempt."""

    async def attempt_of_key(self, buyer_id: str, idempotency_key: str) -> Attempt | None:
        """The attempt that a buyer opened with an idempotency key."""

    async def attempts(self, selection: Selection = ALL_ATTEMPTS) -> tuple[Attempt, ...]:
        """Some attempts, the newest first."""

    async def balance(self, account_id: str) -> Balance | None:
        """What an account has."""

    async def entries(
        self, account_id: str, after: str = "", limit: int = 100
    ) -> tuple[Entry, ...]:
        """Lines of an account in the order of their causes, those after the cause `after`."""

    async def holds(self) -> Holds:
        """How much is open, and since when."""

    async def close(self) -> None:
        """Finish what was begun, and let go of the rows."""
