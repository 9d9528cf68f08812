"""Keep the index of stored runs in one SQLite table, and replace its file when it is damaged."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
# The number of the schema. The next one must differ from it in two bits: a flipped bit is no newer version.
SCHEMA = 1
TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, experiment TEXT NOT NULL, title TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL, seconds REAL NOT NULL, content TEXT NOT NULL, bytes INTEGER NOT NULL,
    evicted INTEGER NOT NULL DEFAULT 0, starred INTEGER NOT NULL DEFAULT 0, notes TEXT NOT NULL DEFAULT '',
    headline TEXT NOT NULL DEFAULT '', checksum TEXT
)
"""
COLUMNS = (
    "id", "experiment", "title", "tags", "created", "seconds", "content", "bytes", "evicted", "starred", "notes",
    "headline",
)  # fmt: skip
# errors caused by the disk, permissions or other processes; any other code means that the file is damaged
_EXTERNAL = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip


def checksum_of(columns: tuple[str, ...], row: str = "") -> str:
    """Return the SQL that computes the checksum of a row, ``old`` or ``new`` in a trigger."""
    return f"checksum_of({', '.join(f'{row}.{name}' if row else name for name in columns)})"


# Every change of a row renews its checksum, and a damaged row is not changed. The triggers are of the connection, not
# of the file: a row that another tool changes counts as damaged.
_TRIGGERS = f"""
PRAGMA temp_store=MEMORY;
CREATE TEMP TRIGGER inserted AFTER INSERT ON main.runs BEGIN
    UPDATE runs SET checksum = {checksum_of(COLUMNS, "new")} WHERE rowid = new.rowid; END;
CREATE TEMP TRIGGER damaged BEFORE UPDATE OF {", ".join(COLUMNS)} ON main.runs
    WHEN old.checksum IS NOT {checksum_of(COLUMNS, "old")} BEGIN SELECT RAISE(ABORT, 'a row is damaged'); END;
CREATE TEMP TRIGGER changed AFTER UPDATE OF {", ".join(COLUMNS)} ON main.runs BEGIN
    UPDATE runs SET checksum = {checksum_of(COLUMNS, "new")} WHERE rowid = new.rowid; END;
"""  # noqa: S608 - constant names


class DatabaseCorruptError(Exception):
    """The database file is damaged."""


class NewerSchemaError(OSError):
    """A newer version wrote the file; this one may read it only."""


class Database:
    """SQLite tables in one file; safe to use from several processes at once.

    The SQL function ``checksum_of`` computes the checksum of any values.

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
                prepare(connection)
                if not write:
                    return work(connection)
                self._before_write(connection)
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

    def _before_write(self, connection: sqlite3.Connection) -> None:
        """Prepare a connection that will write."""

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

    def _before_write(self, connection: sqlite3.Connection) -> None:
        connection.executescript(_TRIGGERS)

    def create(self) -> None:
        """Create the table if it does not exist, and verify the file.

        Raises
        ------
        DatabaseCorruptError
        NewerSchemaError
        OSError
        """
        number = self.use(schema_number)
        if number > SCHEMA:
            if (number ^ SCHEMA).bit_count() == 1:
                raise DatabaseCorruptError(f"its number is {number}")
            raise NewerSchemaError(errno.EROFS, f"a newer version wrote them (schema {number}, this one has {SCHEMA})")

        def make(index: sqlite3.Connection) -> None:
            index.execute("PRAGMA journal_mode=WAL")
            index.execute(TABLE)
            if number != SCHEMA:
                index.execute(f"PRAGMA user_version={SCHEMA}")

        self.use(make)
        self.verify()

    def verify(self) -> None:
        """Read every row, compare its checksum, and run SQLite's integrity check.

        Raises
        ------
        DatabaseCorruptError
        OSError
        """
        if report := self.use(damage):
            raise DatabaseCorruptError(report)

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
        """Return titles and tags of the rows that are intact."""
        names: dict[str, tuple[str, str]] = {}

        def read(index: sqlite3.Connection) -> None:
            sql = f"SELECT id, title, tags FROM runs NOT INDEXED WHERE checksum IS {checksum_of(COLUMNS)}"  # noqa: S608 - constant names
            for run, title, tags in index.execute(sql):
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


def prepare(connection: sqlite3.Connection) -> None:
    """Add the function ``checksum_of`` to a connection, and read damaged texts without an error."""
    # a flipped bit in one text must not make the other rows unreadable
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    connection.create_function("checksum_of", -1, _checksum, deterministic=True)


def schema_number(index: sqlite3.Connection) -> int:
    """Return the number of the schema with which a file was written; 0 for an empty one."""
    return int(index.execute("PRAGMA user_version").fetchone()[0])


def damage(index: sqlite3.Connection) -> str:
    """Describe the first damage of the table of runs; empty without any."""
    wrong = f"SELECT count(*) FROM runs NOT INDEXED WHERE checksum IS NOT {checksum_of(COLUMNS)}"  # noqa: S608 - constant names
    if count := index.execute(wrong).fetchone()[0]:
        return f"{count} rows are damaged"
    report = index.execute("PRAGMA integrity_check").fetchall()
    return "" if report == [("ok",)] else str(report[0][0])


def _checksum(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
