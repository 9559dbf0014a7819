"""What a store answers; an answer is given only once what it says is durable."""

from msgspec import Struct

from cheapgpu.ledger.facts import Closure, RefusedFor


class Opened(Struct, frozen=True):
    """The attempt is open: it may be dispatched, once."""

    attempt_id: str


class Refused(Struct, frozen=True):
    """Nothing was written: nothing may be dispatched or paid."""

    reason: RefusedFor
    #: The attempt that has the idempotency key already; None for other reasons.
    attempt_id: str | None = None


class Recorded(Struct, frozen=True):
    """The outcome is on record."""

    #: Whether it came after the closure, and so decides nothing.
    late: bool
    #: Whether it was on record before.
    again: bool


class Closed(Struct, frozen=True):
    """The attempt is closed, by this call."""

    closure: Closure


class AlreadyClosed(Struct, frozen=True):
    """The attempt was closed before, as `closure` says."""

    closure: Closure
    #: Whether that is what was asked for now: then this is a replay, and a success.
    same: bool


class TooLate(Struct, frozen=True):
    """The deadline has passed by the store's clock: the outcome is on record, the end is zero."""

    deadline_us: int
    now_us: int


class Credited(Struct, frozen=True):
    """The money is on the account."""

    #: Whether it was before.
    again: bool
