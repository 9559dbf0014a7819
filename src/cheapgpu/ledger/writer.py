"""One thread that writes, and commits what many callers ask for in one transaction.

While a commit waits for the disk, operations gather; the next transaction takes them all, up to a
bound. Where one fails after it has written something, the transaction is undone and done again with
a savepoint around each, so that it takes none with it; so operations must depend on nothing but the
rows and the time that they are given. A caller is answered after the COMMIT that holds its
operation, never before.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from cheapgpu.ledger.clock import Clock
from cheapgpu.ledger.errors import BusyError, ClosedError, IllegalError, UnavailableError

T = TypeVar("T")
#: What an operation does in a transaction, given the connection and the transaction's time.
Operation = Callable[[sqlite3.Connection, int], T]

#: Operations in one transaction, and waiting for one.
BATCH: Final = 512
QUEUE: Final = 8_192

#: After these the file cannot be trusted to take what is written; a new start looks at it anew.
_FATAL: Final = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_PRIMARY_CODE: Final = 0xFF

_Job = tuple[Operation[Any], "asyncio.Future[Any]"]


class _HalfDoneError(Exception):
    """An operation failed between two of its statements."""


class Writer:
    """Owns a connection from when it is made until `close`."""

    def __init__(self, db: sqlite3.Connection, clock: Clock, *, queue: int = QUEUE) -> None:
        self._db = db
        self._clock = clock
        self._bound = queue
        self._jobs: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._broken: str | None = None
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    async def do(self, operation: Operation[T]) -> T:
        """Run an operation in the next transaction; return when that is durable.

        Raises BusyError, ClosedError, UnavailableError, IllegalError, or what the operation raises;
        then nothing of it is kept. To cancel the caller does not cancel the operation.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._wake:
            if self._closing:
                raise ClosedError("the ledger is closed")
            if len(self._jobs) >= self._bound:
                raise BusyError(f"{self._bound} operations wait for the ledger; try again later")
            self._jobs.append((operation, future))
            if len(self._jobs) == 1:
                self._wake.notify()
        return await future

    async def close(self) -> None:
        """Finish what was taken, and end; the connection is then its owner's again."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while jobs := self._take():
            results = self._commit(jobs)
            _hand_back(jobs, results)

    def _take(self) -> list[_Job]:
        """Wait for work; nothing once closing and all is done."""
        with self._wake:
            while not self._jobs and not self._closing:
                self._wake.wait()
            return [self._jobs.popleft() for _ in range(min(len(self._jobs), BATCH))]

    def _commit(self, jobs: list[_Job]) -> list[Any]:
        """Run the operations in one transaction; return what each returned, or its exception."""
        if self._broken is not None:
            return [UnavailableError(self._broken) for _ in jobs]
        try:
            try:
                return self._transact(jobs, self._attempt)
            except _HalfDoneError:
                self._db.execute("ROLLBACK")
                return self._transact(jobs, self._attempt_in_savepoint)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the callers are answered
            problem = self._give_up(error)
            return [UnavailableError(problem) for _ in jobs]

    def _transact(
        self, jobs: list[_Job], attempt: Callable[[Operation[Any], int], Any]
    ) -> list[Any]:
        self._db.execute("BEGIN IMMEDIATE")
        now_us = self._clock()
        results = [attempt(operation, now_us) for operation, _ in jobs]
        self._db.execute("COMMIT")
        return results

    def _attempt(self, operation: Operation[Any], now_us: int) -> Any:  # noqa: ANN401 -- or its exception
        """Run one operation; one that wrote something before it failed raises _HalfDoneError.

        An error of the file itself is raised too.
        """
        before = self._db.total_changes
        result = self._result(operation, now_us)
        if isinstance(result, Exception) and self._db.total_changes != before:
            raise _HalfDoneError
        return result

    def _attempt_in_savepoint(self, operation: Operation[Any], now_us: int) -> Any:  # noqa: ANN401 -- as above
        """Run one operation, and undo what it wrote if it fails."""
        self._db.execute("SAVEPOINT operation")
        result = self._result(operation, now_us)
        if isinstance(result, Exception):
            self._db.execute("ROLLBACK TO operation")
        self._db.execute("RELEASE operation")
        return result

    def _result(self, operation: Operation[Any], now_us: int) -> Any:  # noqa: ANN401 -- as above
        try:
            return operation(self._db, now_us)
        except sqlite3.IntegrityError as error:
            return IllegalError(f"the ledger's schema refuses it: {error}")
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 -- it is the caller's, and is raised there
            return error

    def _give_up(self, error: Exception) -> str:
        """Undo the whole transaction, and say what to do."""
        code = (getattr(error, "sqlite_errorcode", None) or 0) & _PRIMARY_CODE
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            code = sqlite3.SQLITE_IOERR
        if code in _FATAL:
            self._broken = (
                f"the ledger's file failed ({error}): look at the disk, then start anew; what was "
                "acknowledged is recovered from the write-ahead log"
            )
            return self._broken
        if code == sqlite3.SQLITE_FULL:
            return f"{error}: make room for the ledger; nothing was written"
        return f"the ledger could not be written ({error}); nothing was"


def _hand_back(jobs: list[_Job], results: list[Any]) -> None:
    """Answer the callers, with one call into each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for (_, future), result in zip(jobs, results, strict=True):
        by_loop.setdefault(future.get_loop(), []).append((future, result))
    for loop, answers in by_loop.items():
        try:
            loop.call_soon_threadsafe(_answer, answers)
        except RuntimeError:  # the loop is closed: nobody waits
            continue


def _answer(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in answers:
        if future.done():  # its caller was cancelled
            continue
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
