"""Migrations: each once, in order, whole; what does not match is refused with the remedy."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cheapgpu.ledger.errors import MigrationError
from cheapgpu.ledger.migrate import Migration, migrate, shipped
from tests.ledger.facts import NOW

FIRST = Migration(1, "0001_a.sqlite.sql", "CREATE TABLE a (x);")
SECOND = Migration(2, "0002_b.sqlite.sql", "CREATE TABLE b (x); INSERT INTO a VALUES (1);")
FAULTY = Migration(2, "0002_b.sqlite.sql", "CREATE TABLE b (x); INSERT INTO nowhere VALUES (1);")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A new file."""
    connection = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    yield connection
    connection.close()


def tables(db: sqlite3.Connection) -> set[str]:
    """The names of the tables."""
    return {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_each_is_applied_once(db: sqlite3.Connection) -> None:
    """A new file gets all, a file of an older version what it lacks, a current one nothing."""
    assert migrate(db, NOW, (FIRST,)) == 1
    assert migrate(db, NOW + 1, (FIRST, SECOND)) == 1
    assert migrate(db, NOW + 2, (FIRST, SECOND)) == 0
    assert tables(db) == {"a", "b", "migration"}
    assert db.execute("SELECT number, applied_us FROM migration").fetchall() == [
        (1, NOW),
        (2, NOW + 1),
    ]


def test_one_that_fails_leaves_nothing(db: sqlite3.Connection) -> None:
    """A migration is applied whole or not at all, and may be tried again."""
    with pytest.raises(MigrationError, match=r"0002_b\.sqlite\.sql could not be applied: no such"):
        migrate(db, NOW, (FIRST, FAULTY))
    assert tables(db) == {"a", "migration"}
    assert not db.in_transaction
    assert migrate(db, NOW, (FIRST, SECOND)) == 1


def test_a_changed_text_is_refused(db: sqlite3.Connection) -> None:
    """A file that was made by another text is refused, and the remedy is said."""
    migrate(db, NOW, (FIRST,))
    changed = Migration(1, FIRST.name, FIRST.sql + " ")
    with pytest.raises(MigrationError, match="install the version of cheapgpu that did"):
        migrate(db, NOW, (changed, SECOND))
    assert tables(db) == {"a", "migration"}


def test_a_newer_file_is_refused(db: sqlite3.Connection) -> None:
    """A file of a newer version is refused by an older program, and the remedy is said."""
    migrate(db, NOW, (FIRST, SECOND))
    with pytest.raises(MigrationError, match=r"newer version of cheapgpu \(0002_b"):
        migrate(db, NOW, (FIRST,))


def test_what_ships_is_numbered_without_gaps() -> None:
    """Numbers go from 1 on, and no two files share one."""
    assert [migration.number for migration in shipped()] == list(range(1, len(shipped()) + 1))
    assert shipped()[0].name == "0001_ledger.sqlite.sql"
