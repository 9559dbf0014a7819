"""The check of a file: clean where all holds, and each breach is found with its rows."""

# ruff: noqa: S608 -- the statements are the test

import shutil
import sqlite3
from pathlib import Path

import pytest

from cheapgpu.ledger.check import check
from cheapgpu.ledger.errors import UnavailableError
from cheapgpu.ledger.invariants import INVARIANTS
from cheapgpu.ledger.money import MAX_AMOUNT
from cheapgpu.ledger.sqlite_store import open_sqlite
from tests.ledger.facts import (
    CHARGE,
    DEADLINE,
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

OPEN, SETTLED, SWEPT, KEYED = (an_id(number) for number in (1, 2, 3, 4))

#: What is done to a copy without triggers, and the first row that each invariant then shows. A
#: breach may break others too; the one that it is here for is named.
BREACHES = [
    ("L1", f"DELETE FROM hold WHERE attempt_id = '{OPEN}'", {"holds": 0, "closures": 0}),
    ("L1", f"INSERT INTO hold VALUES ('{SETTLED}', {DEADLINE}, 450)", {"holds": 1, "closures": 1}),
    ("L1", f"INSERT INTO hold VALUES ('{an_id(77)}', 1, 1)", {"attempt_id": an_id(77)}),
    ("L1", f"DELETE FROM attempt WHERE attempt_id = '{SETTLED}'", {"attempt_id": SETTLED}),
    ("L2", "UPDATE account SET posted = posted + 1 WHERE account_id = 'sue'", {"posted": 325}),
    ("L2", "UPDATE account SET held = 0 WHERE account_id = 'ann'", {"held": 0, "reserved": 900}),
    ("L2", "UPDATE account SET open_attempts = 9 WHERE account_id = 'ann'", {"open_attempts": 9}),
    ("L2-keys", "UPDATE key_use SET charged = 0", {"charged": 0, "charges": CHARGE}),
    ("L2-keys", "DELETE FROM key_use", {"charged": None}),
    ("L5", f"UPDATE closure SET closed_us = {DEADLINE + 1} WHERE charge > 0", {"kind": "settle"}),
    ("L5", f"UPDATE closure SET closed_us = {DEADLINE - 10} WHERE kind = 'zero'", {"kind": "zero"}),
    ("L7", f"UPDATE hold SET deadline_us = 1 WHERE attempt_id = '{OPEN}'", {"attempt_id": OPEN}),
    ("L8", "UPDATE outcome SET in_tokens = 81 WHERE outcome = 'complete'", {"in_tokens": 81}),
    ("L8", "UPDATE closure SET fee = 35, supplier_credit = 325 WHERE charge > 0", {"fee": 35}),
    ("L8", "UPDATE attempt SET price_in = 1", {"price_in": 1}),
    ("P1", "UPDATE entry SET amount = 1 WHERE account_id = 'operator'", {"cause_id": SETTLED}),
    ("P2", "UPDATE account SET posted = 1 WHERE account_id = 'ann'", {"posted": 1, "held": 900}),
    ("P4", "UPDATE attempt SET hold = 451, reserved = 451", {"hold": 451}),
    ("P4", "UPDATE attempt SET in_ceiling = 1, hold = 252, reserved = 252", {"charge": CHARGE}),
    ("P5", "UPDATE outcome SET late = 1 WHERE outcome = 'complete'", {"late": 1}),
    ("P5", f"DELETE FROM outcome WHERE attempt_id = '{SETTLED}'", {"outcome": None}),
    ("P7", "UPDATE attempt SET deadline_us = deadline_us + 1", {"of_hold": DEADLINE}),
    ("P8", "UPDATE closure SET reason = 'failed' WHERE kind = 'zero'", {"reason": "failed"}),
    ("P8", (f"INSERT INTO outcome SELECT '{an_id(77)}', 'failed', '', '[]', NULL, NULL, NULL, "
           "NULL, NULL, NULL, NULL, NULL, 1, 0, 0, NULL, NULL, 0, 1, 0"), {"outcome": "failed"}),
    ("P9", "UPDATE attempt SET idempotency_key = 'once', body_sha256 = zeroblob(32)",
     {"idempotency_key": "once", "attempts": 4}),
    ("P10", """UPDATE outcome SET usage_json = '{"prompt_tokens":80}' WHERE in_tokens""",
     {"usage_json": '{"prompt_tokens":80}'}),
    ("P10", "UPDATE attempt SET out_ceiling = 39", {"out_ceiling": 39}),
    ("P12", "DELETE FROM entry WHERE account_id = 'sue'", {"fault": "missing", "amount": 324}),
    ("P12", f"INSERT INTO entry VALUES ('bob', '{OPEN}', 5, 1)", {"fault": "without cause"}),
    ("P12-reversals", "UPDATE credit SET amount = -8 WHERE reverses NOT NULL", {"original": 7}),
    ("P12-reversals", f"UPDATE credit SET reverses = '{an_id(77)}' WHERE reverses NOT NULL",
     {"original": None}),
]  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with an attempt in each state."""
    path = tmp_path_factory.mktemp("check") / "ledger.db"

    async def write() -> None:
        clock = Clock()
        store = await open_sqlite(path, clock)
        await furnished(store, 2_000)
        await store.open_attempt(an_admission(3, deadline_us=DEADLINE - 9))
        for number in (1, 2, 4):
            key = ("once", b"1" * 32) if number == 4 else (None, None)
            await store.open_attempt(
                an_admission(number, idempotency_key=key[0], body_sha256=key[1])
            )
        await store.settle(complete(2))
        clock.now_us = DEADLINE
        await store.record_outcome(seen("unknown", 3))
        await store.credit(a_credit(901, amount=7))
        await store.credit(a_credit(902, amount=-7, reverses=an_id(901)))
        clock.now_us = DEADLINE - 9
        await store.sweep()
        # In use, and looked at.
        assert check(path, DEADLINE - 9) == ()
        await store.close()

    run(write())
    return path


@pytest.fixture
def copy(written: Path, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    path = tmp_path / "copy.db"
    shutil.copy(written, path)
    return path


def broken(path: Path, statement: str) -> None:
    """Break a copy: without triggers, unique indexes and checks."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA ignore_check_constraints = ON")
    for kind, name in db.execute(
        "SELECT type, name FROM sqlite_schema WHERE type = 'trigger' OR sql LIKE 'CREATE UNIQUE%'"
    ).fetchall():
        db.execute(f"DROP {kind} {name}")
    db.execute(statement)
    db.close()


def test_a_copy_is_clean(copy: Path) -> None:
    """A copy of a file that was closed passes every invariant."""
    assert check(copy, DEADLINE) == ()


def test_sums_at_the_limit_of_64_bits(tmp_path: Path) -> None:
    """Entries whose first few exceed 64 bits together, though all of them do not, are summed."""
    path = tmp_path / "ledger.db"

    async def write() -> None:
        store = await open_sqlite(path, Clock())
        await furnished(store, 2_000)
        await store.credit(a_credit(902, amount=-2_000))
        await store.credit(a_credit(899, amount=MAX_AMOUNT))
        await store.close()

    run(write())
    assert check(path, NOW) == ()
    broken(path, "UPDATE entry SET amount = amount - 1 WHERE amount = -2000")
    assert {finding.invariant for finding in check(path, NOW)} == {"L2", "P1", "P12", "schema"}


@pytest.mark.parametrize(("invariant", "statement", "row"), BREACHES)
def test_a_breach_is_found(
    copy: Path, invariant: str, statement: str, row: dict[str, object]
) -> None:
    """Each breach is found under its invariant, with the row that shows it."""
    broken(copy, statement)
    found = {finding.invariant: finding for finding in check(copy, DEADLINE)}
    assert any(row.items() <= shown.items() for shown in found[invariant].rows), found[invariant]


def test_every_invariant_can_fail() -> None:
    """There is a breach for every invariant, each of which has an id of its own."""
    ids = [invariant.id for invariant in INVARIANTS]
    assert len(set(ids)) == len(ids)
    assert {invariant for invariant, _, _ in BREACHES} == set(ids)


def test_what_is_open_too_long_is_found(copy: Path) -> None:
    """After the deadline and the sweeper's interval, a hold is a finding; before, it is none."""
    assert check(copy, DEADLINE + 5_000_000) == ()
    (finding,) = check(copy, DEADLINE + 5_000_001)
    assert finding.invariant == "L7"
    assert [row["attempt_id"] for row in finding.rows] == [OPEN, KEYED]


def test_a_missing_trigger_is_found(copy: Path) -> None:
    """A schema that is not that of the migrations is a finding, though all rows are in order."""
    db = sqlite3.connect(copy)
    db.execute("DROP TRIGGER hold_ends")
    db.execute("CREATE TABLE extra (x)")
    db.execute("DROP INDEX attempt_of_supplier")
    db.execute("CREATE INDEX attempt_of_supplier ON attempt (supplier_id)")
    db.close()
    (finding,) = check(copy, DEADLINE)
    assert finding.invariant == "schema"
    assert [(row["name"], row["fault"]) for row in finding.rows] == [
        ("attempt_of_supplier", "changed"), ("extra", "unknown"), ("hold_ends", "missing"),
    ]  # fmt: skip


def test_only_the_first_rows_are_shown(copy: Path) -> None:
    """Of many rows twenty are shown, and it is said that there are more."""
    db = sqlite3.connect(copy)
    for number in range(21):
        db.execute(f"CREATE TABLE extra_{number} (x)")
    db.close()
    (finding,) = check(copy, DEADLINE)
    assert (len(finding.rows), finding.more) == (20, True)


def test_a_damaged_file_is_found(copy: Path) -> None:
    """A page overwritten is a fault of the file, or it cannot be read as a ledger at all."""
    db = sqlite3.connect(copy)
    (page,) = db.execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'hold_by_deadline'"
    ).fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with copy.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    try:
        found = check(copy, DEADLINE)
    except UnavailableError:
        return
    assert "file" in {finding.invariant for finding in found}


@pytest.mark.parametrize("content", [b"no database at all" * 100, b""])
def test_what_is_no_ledger_is_an_error(tmp_path: Path, content: bytes) -> None:
    """A file that is no ledger, or not there, is an error and not a clean ledger."""
    path = tmp_path / "other.db"
    with pytest.raises(UnavailableError):
        check(path, NOW)
    path.write_bytes(content)
    with pytest.raises(UnavailableError):
        check(path, NOW)
