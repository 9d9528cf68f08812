"""An index: tables in one SQLite file that repeat what other files say, so that these can be listed
quickly.

Every row carries a checksum, and the file is verified whenever it has changed. A file that is
missing, damaged or of another schema is replaced by one that is filled again. Nothing stands in an
index alone, so nothing is lost with it. Any tool that reads SQLite can query it."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
_CONVERTED: dict[str, Callable[[Any], Any]] = {"TEXT": str, "INTEGER": int, "REAL": float}
# errors caused by the disk, permissions or other processes; any other code means that the file is
# damaged
_EXTERNAL = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}
_log = logging.getLogger(__name__)


class DamagedIndexError(Exception):
    """The file of an index is damaged or of another schema."""


class EmptyIndexError(DamagedIndexError):
    """The file of an index was missing, or its tables are not yet created."""


class Table(NamedTuple):
    """A table of an index. Each row ends with its checksum.

    Attributes
    ----------
    name : str
    columns : mapping of str to str
        The type of each column: TEXT, INTEGER or REAL. Any value may be NULL; NaN is stored as
        NULL.
    key : str
        The columns that identify a row, separated by commas.
    """

    name: str
    columns: Mapping[str, str]
    key: str

    def create(self, index: sqlite3.Connection) -> None:
        """Create the table."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        index.execute(
            f"CREATE TABLE {self.name} ({columns}, checksum TEXT, PRIMARY KEY ({self.key}))"
        )

    def find(
        self, index: sqlite3.Connection, condition: str = "1", *values: Any
    ) -> list[dict[str, Any]]:
        """Return the rows that meet a condition in SQL, which may end with an order."""
        sql = f"SELECT {', '.join(self.columns)} FROM {self.name} WHERE {condition}"  # noqa: S608
        return [dict(zip(self.columns, row, strict=True)) for row in index.execute(sql, values)]

    def put(self, index: sqlite3.Connection, row: Mapping[str, Any]) -> None:
        """Insert a row, or replace the one with the same key."""
        values = [_stored(row[name], kind) for name, kind in self.columns.items()]
        marks = ", ".join("?" * (len(values) + 1))
        sql = f"INSERT OR REPLACE INTO {self.name} VALUES ({marks})"  # noqa: S608
        index.execute(sql, [*values, _checksum(values)])

    def delete(self, index: sqlite3.Connection, condition: str, *values: Any) -> None:
        """Delete the rows that meet a condition in SQL."""
        index.execute(f"DELETE FROM {self.name} WHERE {condition}", values)  # noqa: S608

    def verify(self, index: sqlite3.Connection) -> None:
        """Compare every row with its checksum.

        Raises
        ------
        DamagedIndexError
        """
        for *values, checksum in index.execute(f"SELECT * FROM {self.name} NOT INDEXED"):  # noqa: S608
            if _checksum(values) != checksum:
                raise DamagedIndexError(f"a row of {self.name} is damaged")


class Index:
    """Tables in one SQLite file; safe to use from several processes at once.

    Parameters
    ----------
    path : Path
    description : str
        What the file holds, for messages.
    tables : sequence of Table
    fill : callable, optional
        Called with new tables, in the transaction that creates them, and with the damage of the
        file that they replace ("" if there was none). Without it they begin empty.
    """

    def __init__(
        self,
        path: Path,
        description: str,
        tables: Sequence[Table],
        fill: Callable[[sqlite3.Connection, str], None] | None = None,
    ) -> None:
        self.path = path
        self._description, self._tables, self._fill = description, tables, fill
        # the number of the schema follows from the tables; SQLite has 31 bits for it, and 0 is an
        # empty file
        declared = json.dumps([(name, list(columns.items()), key) for name, columns, key in tables])
        self._schema = int(hashlib.sha256(declared.encode()).hexdigest()[:7], 16) + 1
        self._verified: tuple[Any, ...] | None = None

    def use(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        """Run a function on the tables; with ``write`` in one exclusive transaction.

        Raises
        ------
        OSError
            The disk is full or cannot be written, or another process held the file for half a
            minute.
        """
        try:
            return self._use(work, write=write)
        except DamagedIndexError:
            self._renew()
        try:
            return self._use(work, write=write)
        except DamagedIndexError as error:
            raise OSError(
                errno.EIO, f"{self._description} is damaged ({error})", str(self.path)
            ) from None

    def _use(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        with self._connected() as index:
            self._verify(index)
            if not write:
                return work(index)
            with _transaction(index):
                return work(index)

    def _verify(self, index: sqlite3.Connection) -> None:
        """Verify the file if it has changed since it was verified."""
        version = self._version()
        if version == self._verified:
            return
        if (schema := index.execute("PRAGMA user_version").fetchone()[0]) != self._schema:
            if schema == 0 and not index.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise EmptyIndexError
            raise DamagedIndexError("its schema is another one")
        for table in self._tables:
            table.verify(index)
        if (report := index.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            raise DamagedIndexError(str(report[0][0]))
        self._verified = version

    def _version(self) -> tuple[Any, ...]:
        """Return what changes when the file or its log is written."""
        found = []
        for path in (self.path, Path(f"{self.path}-wal")):
            with suppress(FileNotFoundError):
                status = path.stat()
                found += (
                    [(status.st_ino, status.st_mtime_ns, status.st_size)] if status.st_size else []
                )
        return tuple(found)

    def _renew(self) -> None:
        """Create and fill the tables in a new file, unless another process has just done so."""
        with self._exclusive():
            damage = ""
            try:
                return self._use(lambda _: None)
            except EmptyIndexError:
                pass
            except DamagedIndexError as error:
                damage = str(error)
                _log.warning("%s is damaged (%s); it is made again", self._description, damage)
                # the log first: SQLite deletes a log that lies beside a new file
                for ending in ("-wal", "-shm", ""):
                    Path(f"{self.path}{ending}").unlink(missing_ok=True)
            # titles and notes are for no other user of this machine; its log has the same mode
            self.path.touch(0o600)
            # where it was there already, empty
            self.path.chmod(0o600)
            with self._connected() as index:
                index.execute("PRAGMA journal_mode=WAL")
                with _transaction(index):
                    for table in self._tables:
                        table.create(index)
                    if self._fill is not None:
                        self._fill(index, damage)
                    index.execute(f"PRAGMA user_version={self._schema}")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as index:
                # a flipped bit in a text is found by its checksum, not by an error of decoding
                index.text_factory = lambda raw: raw.decode(errors="replace")
                yield index
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None or not self._is_external(code):
                raise DamagedIndexError(str(error)) from None
            number = errno.ENOSPC if code & 0xFF == sqlite3.SQLITE_FULL else errno.EIO
            raise OSError(number, f"{self._description}: {error}", str(self.path)) from None

    def _is_external(self, code: int) -> bool:
        # the file ends too early
        if code == sqlite3.SQLITE_IOERR_SHORT_READ:
            return False
        # a flipped version number, unless the folder cannot be written
        if code & 0xFF == sqlite3.SQLITE_READONLY and os.access(self.path, os.W_OK):
            return not os.access(self.path.parent, os.W_OK)
        return code & 0xFF in _EXTERNAL

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold a lock between processes.

        SQLite's own works on every system and ends with the process.
        """
        with closing(
            sqlite3.connect(f"{self.path}.lock", timeout=60, isolation_level=None)
        ) as lock:
            try:
                lock.execute("BEGIN EXCLUSIVE")
            except sqlite3.DatabaseError as error:
                raise OSError(
                    errno.EIO, f"the lock of {self._description}: {error}", f"{self.path}.lock"
                ) from None
            yield


@contextmanager
def _transaction(index: sqlite3.Connection) -> Iterator[None]:
    index.execute("BEGIN IMMEDIATE")
    try:
        yield
        index.execute("COMMIT")
    except BaseException:
        # SQLite may have rolled back already
        with suppress(sqlite3.Error):
            index.execute("ROLLBACK")
        raise


def _stored(value: Any, kind: str) -> Any:
    """Convert a value to the one that SQLite returns."""
    converted = None if value is None else _CONVERTED[kind](value)
    return None if converted != converted else converted


def _checksum(values: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
