"""The ledger in one SQLite file: one thread writes and groups commits, others only read.

Write-ahead log with synchronous=FULL: what was acknowledged survives the process and the power.
"""

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Final

from cheapgpu.ledger import sqlite_operations as operations
from cheapgpu.ledger import sqlite_reading as reading
from cheapgpu.ledger.answers import (
    AlreadyClosed,
    Closed,
    Credited,
    Opened,
    Recorded,
    Refused,
    TooLate,
)
from cheapgpu.ledger.bounds import check_page
from cheapgpu.ledger.clock import Clock, steady_clock
from cheapgpu.ledger.errors import IllegalError, MigrationError, UnavailableError
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
from cheapgpu.ledger.file_lock import FileLock
from cheapgpu.ledger.migrate import migrate
from cheapgpu.ledger.sqlite_reading import Readers
from cheapgpu.ledger.writer import QUEUE, Writer

#: The first SQLite that the schema works with (STRICT tables, and JSON built in).
OLDEST_SQLITE: Final = (3, 38, 0)

#: Pages of the write-ahead log after which it is copied into the file: fewer make commits stall.
_CHECKPOINT_PAGES: Final = 8_000
#: Milliseconds for which a commit waits for a stranger who holds the file.
_BUSY_MS: Final = 5_000


async def open_sqlite(
    path: Path, clock: Clock | None = None, *, queue: int = QUEUE
) -> "SqliteStore":
    """Open the ledger in a file, which is made if it is not there; its folder must be.

    `queue` bounds the operations that wait. Raises InUseError, MigrationError or UnavailableError.
    """
    return await asyncio.to_thread(SqliteStore, path, clock or steady_clock(), queue=queue)


class SqliteStore:
    """A `Store` on one file; see there for what each operation promises."""

    def __init__(self, path: Path, clock: Clock, *, queue: int = QUEUE) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            wanted = ".".join(map(str, OLDEST_SQLITE))
            raise MigrationError(f"SQLite {sqlite3.sqlite_version} is too old: {wanted} is needed")
        path = path.resolve()  # a link's other name is the same file
        try:
            self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        except OSError as error:
            raise UnavailableError(f"{path} cannot be locked: {error}") from error
        try:
            self._db = _connect(path, clock())
        except BaseException:
            self._lock.release()
            raise
        self._readers = Readers(path)
        self._writer = Writer(self._db, clock, queue=queue)

    async def add_account(self, account: Account) -> None:
        """See `Store`."""
        await self._writer.do(lambda db, _: operations.add_account(db, account))

    async def open_attempt(
        self, admission: Admission, limits: Limits = NO_LIMITS
    ) -> Opened | Refused:
        """See `Store`."""
        return await self._writer.do(
            lambda db, now_us: operations.open_attempt(db, now_us, admission, limits)
        )

    async def record_outcome(self, outcome: Outcome) -> Recorded:
        """See `Store`."""
        return await self._writer.do(
            lambda db, now_us: operations.record_outcome(db, now_us, outcome)
        )

    async def settle(self, outcome: Outcome) -> Closed | AlreadyClosed | TooLate:
        """See `Store`."""
        return await self._writer.do(
            lambda db, now_us: operations.close(db, now_us, outcome, "settle")
        )

    async def zero(self, outcome: Outcome) -> Closed | AlreadyClosed:
        """See `Store`."""
        answer = await self._writer.do(
            lambda db, now_us: operations.close(db, now_us, outcome, "zero")
        )
        if isinstance(answer, TooLate):  # the deadline binds what is charged, only
            raise IllegalError("a zero closure is never too late")
        return answer

    async def sweep(self, limit: int = 256) -> tuple[Closure, ...]:
        """See `Store`."""
        check_page(limit)
        return await self._writer.do(lambda db, now_us: operations.sweep(db, now_us, limit))

    async def credit(self, credit: Credit) -> Credited | Refused:
        """See `Store`."""
        return await self._writer.do(lambda db, _: operations.credit(db, credit))

    async def attempt(self, attempt_id: str) -> Attempt | None:
        """See `Store`."""
        return await self._readers.ask(lambda db: reading.attempt(db, attempt_id))

    async def attempt_of_key(self, buyer_id: str, idempotency_key: str) -> Attempt | None:
        """See `Store`."""
        return await self._readers.ask(
            lambda db: reading.attempt_of_key(db, buyer_id, idempotency_key)
        )

    async def attempts(self, selection: Selection = ALL_ATTEMPTS) -> tuple[Attempt, ...]:
        """See `Store`."""
        return await self._readers.ask(lambda db: reading.attempts(db, selection))

    async def balance(self, account_id: str) -> Balance | None:
        """See `Store`."""
        return await self._readers.ask(lambda db: reading.balance(db, account_id))

    async def entries(
        self, account_id: str, after: str = "", limit: int = 100
    ) -> tuple[Entry, ...]:
        """See `Store`."""
        return await self._readers.ask(lambda db: reading.entries(db, account_id, after, limit))

    async def holds(self) -> Holds:
        """See `Store`."""
        return await self._readers.ask(reading.holds)

    async def close(self) -> None:
        """See `Store`; twice does nothing more."""
        await self._writer.close()
        await self._readers.close()
        await asyncio.to_thread(self._db.close)
        self._lock.release()


def _connect(path: Path, now_us: int) -> sqlite3.Connection:
    """Open the connection that writes, and bring the schema up to date."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=_BUSY_MS / 1_000
        )
    except (OSError, sqlite3.Error) as error:
        raise UnavailableError(f"{path} cannot be opened: {error}") from error
    try:
        migrate(db, now_us)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        # What a statement with triggers may have to undo would else go through a temporary file.
        db.execute("PRAGMA temp_store = MEMORY")
    except sqlite3.Error as error:
        db.close()
        raise UnavailableError(f"{path} cannot be used as a ledger: {error}") from error
    except BaseException:
        db.close()
        raise
    return db
