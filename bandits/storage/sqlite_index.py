"""The store's index: one SQLite table, and what is done when its file is damaged."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
SCHEMA = 2  # 1: without the column evicted
_TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, experiment TEXT NOT NULL, title TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL, seconds REAL NOT NULL, content TEXT NOT NULL, bytes INTEGER NOT NULL,
    evicted INTEGER NOT NULL DEFAULT 0
)
"""
# what the disk, its permissions or other processes do; any other complaint is about the file itself
_OUTSIDE = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip


class DatabaseCorruptError(Exception):
    """The index cannot be read as what was written."""


class Database:
    """Tables in one file; safe to use from several processes at once.

    Parameters
    ----------
    path : Path
    description : str
        What the file holds, for error messages.
    """

    def __init__(self, path: Path, description: str) -> None:
        self.path, self._description = path, description

    def use(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        """Do some work on the tables; with ``write`` as one transaction beside which nobody else writes.

        Raises
        ------
        Damaged
        OSError
            The disk is full, cannot be written, or another process held the index for half a minute.
        """
        try:
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as connection:
                # a bit that has flipped in a text is a strange letter, not the end of the list
                connection.text_factory = lambda raw: raw.decode(errors="replace")
                if not write:
                    return work(connection)
                connection.execute("BEGIN IMMEDIATE")
                try:
                    found = work(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):  # the transaction may have been rolled back by SQLite already
                        connection.execute("ROLLBACK")
                    raise
                return found
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None or not self._outside(code):
                raise DatabaseCorruptError(str(error)) from None
            number = errno.ENOSPC if code & 0xFF == sqlite3.SQLITE_FULL else errno.EIO
            raise OSError(number, f"{self._description}: {error}", str(self.path)) from None

    def _outside(self, code: int) -> bool:
        if code == sqlite3.SQLITE_IOERR_SHORT_READ:  # the file ends too early
            return False
        if code & 0xFF == sqlite3.SQLITE_READONLY and os.access(self.path, os.W_OK):  # a flipped version number
            return not os.access(self.path.parent, os.W_OK)
        return code & 0xFF in _OUTSIDE


class Index(Database):
    """The table ``runs``, which `create` makes where there is none."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the index of stored runs")

    def create(self) -> None:
        """Make the table where there is none, and look whether the file is in order.

        Raises
        ------
        Damaged
        OSError
        """

        def make(index: sqlite3.Connection) -> None:
            index.execute("PRAGMA journal_mode=WAL")
            index.execute(_TABLE)

        self.use(make)
        if not self.use(_current):
            self._migrate()
        self.verify()

    def _migrate(self) -> None:
        """Bring an older table to the present schema; what it was is kept beside it."""
        aside, staged = self.path.with_name("index-schema-1.sqlite"), self.path.with_name(f".{time.time_ns()}.sqlite")

        def copy(index: sqlite3.Connection) -> None:
            with closing(sqlite3.connect(staged)) as kept:
                index.backup(kept)

        def widen(index: sqlite3.Connection) -> None:
            if not _current(index):  # another process may have been first
                index.execute("ALTER TABLE runs ADD COLUMN evicted INTEGER NOT NULL DEFAULT 0")
            index.execute(f"PRAGMA user_version={SCHEMA}")

        try:
            self.use(copy)
            if not aside.exists():
                os.replace(staged, aside)
        finally:
            staged.unlink(missing_ok=True)
        self.use(widen, write=True)

    def verify(self) -> None:
        """Read all of it.

        Raises
        ------
        Damaged
        OSError
        """

        def look(index: sqlite3.Connection) -> list[Any]:
            index.execute(
                "SELECT id, experiment, title, tags, created, seconds, content, bytes, evicted FROM runs"
            ).fetchall()
            return index.execute("PRAGMA integrity_check").fetchall()

        if (found := self.use(look)) != [("ok",)]:
            raise DatabaseCorruptError(str(found[0][0]))

    def renew(self, aside: Path, fill: Callable[[sqlite3.Connection, dict[str, tuple[str, str]]], None]) -> bool:
        """Set a damaged file aside and fill a new one; whether that was (still) needed.

        Parameters
        ----------
        aside : Path
            Folder for the damaged file.
        fill : callable
            Given the new table and, by id, the titles and tags that could still be read.
        """
        with self._alone():
            with suppress(DatabaseCorruptError):
                self.create()
                return False  # another process has done it meanwhile
            names = self._names()
            stamp = time.time_ns()
            for ending in ("-wal", "-shm", ""):  # SQLite throws a log away that it finds beside a new file
                with suppress(FileNotFoundError):
                    os.replace(f"{self.path}{ending}", aside / f"{self.path.name}-{stamp}{ending}")
            self.create()
            self.use(lambda index: fill(index, names), write=True)
            return True

    def _names(self) -> dict[str, tuple[str, str]]:
        names: dict[str, tuple[str, str]] = {}

        def rescue(index: sqlite3.Connection) -> None:
            for run, title, tags in index.execute("SELECT id, title, tags FROM runs NOT INDEXED"):
                names[str(run)] = (str(title), str(tags))

        with suppress(DatabaseCorruptError, OSError):
            self.use(rescue)
        return names

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time; a lock of SQLite's works on every system and ends with the process that holds it."""
        with closing(sqlite3.connect(f"{self.path}.lock", timeout=60, isolation_level=None)) as lock:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.DatabaseError as error:
                raise OSError(errno.EIO, f"the lock of the index: {error}", f"{self.path}.lock") from None
            yield


def _current(index: sqlite3.Connection) -> bool:
    """Whether the table has all columns of the present schema."""
    return "evicted" in {row[1] for row in index.execute("PRAGMA table_info(runs)")}
