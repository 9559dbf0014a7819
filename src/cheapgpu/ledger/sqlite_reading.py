"""Reads a SQLite ledger: what is asked of it, on connections that cannot write."""

import asyncio
import queue
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from cheapgpu.ledger.bounds import check_page
from cheapgpu.ledger.errors import ClosedError, UnavailableError
from cheapgpu.ledger.facts import Attempt, Balance, Entry, Holds, Selection
from cheapgpu.ledger.rows import SELECT_ATTEMPT, attempt_of

T = TypeVar("T")

_CONNECTIONS: Final = 2
_BALANCE: Final = Balance.__struct_fields__
_ENTRY: Final = Entry.__struct_fields__
_SELECT_BALANCE: Final = f"SELECT {', '.join(_BALANCE)} FROM account WHERE account_id = ?"  # noqa: S608 -- names of fields
_SELECT_ENTRIES: Final = f"""
SELECT {", ".join(_ENTRY)} FROM entry WHERE account_id = ? AND cause_id > ?
ORDER BY cause_id LIMIT ?
"""  # noqa: S608 -- names of fields
_SELECT_HOLDS: Final = """
SELECT count(*), ifnull(sum(h.reserved), 0), min(a.opened_us), min(h.deadline_us)
FROM hold h JOIN attempt a ON a.attempt_id = h.attempt_id
"""


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a connection that reads only; any thread may use it, one at a time."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA query_only = ON")
    return db


class Readers:
    """A few connections to read with, on threads of their own."""

    def __init__(self, path: Path) -> None:
        self._connections: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        for _ in range(_CONNECTIONS):
            self._connections.put(connect_to_read(path))
        self._threads = ThreadPoolExecutor(_CONNECTIONS, thread_name_prefix="ledger-reader")
        self._closed = False

    async def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Ask about what is committed; raises UnavailableError, or ClosedError."""
        if self._closed:
            raise ClosedError("the ledger is closed")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, question)

    async def close(self) -> None:
        """Wait for the questions that were asked, and close the connections."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._threads.shutdown)
            for _ in range(_CONNECTIONS):
                self._connections.get().close()

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        db = self._connections.get()
        try:
            return question(db)
        except sqlite3.Error as error:
            raise UnavailableError(f"the ledger could not be read: {error}") from error
        finally:
            self._connections.put(db)


def attempt(db: sqlite3.Connection, attempt_id: str) -> Attempt | None:
    """One attempt by its id."""
    row = db.execute(f"{SELECT_ATTEMPT} WHERE a.attempt_id = ?", (attempt_id,)).fetchone()
    return row and attempt_of(row)


def attempt_of_key(db: sqlite3.Connection, buyer_id: str, key: str) -> Attempt | None:
    """One attempt by its idempotency key."""
    where = "WHERE a.buyer_id = ? AND a.idempotency_key = ?"
    row = db.execute(f"{SELECT_ATTEMPT} {where}", (buyer_id, key)).fetchone()
    return row and attempt_of(row)


def attempts(db: sqlite3.Connection, selection: Selection) -> tuple[Attempt, ...]:
    """A page of attempts, the newest first."""
    check_page(selection.limit)
    terms: list[str] = []
    values: list[str | int] = []
    for column in ("buyer_id", "supplier_id", "key_id"):
        if (value := getattr(selection, column)) is not None:
            terms.append(f"a.{column} = ?")
            values.append(value)
    if selection.before is not None:
        terms.append("a.attempt_id < ?")
        values.append(selection.before)
    if selection.is_open is not None:
        terms.append(f"c.attempt_id IS {'' if selection.is_open else 'NOT '}NULL")
    where = f"WHERE {' AND '.join(terms)}" if terms else ""
    order = "ORDER BY a.attempt_id DESC LIMIT ?"
    rows = db.execute(f"{SELECT_ATTEMPT} {where} {order}", (*values, selection.limit))
    return tuple(attempt_of(row) for row in rows)


def balance(db: sqlite3.Connection, account_id: str) -> Balance | None:
    """The balance of one account."""
    row = db.execute(_SELECT_BALANCE, (account_id,)).fetchone()
    return row and Balance(**dict(zip(_BALANCE, row, strict=True)))


def entries(db: sqlite3.Connection, account_id: str, after: str, limit: int) -> tuple[Entry, ...]:
    """A page of one account's lines."""
    check_page(limit)
    rows = db.execute(_SELECT_ENTRIES, (account_id, after, limit))
    return tuple(Entry(**dict(zip(_ENTRY, row, strict=True))) for row in rows)


def holds(db: sqlite3.Connection) -> Holds:
    """What is open now."""
    count, reserved, oldest_us, next_deadline_us = db.execute(_SELECT_HOLDS).fetchone()
    return Holds(
        count=count, reserved=reserved, oldest_us=oldest_us, next_deadline_us=next_deadline_us
    )
