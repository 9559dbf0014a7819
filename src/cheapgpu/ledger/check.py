"""Looks whether a ledger's file is what it must be: every invariant, and the rows that break one.

It reads only, in one transaction, so the file may be in use; a copy does as well.
"""

import sqlite3
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cheapgpu.ledger.clock import SECOND
from cheapgpu.ledger.errors import UnavailableError
from cheapgpu.ledger.invariants import INVARIANTS, Invariant
from cheapgpu.ledger.migrate import shipped
from cheapgpu.ledger.sqlite_reading import connect_to_read

#: How long after a deadline the sweeper may need, in microseconds.
SWEEP_GRACE: Final = 5 * SECOND

#: The most rows that are shown for one invariant.
_ROWS_SHOWN: Final = 20
_SELECT_SCHEMA: Final = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"


class Finding(Struct, frozen=True):
    """One invariant that does not hold."""

    #: The invariant's id, or `file` or `schema`.
    invariant: str
    sentence: str
    #: The first rows that break it, by column; `more` where there are others.
    rows: tuple[dict[str, Any], ...]
    more: bool


def check(path: Path, now_us: int, grace_us: int = SWEEP_GRACE) -> tuple[Finding, ...]:
    """Look at a file; return what does not hold, nothing where all does.

    `now_us` is the ledger's time (for a copy: that of the copying). Raises UnavailableError where
    the file cannot be read as a ledger at all.
    """
    try:
        db = connect_to_read(path)
    except sqlite3.Error as error:
        raise UnavailableError(f"{path} cannot be read: {error}") from error
    try:
        db.execute("BEGIN")
        times = {"now_us": now_us, "grace_us": grace_us}
        found = [_file(db), _schema(db), *(_broken(db, one, times) for one in INVARIANTS)]
    except sqlite3.Error as error:
        raise UnavailableError(f"{path} cannot be read as a ledger: {error}") from error
    finally:
        db.close()
    return tuple(finding for finding in found if finding is not None)


def _broken(db: sqlite3.Connection, invariant: Invariant, times: dict[str, int]) -> Finding | None:
    cursor = db.execute(invariant.sql, times)
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchmany(_ROWS_SHOWN + 1)]
    return _finding(invariant.id, invariant.sentence, rows)


def _file(db: sqlite3.Connection) -> Finding | None:
    """Whether SQLite itself finds the file whole."""
    faults = [{"fault": row[0]} for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
    return _finding("file", "the file is whole, and its indexes agree with its tables", faults)


def _schema(db: sqlite3.Connection) -> Finding | None:
    """Whether the tables and triggers are those of the migrations that were applied."""
    (applied,) = db.execute("SELECT max(number) FROM migration").fetchone()
    fresh = sqlite3.connect(":memory:")
    try:
        for migration in shipped()[:applied]:
            fresh.executescript(migration.sql)
        wanted = {row[:2]: row[2] for row in fresh.execute(_SELECT_SCHEMA)}
    finally:
        fresh.close()
    there = {row[:2]: row[2] for row in db.execute(_SELECT_SCHEMA)}
    there.pop(("table", "migration"), None)
    faults = [
        {"type": kind, "name": name, "fault": _difference(wanted, there, (kind, name))}
        for kind, name in sorted(wanted.keys() | there.keys())
        if wanted.get((kind, name)) != there.get((kind, name))
    ]
    return _finding("schema", "the tables and triggers are those of the migrations", faults)


def _difference(
    wanted: dict[tuple[str, str], str], there: dict[tuple[str, str], str], key: tuple[str, str]
) -> str:
    if key not in there:
        return "missing"
    return "changed" if key in wanted else "unknown"


def _finding(invariant: str, sentence: str, rows: list[dict[str, Any]]) -> Finding | None:
    if not rows:
        return None
    return Finding(invariant, sentence, tuple(rows[:_ROWS_SHOWN]), len(rows) > _ROWS_SHOWN)
