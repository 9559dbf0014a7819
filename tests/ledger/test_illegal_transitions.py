"""Each wrong step, as raw SQL on a plain connection to the real file: the schema itself refuses it.

The connection has no PRAGMA of ours: foreign keys are off, as in any tool that opens the file. Each
step is tried as it is, and with every conflict clause of SQLite, which reach into triggers. Refused
means: whatever SQLite said, not a byte of any row has changed.

Of the transitions in the design's list, some cannot be written at all:

- A settlement or a zero closure with another deadline than admitted, and a closure that is charged
  to another buyer: a closure names neither; both are looked up in the attempt.
- A closure while the hold stays, and an attempt without a hold: a statement on the one table ends
  or makes the row of the other. The step that would leave or take it, DELETE FROM hold or INSERT
  INTO hold, is among those below.
"""

# ruff: noqa: S608 -- the statements are the test

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cheapgpu.ledger.rows import INSERT_ATTEMPT, INSERT_OUTCOME, attempt_row, outcome_row
from cheapgpu.ledger.sqlite_store import open_sqlite
from tests.ledger.facts import (
    CHARGE,
    DEADLINE,
    FEE,
    HOLD,
    NOW,
    Clock,
    a_credit,
    an_admission,
    an_id,
    complete,
    furnished,
    run,
    seen,
)

#: Attempts of the file: open without an outcome; open and complete; open and failed; settled;
#: closed at zero; open in mode evidence, complete; opened with an idempotency key; refused, open;
#: closed by the sweeper, with nothing seen.
BARE, DONE, FAILED, SETTLED, ZERO, QUOTED, KEYED, TURNED_AWAY, SWEPT = map(an_id, range(1, 10))
AT = NOW + 1_000_000


def closure(
    attempt: str,
    kind: str = "zero",
    reason: str = "unknown",
    charge: object = 0,
    fee: object = 0,
    rest: object = 0,
    at: int = AT,
) -> str:
    """The statement that inserts a closure."""
    values = f"'{attempt}', '{kind}', '{reason}', {charge}, {fee}, {rest}, {at}"
    return f"INSERT INTO closure VALUES ({values})"


def settle(
    attempt: str, charge: object = CHARGE, fee: object = FEE, rest: object = None, at: int = AT
) -> str:
    """The statement that settles; the right one for the attempt DONE."""
    rest = CHARGE - FEE if rest is None else rest
    return closure(attempt, "settle", "complete", charge, fee, rest, at)


def credit(
    account_id: str,
    amount: int,
    *,
    credit_id: str | None = None,
    reason: str = "x",
    reverses: str | None = None,
) -> str:
    """The statement that inserts a credit."""
    undone = "NULL" if reverses is None else f"'{reverses}'"
    values = f"'{credit_id or an_id(98)}', '{account_id}', {amount}, '{reason}', {undone}, {AT}"
    return f"INSERT INTO credit VALUES ({values})"


def account(account_id: str, kind: str, *, posted: int = 0, held: int = 0) -> str:
    """The statement that inserts an account."""
    values = f"'{account_id}', '{kind}', {posted}, {held}"
    return f"INSERT INTO account (account_id, kind, posted, held) VALUES ({values})"


def attempt_like(attempt: str, **changes: object) -> str:
    """The statement that inserts a copy of an attempt with another id and some other values."""
    columns = [column for column, _ in COLUMNS["attempt"]]
    changed = {"attempt_id": f"'{an_id(99)}'", "idempotency_key": "NULL", "body_sha256": "NULL"}
    changed |= {name: str(value) for name, value in changes.items()}
    picked = ", ".join(changed.get(column, column) for column in columns)
    return f"INSERT INTO attempt SELECT {picked} FROM attempt WHERE attempt_id = '{attempt}'"


def outcome_like(attempt: str, **changes: object) -> str:
    """The statement that gives the attempt BARE a copy of another's outcome, changed."""
    columns = [column for column, _ in COLUMNS["outcome"]]
    changed = {"attempt_id": f"'{BARE}'"} | {name: str(value) for name, value in changes.items()}
    picked = ", ".join(changed.get(column, column) for column in columns)
    return f"INSERT INTO outcome SELECT {picked} FROM outcome WHERE attempt_id = '{attempt}'"


def _columns() -> dict[str, list[tuple[str, str]]]:
    db = sqlite3.connect(":memory:")
    schema = Path("src/cheapgpu/ledger/migrations/0001_ledger.sqlite.sql").read_text()
    db.executescript(schema)
    tables = [n for (n,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {
        table: [(row[1], row[2]) for row in db.execute(f"PRAGMA table_info({table})")]
        for table in tables
    }
    db.close()
    return found


COLUMNS = _columns()

ILLEGAL = {
    # Closing.
    "second settlement": settle(SETTLED),
    "settlement after zero": settle(ZERO),
    "zero after settlement": closure(SETTLED, at=DEADLINE),
    "settlement without an outcome": settle(BARE),
    "settlement of a failure": settle(FAILED),
    "settlement with the reason failed": closure(DONE, "settle", "failed", 360, 36, 324),
    "settlement in mode evidence": settle(QUOTED),
    "settlement in mode evidence, of nothing": settle(QUOTED, 0, 0, 0),
    "settlement after the deadline": settle(DONE, at=DEADLINE + 1),
    "settlement before the opening": settle(DONE, at=NOW - 1),
    "charge above the hold": settle(DONE, HOLD + 1, 45, HOLD + 1 - 45),
    "charge above what the tokens cost": settle(DONE, CHARGE + 1, FEE, CHARGE + 1 - FEE),
    "charge below what the tokens cost": settle(DONE, CHARGE - 1, 35, CHARGE - 36),
    "negative charge": settle(DONE, -1, 0, -1),
    "charge as text": settle(DONE, "'360 nano'", FEE, CHARGE - FEE),
    "charge as a real number": settle(DONE, 360.5, FEE, 324.5),
    "fee above the rate": settle(DONE, CHARGE, FEE + 1, CHARGE - FEE - 1),
    "fee below the rate": settle(DONE, CHARGE, FEE - 1, CHARGE - FEE + 1),
    "supplier's part that is not the rest": settle(DONE, CHARGE, FEE, CHARGE),
    "zero for a failure before the deadline": closure(FAILED, reason="failed", at=DEADLINE - 1),
    "zero for the unknown before the deadline": closure(BARE, at=DEADLINE - 1),
    "zero, late, before the deadline": closure(DONE, reason="late", at=DEADLINE - 1),
    "zero with a charge": closure(BARE, charge=1, rest=1, at=DEADLINE),
    "zero as if not sent": closure(BARE, reason="not_sent"),
    "zero as if refused": closure(FAILED, reason="refused"),
    "zero as not charged, of a failure": closure(FAILED, reason="not_charged"),
    "zero as unknown, of a complete answer": closure(DONE, at=DEADLINE),
    "zero as unknown, of a failure": closure(FAILED, at=DEADLINE),
    "zero with the reason complete": closure(DONE, reason="complete", at=DEADLINE),
    "zero without a reason": closure(BARE, at=DEADLINE).replace("'unknown'", "NULL"),
    "another kind of closure": closure(BARE, "free", at=DEADLINE),
    "closure of an attempt never opened": closure(an_id(77), at=DEADLINE),
    "closure without an attempt's id": closure(BARE, at=DEADLINE).replace(f"'{BARE}'", "NULL"),
    # Holds.
    "re-opened after settlement": f"INSERT INTO hold VALUES ('{SETTLED}', {DEADLINE}, {HOLD})",
    "second hold for an open attempt": f"INSERT INTO hold VALUES ('{BARE}', {DEADLINE}, {HOLD})",
    "hold for no attempt": f"INSERT INTO hold VALUES ('{an_id(77)}', {DEADLINE}, {HOLD})",
    "hold dropped without a closure": f"DELETE FROM hold WHERE attempt_id = '{BARE}'",
    "all holds dropped": "DELETE FROM hold",
    "deadline of a hold moved": "UPDATE hold SET deadline_us = deadline_us + 1",
    "hold made smaller": "UPDATE hold SET reserved = 0",
    "hold given to another attempt": (
        f"UPDATE hold SET attempt_id = '{SETTLED}' WHERE attempt_id = '{BARE}'"
    ),
    # Opening.
    "same attempt twice": attempt_like(BARE, attempt_id=f"'{BARE}'"),
    "same attempt again after its end": attempt_like(SETTLED, attempt_id=f"'{SETTLED}'"),
    "same idempotency key twice": attempt_like(
        KEYED, idempotency_key="'once'", body_sha256="body_sha256"
    ),
    "idempotency key without a digest": attempt_like(BARE, idempotency_key="'twice'"),
    "hold below price by ceilings": attempt_like(BARE, hold=HOLD - 1, reserved=HOLD - 1),
    "hold above price by ceilings": attempt_like(BARE, hold=HOLD + 1, reserved=HOLD + 1),
    "nothing reserved in mode charge": attempt_like(BARE, reserved=0),
    "overspend": attempt_like(BARE, price_in=10**9, hold=10**8 + 250, reserved=10**8 + 250),
    "deadline over an hour away": attempt_like(BARE, deadline_us=NOW + 3_600_000_001),
    "deadline at the opening": attempt_like(BARE, deadline_us=NOW),
    "deadline that is no integer": attempt_like(BARE, deadline_us=f"'{DEADLINE}.5'"),
    "price beyond its limit": attempt_like(BARE, price_in=10**12 + 1),
    "ceiling beyond its limit": attempt_like(BARE, in_ceiling=2_000_001),
    "negative ceiling": attempt_like(BARE, in_ceiling=-1),
    "fee above the whole": attempt_like(BARE, fee_bps=10_001),
    "another mode": attempt_like(BARE, mode="'free'"),
    "unknown buyer": attempt_like(BARE, buyer_id="'nobody'"),
    "supplier as buyer": attempt_like(BARE, buyer_id="'sue'"),
    "unknown supplier": attempt_like(BARE, supplier_id="'nobody'"),
    "deadline of an attempt moved": "UPDATE attempt SET deadline_us = deadline_us + 1",
    "price changed afterwards": "UPDATE attempt SET price_out = 0",
    "attempt deleted": f"DELETE FROM attempt WHERE attempt_id = '{BARE}'",
    # Outcomes.
    "second outcome": outcome_like(DONE, attempt_id=f"'{FAILED}'"),
    "outcome of no attempt": outcome_like(DONE, attempt_id=f"'{an_id(77)}'"),
    "complete without usage": outcome_like(DONE, usage_json="NULL"),
    "complete without counts": outcome_like(DONE, in_tokens="NULL", out_tokens="NULL"),
    "complete without evidence": outcome_like(DONE, supplier_body_sha256="NULL"),
    "complete without a finish reason": outcome_like(DONE, finish_reason="NULL"),
    "complete with a broken rule": outcome_like(DONE, broken="'[\"stream/done-last\"]'"),
    "complete with another status": outcome_like(DONE, status=500),
    "complete above the ceiling": outcome_like(
        DONE, in_tokens=101,
        usage_json="'{\"prompt_tokens\":101,\"completion_tokens\":40,\"total_tokens\":141}'",
    ),
    "counts that are not those reported": outcome_like(DONE, in_tokens=79),
    "counts that do not add up": outcome_like(
        DONE,
        usage_json='\'{"prompt_tokens":80,"completion_tokens":40,"total_tokens":121}\'',
    ),
    "counts that were not reported": outcome_like(DONE, usage_json="'{}'"),
    "usage that is no JSON": outcome_like(DONE, usage_json="'none'"),
    "not sent, with an answer": outcome_like(DONE, outcome="'not_sent'"),
    "another outcome": outcome_like(DONE, outcome="'perfect'"),
    "late before the closure": outcome_like(DONE, late=1),
    "in time after the closure": outcome_like(DONE, attempt_id=f"'{SWEPT}'"),
    "outcome changed": "UPDATE outcome SET in_tokens = 1",
    "outcome explained otherwise": "UPDATE outcome SET reason = 'other'",
    "failure made complete": (
        f"UPDATE outcome SET outcome = 'complete' WHERE attempt_id = '{FAILED}'"
    ),
    "outcome deleted": "DELETE FROM outcome",
    # What was written stays.
    "closure changed": "UPDATE closure SET charge = 0, fee = 0, supplier_credit = 0",
    "closure deleted": f"DELETE FROM closure WHERE attempt_id = '{SETTLED}'",
    "entry changed": "UPDATE entry SET amount = amount + 1",
    "entry deleted": "DELETE FROM entry",
    "credit changed": "UPDATE credit SET amount = amount + 1",
    "credit deleted": "DELETE FROM credit",
    "use of a key forgotten": "DELETE FROM key_use",
    # Money out of thin air.
    "balance raised": "UPDATE account SET posted = posted + 1 WHERE account_id = 'ann'",
    "balance raised with an old cause": (
        f"UPDATE account SET posted = posted - {CHARGE}, posted_by = '{SETTLED}' "
        "WHERE account_id = 'ann'"
    ),
    "balances exchanged": "UPDATE account SET posted = -posted",
    "cause changed only": f"UPDATE account SET posted_by = '{SETTLED}'",
    "hold released by hand": "UPDATE account SET held = 0, open_attempts = 0",
    "hold released by an attempt": (
        f"UPDATE account SET held = held - {HOLD}, open_attempts = open_attempts - 1, "
        f"held_by = '{BARE}' WHERE account_id = 'ann'"
    ),
    "hold raised by an attempt": (
        f"UPDATE account SET held = held + {HOLD}, open_attempts = open_attempts + 1, "
        f"held_by = '{BARE}' WHERE account_id = 'ann'"
    ),
    "hold released by a closed attempt": (
        f"UPDATE account SET held = held - {HOLD}, open_attempts = open_attempts - 1, "
        f"held_by = '{SETTLED}' WHERE account_id = 'ann'"
    ),
    "entry without a cause": f"INSERT INTO entry VALUES ('ann', '{an_id(77)}', 5, {AT})",
    "entry for an open attempt": f"INSERT INTO entry VALUES ('ann', '{BARE}', 5, {AT})",
    "second entry of a closure": f"INSERT INTO entry VALUES ('ann', '{SETTLED}', -{CHARGE}, {AT})",
    "entry for another account": f"INSERT INTO entry VALUES ('bob', '{SETTLED}', 5, {AT})",
    "entry for no account": f"INSERT INTO entry VALUES ('eve', '{SETTLED}', 5, {AT})",
    "entry of a zero closure": f"INSERT INTO entry VALUES ('ann', '{ZERO}', 5, {AT})",
    "account that begins with money": account("eve", "buyer", posted=5),
    "account that begins with a hold": account("eve", "operator", held=5),
    "second operator": account("eve", "operator"),
    "account again": account("ann", "buyer"),
    "buyer made operator": "UPDATE account SET kind = 'operator' WHERE account_id = 'ann'",
    "account renamed": "UPDATE account SET account_id = 'eve' WHERE account_id = 'ann'",
    "account deleted": "DELETE FROM account WHERE account_id = 'bob'",
    "credit of nothing": credit("ann", 0),
    "credit without a reason": credit("ann", 5, reason=""),
    "credit again": credit("ann", 5, credit_id=an_id(900)),
    "credit of no account": credit("eve", 5),
    "credit of the outside": credit("outside", 5),
    "credit with an attempt's id": credit("ann", 5, credit_id=SETTLED),
    "withdrawal of what is held":  credit("ann", -90000),
    "credit beyond 64 bits":  credit("ann", 2**63 - 1),
    "reversal in part":  credit("ann", -5, reverses=an_id(901)),
    "reversal of nothing":  credit("ann", -5, reverses=an_id(77)),
    "second reversal":  credit("ann", -7, reverses=an_id(902)),
    "reversal of a reversal":  credit("ann", 7, reverses=an_id(903)),
}  # fmt: skip


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A file that the real store has written, on a connection of anyone's."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    run(write(path))
    db = sqlite3.connect(path, isolation_level=None)
    yield db
    db.close()


async def write(path: Path) -> None:
    """Bring attempts into every state."""
    clock = Clock(AT)
    store = await open_sqlite(path, clock)
    await furnished(store, 10_000)
    for number in range(1, 9):
        mode = "evidence" if number == 6 else "charge"
        key = ("once", b"k" * 32) if number == 7 else (None, None)
        await store.open_attempt(
            an_admission(number, mode=mode, idempotency_key=key[0], body_sha256=key[1])
        )
    await store.record_outcome(complete(2))
    await store.record_outcome(seen("failed", 3))
    await store.settle(complete(4))
    await store.zero(seen("not_sent", 5))
    await store.record_outcome(complete(6))
    await store.record_outcome(seen("refused", 8, status=503, sent_us=NOW, head_us=NOW))
    await store.open_attempt(an_admission(9, deadline_us=AT + 1))
    clock.now_us = AT + 1
    await store.sweep()
    await store.credit(a_credit(901, amount=6))
    await store.credit(a_credit(902, amount=7))
    await store.credit(a_credit(903, amount=-7, reverses=an_id(902)))
    await store.close()


CLAUSES = ("", "OR ABORT", "OR FAIL", "OR IGNORE", "OR REPLACE", "OR ROLLBACK")
#: Every step with every clause that it can be written with: DELETE has none.
TRIED = [
    (step, clause)
    for step, statement in ILLEGAL.items()
    for clause in (CLAUSES[:1] if statement.startswith("DELETE") else CLAUSES)
]


@pytest.mark.parametrize(("step", "clause"), TRIED)
def test_the_schema_refuses(ledger: sqlite3.Connection, step: str, clause: str) -> None:
    """No wrong step changes anything, whatever conflict clause it is written with."""
    verb, rest = ILLEGAL[step].split(" ", 1)
    before = list(ledger.iterdump())
    if clause == "OR IGNORE":  # may do nothing, in silence
        with contextlib.suppress(sqlite3.Error):
            ledger.execute(f"{verb} {clause} {rest}")
    else:
        with pytest.raises(sqlite3.Error):
            ledger.execute(f"{verb} {clause} {rest}")
    assert list(ledger.iterdump()) == before


LEGAL = {
    "settlement": settle(DONE),
    "settlement at the deadline": settle(DONE, at=DEADLINE),
    "zero, not charged": closure(DONE, reason="not_charged"),
    "zero, not charged, in mode evidence": closure(QUOTED, reason="not_charged"),
    "zero, refused": closure(TURNED_AWAY, reason="refused"),
    "zero at the deadline, nothing seen": closure(BARE, at=DEADLINE),
    "zero at the deadline, failed": closure(FAILED, reason="failed", at=DEADLINE),
    "zero at the deadline, complete": closure(DONE, reason="late", at=DEADLINE),
    "another attempt": attempt_like(BARE),
    "an outcome": outcome_like(DONE),
    "an outcome after the closure": outcome_like(DONE, attempt_id=f"'{SWEPT}'", late=1),
    "a credit": credit("ann", 5),
    "a reversal": credit("ann", -6, reverses=an_id(901)),
    "an account": account("eve", "buyer"),
}


@pytest.mark.parametrize("step", LEGAL)
def test_the_schema_accepts(ledger: sqlite3.Connection, step: str) -> None:
    """What the wrong steps differ from is accepted, so that each is refused for its own fault."""
    ledger.execute("BEGIN")
    try:
        assert ledger.execute(LEGAL[step]).rowcount == 1
    finally:
        ledger.execute("ROLLBACK")


def test_the_rows_of_the_store_are_those_of_the_schema() -> None:
    """The statements that the store writes with name every column that has no default."""
    assert INSERT_ATTEMPT.count("?") == len(COLUMNS["attempt"]) == len(attempt_row(an_admission()))
    row = outcome_row(complete(), AT, late=False)
    assert INSERT_OUTCOME.count("?") == len(COLUMNS["outcome"]) == len(row)
