"""The operations that change a SQLite ledger, each within a transaction of the writer.

They look first, so that what a caller may run into is an answer; what they write is one INSERT for
each fact, and the schema's triggers do and check the rest. `now_us` is the transaction's time.
"""

import sqlite3
from typing import Final, NamedTuple, cast

from msgspec.structs import astuple

from cheapgpu.ledger.answers import (
    AlreadyClosed,
    Closed,
    Credited,
    Opened,
    Recorded,
    Refused,
    TooLate,
)
from cheapgpu.ledger.bounds import check_range, check_reversal, over_limit
from cheapgpu.ledger.closing import ENDS, Occasion, Terms, believe, closed, end_of
from cheapgpu.ledger.errors import ConflictError, UnknownError
from cheapgpu.ledger.facts import OUTSIDE, Account, Admission, Closure, Credit, Limits, Outcome
from cheapgpu.ledger.rows import (
    CLOSURE,
    INSERT_ATTEMPT,
    INSERT_CLOSURE,
    INSERT_OUTCOME,
    OUTCOME,
    attempt_row,
    closure_of,
    insert,
    outcome_of,
    outcome_row,
)

_CREDIT: Final = Credit.__struct_fields__
_INSERT_ACCOUNT: Final = insert("account", Account.__struct_fields__)
_INSERT_CREDIT: Final = insert("credit", _CREDIT)
_SELECT_OUTCOME: Final = f"SELECT {', '.join(OUTCOME)} FROM outcome WHERE attempt_id = ?"  # noqa: S608 -- names of fields
_SELECT_CLOSURE: Final = f"SELECT {', '.join(CLOSURE)} FROM closure WHERE attempt_id = ?"  # noqa: S608 -- names of fields
_SELECT_CREDIT: Final = f"SELECT {', '.join(_CREDIT)} FROM credit WHERE credit_id = ?"  # noqa: S608 -- names of fields
_SELECT_MONEY: Final = "SELECT posted, held FROM account WHERE account_id = ?"
_SELECT_PARTIES: Final = """
SELECT posted, held, open_attempts, (SELECT kind FROM account WHERE account_id = ?)
FROM account WHERE account_id = ? AND kind = 'buyer'
"""
_SELECT_KEY: Final = "SELECT open_attempts, held + charged FROM key_use WHERE key_id = ?"
_SELECT_USED_KEY: Final = """
SELECT attempt_id, body_sha256,
  EXISTS (SELECT 1 FROM hold h WHERE h.attempt_id = a.attempt_id)
FROM attempt a WHERE buyer_id = ? AND idempotency_key = ?
"""
_TERMS: Final = ", ".join(f"a.{name}" for name in Terms._fields)
_SELECT_STATE: Final = f"""
SELECT {_TERMS}, o.late, EXISTS (SELECT 1 FROM closure c WHERE c.attempt_id = a.attempt_id)
FROM attempt a LEFT JOIN outcome o ON o.attempt_id = a.attempt_id WHERE a.attempt_id = ?
"""  # noqa: S608 -- names of fields
_SELECT_DUE: Final = f"""
SELECT {_TERMS}, o.outcome FROM hold h JOIN attempt a ON a.attempt_id = h.attempt_id
LEFT JOIN outcome o ON o.attempt_id = h.attempt_id
WHERE h.deadline_us <= ? ORDER BY h.deadline_us, h.attempt_id LIMIT ?
"""  # noqa: S608 -- names of fields


def add_account(db: sqlite3.Connection, account: Account) -> None:
    """Register an account, once."""
    kind = _kind(db, account.account_id)
    if kind is None:
        db.execute(_INSERT_ACCOUNT, astuple(account))
    elif kind != account.kind:
        raise ConflictError(f"the account {account.account_id} is there already, as {kind}")


def open_attempt(
    db: sqlite3.Connection, now_us: int, admission: Admission, limits: Limits
) -> Opened | Refused:
    """Open an attempt unless something speaks against it; the first reason is the answer."""
    row = db.execute(_SELECT_PARTIES, (admission.supplier_id, admission.buyer_id)).fetchone()
    if row is None:
        raise UnknownError(f"there is no buyer {admission.buyer_id}")
    *buyer, supplier = row
    if supplier != "supplier":
        raise UnknownError(f"there is no supplier {admission.supplier_id}")
    refused = _used_key(db, admission)
    if refused is None and now_us >= admission.deadline_us:
        refused = Refused("too_late")
    if refused is None:
        refused = _over_limit(db, admission, limits, buyer)
    if refused is not None:
        return refused
    try:
        db.execute(INSERT_ATTEMPT, attempt_row(admission))
    except sqlite3.IntegrityError as error:
        if str(error) == "attempt-exists":
            raise ConflictError(
                f"the attempt {admission.attempt_id} was opened before: an id is used once"
            ) from None
        raise
    return Opened(admission.attempt_id)


def record_outcome(db: sqlite3.Connection, now_us: int, outcome: Outcome) -> Recorded:
    """Write what was seen, unless just that is on record."""
    return _record(db, now_us, outcome, _state(db, outcome.attempt_id))


def close(
    db: sqlite3.Connection, now_us: int, outcome: Outcome, occasion: Occasion
) -> Closed | AlreadyClosed | TooLate:
    """Write what was seen, and how the attempt ends by it."""
    state = _state(db, outcome.attempt_id)
    end = end_of(occasion, state.terms, outcome)
    _record(db, now_us, outcome, state)
    if state.closed:
        row = db.execute(_SELECT_CLOSURE, (outcome.attempt_id,)).fetchone()
        before = closure_of(row)
        return AlreadyClosed(before, (before.kind, before.reason) == end)
    closure = closed(end, state.terms, outcome, now_us)
    if isinstance(closure, TooLate):
        return closure
    db.execute(INSERT_CLOSURE, astuple(closure))
    return Closed(closure)


def sweep(db: sqlite3.Connection, now_us: int, limit: int) -> tuple[Closure, ...]:
    """Close at zero what has reached its deadline."""
    closures = []
    for *terms, seen in db.execute(_SELECT_DUE, (now_us, limit)).fetchall():
        closure = closed(ENDS["deadline"][seen], Terms(*terms), None, now_us)
        db.execute(INSERT_CLOSURE, astuple(closure))
        closures.append(closure)
    return tuple(cast("list[Closure]", closures))


def credit(db: sqlite3.Connection, fact: Credit) -> Credited | Refused:
    """Move money between an account and the outside, once."""
    row = db.execute(_SELECT_CREDIT, (fact.credit_id,)).fetchone()
    if row is not None:
        if row != astuple(fact):
            raise ConflictError(f"the credit {fact.credit_id} is there already, with other content")
        return Credited(again=True)
    kind = _kind(db, fact.account_id)
    if kind is None or kind == "outside":
        raise UnknownError(f"there is no account {fact.account_id} that can be credited")
    if fact.reverses is not None:
        _check_reversal(db, fact)
    posted, held = db.execute(_SELECT_MONEY, (fact.account_id,)).fetchone()
    outside, _ = db.execute(_SELECT_MONEY, (OUTSIDE,)).fetchone()
    check_range(posted + fact.amount, outside - fact.amount)
    if kind != "operator" and posted + fact.amount < held:
        return Refused("overspend")
    db.execute(_INSERT_CREDIT, astuple(fact))
    return Credited(again=False)


class _State(NamedTuple):
    """What is on record of an attempt, as far as its end needs it."""

    terms: Terms
    #: None while nothing was seen; else whether that came after the closure.
    late: bool | None
    closed: bool


def _state(db: sqlite3.Connection, attempt_id: str) -> _State:
    row = db.execute(_SELECT_STATE, (attempt_id,)).fetchone()
    if row is None:
        raise UnknownError(f"there is no attempt {attempt_id}")
    *terms, late, is_closed = row
    return _State(Terms(*terms), None if late is None else bool(late), bool(is_closed))


def _record(db: sqlite3.Connection, now_us: int, outcome: Outcome, state: _State) -> Recorded:
    believe(state.terms, outcome)
    if state.late is None:
        db.execute(INSERT_OUTCOME, outcome_row(outcome, now_us, late=state.closed))
        return Recorded(late=state.closed, again=False)
    if outcome_of(db.execute(_SELECT_OUTCOME, (outcome.attempt_id,)).fetchone()) != outcome:
        raise ConflictError(f"another outcome of {outcome.attempt_id} is on record, and stands")
    return Recorded(late=state.late, again=True)


def _used_key(db: sqlite3.Connection, admission: Admission) -> Refused | None:
    """Whether the buyer has used the idempotency key before."""
    if admission.idempotency_key is None:
        return None
    key = (admission.buyer_id, admission.idempotency_key)
    row = db.execute(_SELECT_USED_KEY, key).fetchone()
    if row is None:
        return None
    attempt_id, body_sha256, is_open = row
    if body_sha256 != admission.body_sha256:
        return Refused("idempotency_mismatch", attempt_id)
    return Refused("idempotency_open" if is_open else "idempotency_finished", attempt_id)


def _over_limit(
    db: sqlite3.Connection, admission: Admission, limits: Limits, buyer: list[int]
) -> Refused | None:
    """Whether the attempt is one too many, or too dear, for what its buyer has."""
    posted, held, buyer_open = buyer
    key_open = key_cost = 0
    if limits.key_open is not None or limits.key_spend is not None:
        row = db.execute(_SELECT_KEY, (admission.key_id,)).fetchone()
        key_open, key_cost = row or (0, 0)
    reason = over_limit(
        limits,
        buyer_open=buyer_open,
        key_open=key_open,
        key_cost=key_cost + admission.reserved,
        left=posted - held - admission.reserved,
    )
    return reason and Refused(reason)


def _kind(db: sqlite3.Connection, account_id: str) -> str | None:
    row = db.execute("SELECT kind FROM account WHERE account_id = ?", (account_id,)).fetchone()
    return row and str(row[0])


def _check_reversal(db: sqlite3.Connection, fact: Credit) -> None:
    row = db.execute(_SELECT_CREDIT, (fact.reverses,)).fetchone()
    if row is None:
        raise UnknownError(f"there is no credit {fact.reverses}")
    reversed_before = db.execute("SELECT 1 FROM credit WHERE reverses = ?", (fact.reverses,))
    check_reversal(fact, Credit(**dict(zip(_CREDIT, row, strict=True))), reversed_before.fetchone())
