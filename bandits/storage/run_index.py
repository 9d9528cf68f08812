"""The index of stored runs: read and written with SQL, and rebuilt from the object files when it is damaged."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from .annotations import Annotations
from .index_copy import DEFAULTS, INSERT, IndexCopy
from .object_files import ObjectFiles, StoredObject
from .sqlite_index import DatabaseCorruptError, Index, NewerSchemaError, damage

T = TypeVar("T")
_log = logging.getLogger(__name__)


class CorruptFileError(ValueError):
    """A stored file differs from what was written; the message is one sentence."""


class RunIndex:
    """The index of the runs in ``objects``.

    Parameters
    ----------
    path : Path
        The SQLite file.
    objects : ObjectFiles
    annotations : Annotations
        Titles, tags, stars and notes: a new row of the index gets what is written there.

    Attributes
    ----------
    repairs : list of str
        Damage that was found and repaired, one sentence each, until `check` has reported it.
    obstacle : str
        Why runs can be read but not changed, in a few words; empty where they can be changed.

    Raises
    ------
    OSError
        The index cannot be read, or not be written; so too from every method.
    """

    def __init__(self, path: Path, objects: ObjectFiles, annotations: Annotations) -> None:
        self.repairs: list[str] = []
        self.obstacle = ""
        self._objects, self._annotations, self._index = objects, annotations, Index(path)
        self._copy = IndexCopy(path, objects, annotations)
        self._newer: NewerSchemaError | None = None
        self.open()

    def open(self) -> None:
        """Open the index for reading and writing, or, where it cannot be written, for reading."""
        try:
            self._newer = None
            try:
                self._index.create()
            except DatabaseCorruptError:
                self._rebuild_index()
            self.reindex_all()
            self.obstacle = ""
        except OSError as error:
            if isinstance(error, NewerSchemaError):
                self._newer = error
            self._read_copy(damage, error)

    def use(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        """Run a function on the index, and again on a rebuilt index if the first one is damaged.

        Where nothing can be written, a copy in memory is read. See `Database.use` for ``write``.
        """
        try:
            if self._newer is not None:
                raise self._newer
            result = self._use_repaired(work, write=write)
            self.obstacle = ""
            return result
        except OSError as error:
            if write:
                raise
            return self._read_copy(work, error)

    def _read_copy(self, work: Callable[[sqlite3.Connection], T], error: OSError) -> T:
        """Run a function on a copy of the index, unless the whole folder is missing or the index is no file."""
        if not self._index.path.parent.is_dir() or self._index.path.is_dir():
            raise error
        result = self._copy.use(work)
        self.obstacle = error.strerror or str(error)
        return result

    def _use_repaired(self, work: Callable[[sqlite3.Connection], T], *, write: bool) -> T:
        try:
            return self._index.use(work, write=write)
        except DatabaseCorruptError:
            self._rebuild_index()
        try:
            return self._index.use(work, write=write)
        except DatabaseCorruptError as error:
            raise self._unrepairable(error) from None

    def repair(self) -> None:
        """Replace a damaged index by one made from the files."""
        self._rebuild_index()

    def query(self, sql: str, *values: Any, write: bool = False) -> list[Any]:
        """Execute one SQL statement and return its rows."""
        return self.use(lambda index: index.execute(sql, values).fetchall(), write=write)

    def check(self) -> list[str]:
        """Compare the index with every object file; return one sentence for each repair.

        Damaged files are quarantined, and files that the index does not list are listed again. Where nothing can be
        written, damage is reported only.
        """
        self.open()
        messages, self.repairs = self.repairs, []
        for row, run, content in self.query("SELECT rowid, id, content FROM runs"):
            try:
                found = self.read_object(run, content)
            except CorruptFileError as error:
                messages.append(str(error))
            else:
                if found is not None and not self.obstacle:
                    messages += self.use(partial(_correct_row, row, found.metadata), write=True)
        return messages

    def read_object(self, run: str, content: Any) -> StoredObject | None:
        """Return a run's file, or None if another process has just deleted the run.

        Raises
        ------
        CorruptFileError
            The file was damaged; it has been quarantined and the run is no longer listed.
        """
        path = self._objects.path(content)
        found = self._objects.read_intact(path)
        if found is None:
            self._drop(run, content)
        elif found.metadata["id"] != run:  # the row names the file of another run
            self._rebuild_index()
            return None
        return found

    def set_aside(self, run: str, content: Any) -> None:
        """Quarantine the file of a run, which cannot be used, and list the run no longer.

        Raises
        ------
        CorruptFileError
        """
        self._drop(run, content, unless_intact=False)

    def _drop(self, run: str, content: Any, *, unless_intact: bool = True) -> None:
        """Quarantine a damaged file, unless another process has replaced or deleted it meanwhile."""
        path = self._objects.path(content)

        def drop(index: sqlite3.Connection) -> bool:
            rows = index.execute("SELECT rowid, content FROM runs WHERE id IS ?", (run,)).fetchall()
            if (unless_intact and self._objects.read_intact(path) is not None) or [row[1] for row in rows] != [content]:
                return False
            self._objects.quarantine(path)
            index.execute("DELETE FROM runs WHERE rowid = ?", rows[0][:1])
            return True

        if self.obstacle:
            raise CorruptFileError(f"the stored file of run {str(run)[:12]} is damaged")
        if self.use(drop, write=True):
            raise CorruptFileError(
                f"the stored file of run {str(run)[:12]} is damaged; it was set aside and the run must be run again"
            )

    def reindex_all(self) -> None:
        """List files that the index does not name: a process was killed in between, or the index was damaged."""
        listed = {str(row[0]) for row in self.query("SELECT content FROM runs")}
        for path in [path for path in self._objects.paths() if path.name not in listed]:
            self.repairs += self.use(partial(self._reindex, path), write=True)

    def _reindex(self, path: Path, index: sqlite3.Connection) -> list[str]:
        """List a file that no row names, if it is intact and carries its row; else quarantine it."""
        if index.execute("SELECT 1 FROM runs WHERE content = ?", (path.name,)).fetchone():
            return []
        if self._objects.read(path) is None:  # another process has deleted it meanwhile
            return []
        found = self._objects.read_intact(path)
        if found is None:
            self._objects.quarantine(path)
            return [f"{path.name[:12]} belongs to no run and was set aside"]
        metadata = found.metadata
        run = metadata["id"]
        columns = "title, tags, starred, notes, evicted, content"
        row = index.execute(f"SELECT {columns} FROM runs WHERE id = ?", (run,)).fetchone()  # noqa: S608 - constant
        if row and self._objects.path(row[-1]).exists() and metadata["evicted"] >= row[-2]:
            path.unlink(missing_ok=True)
            return [f"{path.name[:12]} was a second file of run {run[:12]} and was removed"]
        if row:  # its file is missing, or has no curves any more
            self._objects.path(row[-1]).unlink(missing_ok=True)
            metadata |= dict(zip(columns.split(", ")[:-2], row[:-2], strict=True))
            index.execute("DELETE FROM runs WHERE id = ?", (run,))
        metadata |= self._annotations.read(run)
        index.execute(INSERT, {**DEFAULTS, **metadata, "content": path.name, "bytes": found.bytes})
        return [f"run {run[:12]} was not listed; its file is intact and it is listed again"]

    def _rebuild_index(self) -> None:
        """Quarantine a damaged index and create a new one from the rows that the files carry."""

        def fill(index: sqlite3.Connection, names: dict[str, tuple[str, str]]) -> None:
            for path in sorted(self._objects.paths()):
                self._reindex(path, index)
            for run, (title, tags) in names.items():
                if not self._annotations.read(run):
                    index.execute("UPDATE runs SET title = ?, tags = ? WHERE id = ?", (title, tags, run))

        try:
            if not self._index.rebuild(self._objects.quarantine_folder, fill):
                # the index is sound but may be empty: another process was killed before it filled it
                self._index.use(lambda index: fill(index, {}), write=True)
                return
        except DatabaseCorruptError as error:
            raise self._unrepairable(error) from None
        count = self.query("SELECT count(*) FROM runs")[0][0]
        self.repairs.append(
            f"the index of stored runs was damaged; it was set aside and rebuilt from the files: {count} found, "
            "with their titles, tags and notes where these could still be read"
        )
        _log.warning(self.repairs[-1])

    def _unrepairable(self, error: DatabaseCorruptError) -> OSError:
        return OSError(errno.EIO, f"the index of stored runs is damaged ({error})", str(self._index.path))


def _correct_row(row: int, metadata: dict[str, Any], index: sqlite3.Connection) -> list[str]:
    """Correct a row of the index that differs from what its file carries; return a sentence if it did."""
    columns = ("id", "experiment", "created", "seconds")
    values = index.execute("SELECT id, experiment, created, seconds FROM runs WHERE rowid = ?", (row,)).fetchone()
    if values is None or list(values) == [metadata[name] for name in columns]:
        return []
    index.execute(
        "UPDATE OR REPLACE runs SET id = :id, experiment = :experiment, created = :created, seconds = :seconds "
        "WHERE rowid = :row",
        {**metadata, "row": row},
    )
    return [f"the row of run {metadata['id'][:12]} in the index was damaged; it was repaired from the run's file"]
