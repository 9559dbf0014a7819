"""The SQLite store beyond the seam: its file, its one writer, full disks, and many callers."""

import asyncio
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from cheapgpu.ledger import sqlite_store
from cheapgpu.ledger.answers import Opened, Refused
from cheapgpu.ledger.check import check
from cheapgpu.ledger.errors import (
    BusyError,
    ClosedError,
    IllegalError,
    InUseError,
    LedgerError,
    MigrationError,
    UnavailableError,
)
from cheapgpu.ledger.sqlite_store import SqliteStore, open_sqlite
from cheapgpu.ledger.writer import Writer
from tests.ledger.facts import (
    CHARGE,
    HOLD,
    NOW,
    Clock,
    a_credit,
    an_admission,
    an_id,
    complete,
    furnished,
    run,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger is."""
    return tmp_path / "ledger.db"


def connection_of(store: SqliteStore) -> sqlite3.Connection:
    """The connection that writes, to trouble it."""
    return store._db  # noqa: SLF001 -- there is no other way to fill a disk


# The file.


def test_the_file_is_its_owners(path: Path) -> None:
    """The database and its log are readable by nobody else, and durable to the disk."""

    async def main() -> None:
        store = await open_sqlite(path, Clock())
        await furnished(store)
        for name in ("ledger.db", "ledger.db-wal", "ledger.db.lock"):
            assert stat.S_IMODE(path.with_name(name).stat().st_mode) == 0o600
        db = connection_of(store)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        await store.close()
        assert not path.with_name("ledger.db-wal").exists()

    run(main())


def test_all_is_there_after_a_restart(path: Path) -> None:
    """What was written before a close is read, and gone on with, after it."""

    async def main() -> None:
        store = await open_sqlite(path, Clock())
        await furnished(store)
        await store.open_attempt(an_admission())
        await store.close()
        store = await open_sqlite(path, Clock())
        await store.settle(complete())
        await store.close()
        store = await open_sqlite(path, Clock())
        attempt, balance = await store.attempt(an_id(1)), await store.balance("ann")
        await store.close()
        assert attempt is not None
        assert attempt.closure is not None
        assert balance is not None
        assert balance.posted == 1_000 - CHARGE

    run(main())


def test_a_second_store_is_refused(path: Path) -> None:
    """A file has one writer in this process; when that is closed, the next may."""

    async def main() -> None:
        store = await open_sqlite(path, Clock())
        link = path.with_name("link.db")
        link.symlink_to(path)
        for name in (path, link):
            with pytest.raises(InUseError, match=r"ledger\.db is in use by process \d+"):
                await open_sqlite(name, Clock())
        await store.close()
        await (await open_sqlite(path, Clock())).close()

    run(main())


def test_a_second_process_is_refused(path: Path) -> None:
    """A file has one writer among processes, and the second is told which is the first."""
    program = (
        "import sys; from pathlib import Path\n"
        "from cheapgpu.ledger.sqlite_store import SqliteStore\n"
        "SqliteStore(Path(sys.argv[1]), lambda: 1); print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(InUseError, match=f"process {other.pid}"):
            SqliteStore(path, Clock())
        other.kill()
    run(SqliteStore(path, Clock()).close())


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    """A path that cannot be made is an error that names it, and keeps no lock."""
    with pytest.raises(UnavailableError, match="nowhere"):
        SqliteStore(tmp_path / "nowhere" / "ledger.db", Clock())
    folder = tmp_path / "ledger.db"
    folder.mkdir()
    for _ in range(2):
        with pytest.raises(UnavailableError, match="cannot be opened"):
            SqliteStore(folder, Clock())


def test_what_is_no_ledger_is_left_alone(path: Path) -> None:
    """Another database, or another file, is refused, and stays as it is."""
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE other (x)")
    db.close()
    with pytest.raises(MigrationError, match="no ledger"):
        SqliteStore(path, Clock())
    path.write_bytes(b"no database" * 100)
    for _ in range(2):
        with pytest.raises(UnavailableError, match="cannot be used as a ledger"):
            SqliteStore(path, Clock())
    assert path.read_bytes() == b"no database" * 100


def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library without what the schema needs is refused in words, not by a syntax error."""
    monkeypatch.setattr(sqlite_store, "OLDEST_SQLITE", (99, 1, 0))
    with pytest.raises(MigrationError, match=r"99\.1\.0 is needed"):
        SqliteStore(path, Clock())


# The writer.


def test_one_bad_operation_fails_alone(path: Path) -> None:
    """Of many operations in one transaction, one that is refused takes none with it."""

    async def main() -> None:
        clock = Clock()
        store = await open_sqlite(path, clock)
        await furnished(store, 10 * HOLD)
        writer = store._writer  # noqa: SLF001 -- to write what the store never would
        commits: list[str] = []
        connection_of(store).set_trace_callback(commits.append)

        def illegal(db: sqlite3.Connection, _: int) -> None:
            db.execute("UPDATE key_use SET charged = 7")
            db.execute("DELETE FROM hold")

        def faulty(db: sqlite3.Connection, _: int) -> None:
            db.execute("UPDATE key_use SET charged = 8")
            raise ZeroDivisionError

        opens = [store.open_attempt(an_admission(number)) for number in range(5)]
        work: list[Any] = [*opens[:2], writer.do(illegal), *opens[2:4], writer.do(faulty), opens[4]]
        answers = await asyncio.gather(*work, return_exceptions=True)
        connection_of(store).set_trace_callback(None)
        assert commits.count("COMMIT") <= 2
        kinds = [type(answer) for answer in answers]
        assert kinds == [Opened, Opened, IllegalError, Opened, Opened, ZeroDivisionError, Opened]
        assert "hold-ends-with-its-closure" in str(answers[2])
        await store.close()
        assert check(path, NOW) == ()

    run(main())


class Gate:
    """An operation that waits, so that others gather behind it."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def __call__(self, _db: sqlite3.Connection, _now_us: int) -> None:
        """Say that it is at work, and wait to be let go."""
        self.entered.set()
        assert self.open.wait(60)


def test_the_queue_is_bounded(path: Path) -> None:
    """When as many operations wait as may, the next is told at once; none is lost or done twice."""

    async def main() -> None:
        store = await open_sqlite(path, Clock(), queue=4)
        await furnished(store, 10 * HOLD)
        gate = Gate()
        waiting = [asyncio.ensure_future(store._writer.do(gate))]  # noqa: SLF001 -- to hold it up
        await asyncio.to_thread(gate.entered.wait, 60)
        opens = [asyncio.ensure_future(store.open_attempt(an_admission(n))) for n in range(6)]
        await asyncio.wait(opens[4:])
        for refused in opens[4:]:
            with pytest.raises(BusyError, match="4 operations wait"):
                refused.result()
        gate.open.set()
        assert await asyncio.gather(*opens[:4]) == [Opened(an_id(number)) for number in range(4)]
        await asyncio.gather(*waiting)
        await store.close()

    run(main())


def test_a_caller_who_leaves_undoes_nothing(path: Path) -> None:
    """An operation whose caller is cancelled is done, and the others are answered."""

    async def main() -> None:
        store = await open_sqlite(path, Clock())
        await furnished(store, 10 * HOLD)
        gate = Gate()
        held_up = asyncio.ensure_future(store._writer.do(gate))  # noqa: SLF001 -- to hold it up
        await asyncio.to_thread(gate.entered.wait, 60)
        leaving = asyncio.ensure_future(store.open_attempt(an_admission(1)))
        staying = asyncio.ensure_future(store.open_attempt(an_admission(2)))
        await asyncio.sleep(0)
        leaving.cancel()
        gate.open.set()
        assert await staying == Opened(an_id(2))
        await held_up
        assert await store.attempt(an_id(1)) is not None
        await store.close()

    run(main())


def test_a_close_finishes_what_was_taken(path: Path) -> None:
    """What waited when the store was closed is durable and answered; what came after is refused."""

    async def main() -> None:
        store = await open_sqlite(path, Clock())
        await furnished(store, 10 * HOLD)
        opens = [asyncio.ensure_future(store.open_attempt(an_admission(n))) for n in range(9)]
        await asyncio.sleep(0)
        await store.close()
        assert await asyncio.gather(*opens) == [Opened(an_id(number)) for number in range(9)]
        with pytest.raises(ClosedError):
            await store.sweep()
        await store.close()

    run(main())


def test_a_loop_that_ended_is_not_answered(path: Path) -> None:
    """Work of an event loop that is gone is done; the writer goes on for others."""
    store = SqliteStore(path, Clock())
    gate = Gate()

    async def leave() -> None:
        await furnished(store, 10 * HOLD)
        asyncio.ensure_future(store._writer.do(gate))  # noqa: RUF006, SLF001 -- left behind
        await asyncio.to_thread(gate.entered.wait, 60)
        asyncio.ensure_future(store.open_attempt(an_admission(1)))  # noqa: RUF006 -- as above
        await asyncio.sleep(0)

    run(leave())
    gate.open.set()

    async def come_back() -> None:
        assert await store.open_attempt(an_admission(2)) == Opened(an_id(2))
        assert await store.attempt(an_id(1)) is not None
        await store.close()

    run(come_back())


# Disks.


def test_a_full_disk_acknowledges_nothing(path: Path) -> None:
    """A full disk is a clear error for all it concerns; with room again, the store goes on."""

    async def main() -> None:
        store = await open_sqlite(path, Clock())
        await furnished(store, 10_000 * HOLD)
        db = connection_of(store)
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages + 4}")
        answers = []
        for start in range(0, 400, 20):
            work = (store.open_attempt(an_admission(start + number)) for number in range(20))
            answers += await asyncio.gather(*work, return_exceptions=True)
        opened = {answer.attempt_id for answer in answers if isinstance(answer, Opened)}
        failed = [answer for answer in answers if isinstance(answer, UnavailableError)]
        assert opened
        assert failed
        assert len(opened) + len(failed) == 400
        assert "make room" in str(failed[0])
        holds = await store.holds()
        assert holds.count == len(opened)
        db.execute("PRAGMA max_page_count = 1000000")
        number = next(n for n in range(400) if an_id(n) not in opened)
        assert await store.open_attempt(an_admission(number)) == Opened(an_id(number))
        for attempt_id in opened:
            assert await store.attempt(attempt_id) is not None
        await store.close()
        assert check(path, NOW) == ()

    run(main())


class FailingConnection(sqlite3.Connection):
    """A connection whose COMMIT, or ROLLBACK, can be made to fail."""

    commit_error: sqlite3.Error | None = None
    rollback_error: sqlite3.Error | None = None

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        """Fail, or do what was asked."""
        if sql == "COMMIT" and self.commit_error is not None:
            raise self.commit_error
        if sql == "ROLLBACK" and self.rollback_error is not None:
            raise self.rollback_error
        return super().execute(sql, *arguments)


def an_error(code: int, text: str) -> sqlite3.OperationalError:
    """An error of SQLite as the module raises it."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "goes_on", "words"),
    [
        (sqlite3.SQLITE_FULL, True, "make room"),
        (sqlite3.SQLITE_BUSY, True, "nothing was"),
        (sqlite3.SQLITE_IOERR_FSYNC, False, "start anew"),
        (sqlite3.SQLITE_CORRUPT, False, "start anew"),
    ],
)
def test_a_commit_that_fails(code: int, goes_on: bool, words: str) -> None:  # noqa: FBT001 -- a case
    """A COMMIT that fails acknowledges nothing; after an I/O error nothing more is written."""

    async def main() -> None:
        db = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, factory=FailingConnection
        )
        db.execute("CREATE TABLE t (x)")
        writer = Writer(db, Clock())

        def write(db: sqlite3.Connection, _: int) -> int:
            db.execute("INSERT INTO t VALUES (1)")
            return 1

        db.commit_error = an_error(code, "it failed")
        answers = await asyncio.gather(
            *(writer.do(write) for _ in range(9)), return_exceptions=True
        )
        assert {type(answer) for answer in answers} == {UnavailableError}
        assert words in str(answers[0])
        db.commit_error = None
        assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
        if goes_on:
            assert await writer.do(write) == 1
        else:
            with pytest.raises(UnavailableError, match=words):
                await writer.do(write)
        await writer.close()
        db.close()

    run(main())


def test_a_rollback_that_fails_ends_the_writing() -> None:
    """When even the undoing fails, nothing is known of the file: no more is written."""

    async def main() -> None:
        db = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, factory=FailingConnection
        )
        writer = Writer(db, Clock())
        db.commit_error = db.rollback_error = an_error(sqlite3.SQLITE_FULL, "full")
        for _ in range(2):
            with pytest.raises(UnavailableError, match="start anew"):
                await writer.do(lambda _db, _now: None)
        db.commit_error = db.rollback_error = None
        await writer.close()
        db.close()

    run(main())


def test_a_clock_that_fails(path: Path) -> None:
    """Whatever goes wrong in the writer, its callers are answered, and nothing is kept."""

    class Stopped(Clock):
        def __call__(self) -> int:
            if self.now_us == 0:
                raise ZeroDivisionError
            return self.now_us

    async def main() -> None:
        clock = Stopped()
        store = await open_sqlite(path, clock)
        await furnished(store)
        clock.now_us = 0
        with pytest.raises(UnavailableError, match="nothing was"):
            await store.open_attempt(an_admission())
        clock.now_us = NOW
        assert await store.open_attempt(an_admission()) == Opened(an_id(1))
        await store.close()

    run(main())


def test_a_reader_that_fails(path: Path) -> None:
    """A table that is gone under a reader is an error of the ledger, not of SQLite."""

    async def main() -> None:
        store = await open_sqlite(path, Clock())
        stranger = sqlite3.connect(path)
        stranger.execute("DROP TABLE entry")
        stranger.close()
        with pytest.raises(UnavailableError, match="could not be read"):
            await store.entries("ann")
        with pytest.raises(LedgerError):
            await store.credit(a_credit())
        await store.close()

    run(main())


def test_readers_see_what_was_acknowledged(path: Path) -> None:
    """Right after an answer, and while others write, a reader sees what was answered."""

    async def main() -> None:
        store = await open_sqlite(path, Clock())
        await furnished(store, 40 * HOLD)

        async def one(number: int) -> None:
            answer = await store.open_attempt(an_admission(number))
            found = await store.attempt(an_id(number))
            assert (found is None) == (answer == Refused("overspend"))
            if found is not None:
                await store.settle(complete(number))
                found = await store.attempt(an_id(number))
                assert found is not None
                assert found.closure is not None

        await asyncio.gather(*(one(number) for number in range(100)))
        await store.close()
        assert check(path, NOW) == ()

    run(main())
