"""Read the index of stored runs where nothing can be written: on a full disk, in a read-only folder.

SQLite writes beside a file that it reads. Here the file is read into memory instead, and runs that it does not list are
added from their own files.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from .annotations import Annotations
from .object_files import ObjectFiles
from .sqlite_index import COLUMNS, SCHEMA, TABLE, damage, prepare, schema_number

T = TypeVar("T")
DEFAULTS = {"starred": 0, "notes": ""}  # of columns that the file of a run does not carry
INSERT = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join(f':{name}' for name in COLUMNS)}) "  # noqa: S608 - constant names
    "ON CONFLICT (id) DO NOTHING"
)
_JOURNAL = slice(18, 20)  # bytes of an SQLite file that state whether it has a log beside it


class IndexCopy:
    """A copy of the index in memory, read again when the files have changed; safe to use from several threads."""

    def __init__(self, path: Path, objects: ObjectFiles, annotations: Annotations) -> None:
        self._path, self._objects, self._annotations = path, objects, annotations
        self._connection: sqlite3.Connection | None = None
        self._version: tuple[Any, ...] = ()
        self._lock = threading.Lock()

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function on the copy."""
        with self._lock:
            version = self._stamp()
            if self._connection is None or version != self._version:
                self._connection, self._version = self._load(), version
            return work(self._connection)

    def _stamp(self) -> tuple[Any, ...]:
        stamps = []
        for path in (self._path, Path(f"{self._path}-wal")):
            with suppress(OSError):
                status = path.stat()
                stamps.append((path.name, status.st_mtime_ns, status.st_size))
        return *stamps, *sorted(path.name for path in self._objects.paths())

    def _load(self) -> sqlite3.Connection:
        connection = _connect()
        try:
            data = bytearray(self._path.read_bytes())
            data[_JOURNAL] = b"\1\1"
            connection.deserialize(bytes(data))
            if schema_number(connection) == SCHEMA and damage(connection):
                raise sqlite3.DatabaseError
            connection.execute(f"SELECT {', '.join(COLUMNS)} FROM runs LIMIT 1")  # noqa: S608 - constant names
        except (OSError, IndexError, sqlite3.Error):  # absent or damaged
            connection.close()
            connection = _connect()
            connection.execute(TABLE)
        listed = {str(row[0]) for row in connection.execute("SELECT content FROM runs")}
        for path in self._objects.paths():
            if path.name not in listed and (found := self._objects.read_intact(path)) is not None:
                row = {**DEFAULTS, **found.metadata, **self._annotations.read(found.metadata["id"])}
                connection.execute(INSERT, {**row, "content": path.name, "bytes": found.bytes})
        return connection


def _connect() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    prepare(connection)
    return connection
