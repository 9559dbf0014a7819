"""Brings a file to the schema of this version: numbered SQL files, each applied once, in order.

A file of the folder `migrations` is for ever: its digest is kept in the database, and a database
that was made by another text, or by a newer version, is refused rather than guessed at.
"""

import hashlib
import re
import sqlite3
from importlib import resources
from typing import Final

from msgspec import Struct

from cheapgpu.ledger.errors import MigrationError

_NAME: Final = re.compile(r"([0-9]{4})_[a-z0-9_]+\.sqlite\.sql")
_TABLE: Final = """
CREATE TABLE migration (
  number     INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  sha256     TEXT NOT NULL,
  applied_us INTEGER NOT NULL
) STRICT;
"""


class Migration(Struct, frozen=True):
    """One step of the schema."""

    #: From 1, without gaps.
    number: int
    #: The name of its file.
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The digest of its text, in hexadecimal."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped() -> tuple[Migration, ...]:
    """The migrations of this version for SQLite, in order."""
    folder = resources.files("cheapgpu.ledger").joinpath("migrations")
    found = [
        Migration(int(match[1]), file.name, file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if (match := _NAME.fullmatch(file.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def migrate(
    db: sqlite3.Connection, now_us: int, migrations: tuple[Migration, ...] | None = None
) -> int:
    """Apply what is missing, each in a transaction of its own; return how many that were.

    `db` must be in autocommit mode. Raises MigrationError for a file that is no ledger, that a
    newer version has written, or whose migrations had another text.
    """
    known = shipped() if migrations is None else migrations
    applied = _applied(db)
    for number, name, digest in applied:
        _compare(number, name, digest, known)
    missing = known[len(applied) :]
    for migration in missing:
        first = _TABLE if migration.number == 1 else ""
        record = (
            f"INSERT INTO migration VALUES ({migration.number}, "  # noqa: S608 -- a name of ours
            f"'{migration.name}', '{migration.sha256}', {int(now_us)});"
        )
        try:
            db.executescript(f"BEGIN IMMEDIATE;\n{first}{migration.sql}\n{record}\nCOMMIT;")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise MigrationError(f"{migration.name} could not be applied: {error}") from error
    return len(missing)


def _applied(db: sqlite3.Connection) -> list[tuple[int, str, str]]:
    """What was applied to a file; nothing for a new one."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables:
        return []
    if "migration" not in tables:
        raise MigrationError("the file is a database, but no ledger: choose another name")
    return db.execute("SELECT number, name, sha256 FROM migration ORDER BY number").fetchall()


def _compare(number: int, name: str, digest: str, known: tuple[Migration, ...]) -> None:
    if number > len(known):
        raise MigrationError(
            f"the ledger was written by a newer version of cheapgpu ({name}): install that version"
        )
    if known[number - 1].sha256 != digest:
        raise MigrationError(
            f"{name} is not the text that made this ledger: install the version of cheapgpu that "
            "did, or one that came after it"
        )
