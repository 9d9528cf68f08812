"""Keep the index of stored runs in one SQLite table, and replace its file when it is damaged."""

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
SCHEMA = 3
_LATER = {  # columns that older schemas lack
    "evicted": "INTEGER NOT NULL DEFAULT 0",
    "starred": "INTEGER NOT NULL DEFAULT 0",
    "notes": "TEXT NOT NULL DEFAULT ''",
    "headline": "TEXT",  # JSON; NULL: not computed yet
}
_TABLE = f"""
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, experiment TEXT NOT NULL, title TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL, seconds REAL NOT NULL, content TEXT NOT NULL, bytes INTEGER NOT NULL,
    {", ".join(f"{name} {declaration}" for name, declaration in _LATER.items())}
)
"""
# errors caused by the disk, permissions or other processes; any other code means that the file is damaged
_EXTERNAL = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip


class DatabaseCorruptError(Exception):
    """The database file is damaged."""


class Database:
    """SQLite tables in one file; safe to use from several processes at once.

    Parameters
    ----------
    path : Path
    description : str
        What the file holds, for error messages.
    """

    def __init__(self, path: Path, description: str) -> None:
        self.path, self._description = path, description

    def use(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        """Run a function on a connection; with ``write`` in one exclusive transaction.

        Raises
        ------
        DatabaseCorruptError
        OSError
            The disk is full or cannot be written, or another process held the database for half a minute.
        """
        try:
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as connection:
                # a flipped bit in one text must not make the other rows unreadable
                connection.text_factory = lambda raw: raw.decode(errors="replace")
                if not write:
                    return work(connection)
                connection.execute("BEGIN IMMEDIATE")
                try:
                    result = work(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):  # SQLite may have rolled back already
                        connection.execute("ROLLBACK")
                    raise
                return result
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None or not self._is_external(code):
                raise DatabaseCorruptError(str(error)) from None
            number = errno.ENOSPC if code & 0xFF == sqlite3.SQLITE_FULL else errno.EIO
            raise OSError(number, f"{self._description}: {error}", str(self.path)) from None

    def _is_external(self, code: int) -> bool:
        if code == sqlite3.SQLITE_IOERR_SHORT_READ:  # the file ends too early
            return False
        if code & 0xFF == sqlite3.SQLITE_READONLY and os.access(self.path, os.W_OK):  # a flipped version number
            return not os.access(self.path.parent, os.W_OK)
        return code & 0xFF in _EXTERNAL


class Index(Database):
    """The table ``runs`` of stored runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the index of stored runs")

    def create(self) -> None:
        """Create the table if it does not exist, migrate an older one, and verify the file.

        Raises
        ------
        DatabaseCorruptError
        OSError
        """

        def make(index: sqlite3.Connection) -> None:
            index.execute("PRAGMA journal_mode=WAL")
            index.execute(_TABLE)

        self.use(make)
        if self.use(_missing_columns):
            self._migrate()
        self.verify()

    def _migrate(self) -> None:
        """Migrate an older table to the current schema; a copy of the old file is kept."""
        older = 1 if "evicted" in self.use(_missing_columns) else 2
        backup = self.path.with_name(f"index-schema-{older}.sqlite")
        staged = self.path.with_name(f".{time.time_ns()}.sqlite")

        def copy(index: sqlite3.Connection) -> None:
            with closing(sqlite3.connect(staged)) as target:
                index.backup(target)

        def widen(index: sqlite3.Connection) -> None:
            for name in _missing_columns(index):  # another process may have been first
                index.execute(f"ALTER TABLE runs ADD COLUMN {name} {_LATER[name]}")
            index.execute(f"PRAGMA user_version={SCHEMA}")

        try:
            self.use(copy)
            if not backup.exists():
                os.replace(staged, backup)
        finally:
            staged.unlink(missing_ok=True)
        self.use(widen, write=True)

    def verify(self) -> None:
        """Read every row and run SQLite's integrity check.

        Raises
        ------
        DatabaseCorruptError
        OSError
        """

        def check(index: sqlite3.Connection) -> list[Any]:
            index.execute(
                "SELECT id, experiment, title, tags, created, seconds, content, bytes, evicted, starred, notes, "
                "headline FROM runs"
            ).fetchall()
            return index.execute("PRAGMA integrity_check").fetchall()

        if (report := self.use(check)) != [("ok",)]:
            raise DatabaseCorruptError(str(report[0][0]))

    def rebuild(self, quarantine: Path, fill: Callable[[sqlite3.Connection, dict[str, tuple[str, str]]], None]) -> bool:
        """Quarantine a damaged file and fill a new one; return False if another process has done it already.

        Parameters
        ----------
        quarantine : Path
            Folder for the damaged file.
        fill : callable
            Called with the new table and, by run, the titles and tags that could still be read.
        """
        with self._exclusive():
            with suppress(DatabaseCorruptError):
                self.create()
                return False
            names = self._readable_names()
            stamp = time.time_ns()
            for ending in ("-wal", "-shm", ""):  # the log first: SQLite deletes a log that lies beside a new file
                with suppress(FileNotFoundError):
                    os.replace(f"{self.path}{ending}", quarantine / f"{self.path.name}-{stamp}{ending}")
            self.create()
            self.use(lambda index: fill(index, names), write=True)
            return True

    def _readable_names(self) -> dict[str, tuple[str, str]]:
        names: dict[str, tuple[str, str]] = {}

        def read(index: sqlite3.Connection) -> None:
            for run, title, tags in index.execute("SELECT id, title, tags FROM runs NOT INDEXED"):
                names[str(run)] = (str(title), str(tags))

        with suppress(DatabaseCorruptError, OSError):
            self.use(read)
        return names

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold a lock between processes; SQLite's own works on every system and ends with the process."""
        with closing(sqlite3.connect(f"{self.path}.lock", timeout=60, isolation_level=None)) as lock:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.DatabaseError as error:
                raise OSError(errno.EIO, f"the lock of the index: {error}", f"{self.path}.lock") from None
            yield


def _missing_columns(index: sqlite3.Connection) -> list[str]:
    """List the columns of the current schema that the table lacks."""
    present = {row[1] for row in index.execute("PRAGMA table_info(runs)")}
    return [name for name in _LATER if name not in present]
