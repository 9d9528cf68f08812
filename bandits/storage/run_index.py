"""The index of stored runs, made from their files and from what users wrote about them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from .annotations import Annotations
from .index import Index, Table
from .object_files import ObjectFiles, StoredObject

T = TypeVar("T")
RUNS = Table(
    "runs",
    {
        "id": "TEXT",
        "experiment": "TEXT",
        "title": "TEXT",
        "tags": "TEXT",
        "created": "REAL",
        "seconds": "REAL",
        "content": "TEXT",
        "bytes": "INTEGER",
        "evicted": "INTEGER",
        "starred": "INTEGER",
        "notes": "TEXT",
        "headline": "TEXT",
    },
    key="id",
)
# columns that users write
WRITTEN = ("title", "tags", "starred", "notes")


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
        self._objects, self._annotations = objects, annotations
        self._index = Index(path, "the index of stored runs", (RUNS,), self._fill)
        # rows of files that were read because the index cannot be written
        self._read: dict[str, dict[str, Any]] = {}
        self.open()

    def open(self) -> None:
        """Verify the index, and list files that it does not name."""
        try:
            self.reindex_all()
        except OSError as error:
            self._use_files(lambda _: None, error)

    def use(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        """Run a function on the index.

        Where it cannot be written, on a table in memory, made from the files.

        See `Index.use` for ``write``.
        """
        try:
            result = self._index.use(work, write=write)
        except OSError as error:
            if write:
                raise
            return self._use_files(work, error)
        self.obstacle = ""
        return result

    def _use_files(self, work: Callable[[sqlite3.Connection], T], error: OSError) -> T:
        """Run a function on a table in memory, unless the whole folder is missing or the index is
        no file.
        """
        if not self._index.path.parent.is_dir() or self._index.path.is_dir():
            raise error
        paths = {path.name: path for path in self._objects.paths()}
        self._read = {name: row for name, row in self._read.items() if name in paths}
        for name in paths.keys() - self._read.keys():
            if (found := self._objects.read_intact(paths[name])) is not None:
                self._read[name] = found.row
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as index:
            RUNS.create(index)
            # of two files of a run, the one with curves counts
            for row in sorted(self._read.values(), key=lambda row: -int(row["evicted"])):
                RUNS.put(index, {**row, **self._annotations.read(row["id"])})
            result = work(index)
        self.obstacle = error.strerror or str(error)
        return result

    def find(self, condition: str = "1", *values: Any) -> list[dict[str, Any]]:
        """Return the rows that meet a condition in SQL."""
        return self.use(lambda index: RUNS.find(index, condition, *values))

    def check(self) -> list[str]:
        """Read every file; return one sentence for each repair.

        Damaged files are quarantined, and files that the index does not list are listed again.
        Where nothing can be written, damage is reported only."""
        self.open()
        messages, self.repairs = self.repairs, []
        for row in self.find():
            try:
                self.read_object(row["id"], row["content"])
            except CorruptFileError as error:
                messages.append(str(error))
        if self.obstacle:
            unread = sorted({path.name for path in self._objects.paths()} - self._read.keys())
            messages += [f"the stored file {name[:12]} is damaged" for name in unread]
        return messages

    def read_object(self, run: str, content: str) -> StoredObject | None:
        """Return a run's file, or None if another process has just deleted the run.

        Raises
        ------
        CorruptFileError
            The file was damaged; it has been quarantined and the run is no longer listed.
        """
        found = self._objects.read_intact(self._objects.path(content))
        if found is None:
            self._drop(run, content)
        return found

    def set_aside(self, run: str, content: str) -> None:
        """Quarantine the file of a run, which cannot be used, and list the run no longer.

        Raises
        ------
        CorruptFileError
        """
        self._drop(run, content, unless_intact=False)

    def _drop(self, run: str, content: str, *, unless_intact: bool = True) -> None:
        """Quarantine a damaged file, unless another process has replaced or deleted it
        meanwhile.
        """
        path = self._objects.path(content)

        def drop(index: sqlite3.Connection) -> bool:
            listed = RUNS.find(index, "id = ? AND content = ?", run, content)
            if not listed or (unless_intact and self._objects.read_intact(path) is not None):
                return False
            self._objects.quarantine(path)
            RUNS.delete(index, "id = ?", run)
            return True

        if self.obstacle:
            raise CorruptFileError(f"the stored file of run {run[:12]} is damaged")
        if self.use(drop, write=True):
            raise CorruptFileError(
                f"the stored file of run {run[:12]} is damaged; it was set aside and the run must "
                "be run again"
            )

    def reindex_all(self) -> None:
        """List files that the index does not name: a process was killed before it could
        list them.
        """
        listed = {row["content"] for row in self.find()}
        for path in [path for path in self._objects.paths() if path.name not in listed]:
            self.repairs += self.use(partial(self._reindex, path), write=True)

    def _reindex(self, path: Path, index: sqlite3.Connection) -> list[str]:
        """List a file that no row names, if it is intact and carries its row.

        Else quarantine it.
        """
        if RUNS.find(index, "content = ?", path.name):
            return []
        # another process has deleted it meanwhile
        if self._objects.read(path) is None:
            return []
        found = self._objects.read_intact(path)
        if found is None:
            self._objects.quarantine(path)
            return [f"{path.name[:12]} belongs to no run and was set aside"]
        row, run = found.row, found.row["id"]
        for known in RUNS.find(index, "id = ?", run):
            if self._objects.path(known["content"]).exists() and row["evicted"] >= known["evicted"]:
                path.unlink(missing_ok=True)
                return [f"{path.name[:12]} was a second file of run {run[:12]} and was removed"]
            # its file is missing, or has no curves any more
            self._objects.path(known["content"]).unlink(missing_ok=True)
            row |= {name: known[name] for name in WRITTEN}
        RUNS.put(index, row | self._annotations.read(run))
        return [f"run {run[:12]} was not listed; its file is intact and it is listed again"]

    def _fill(self, index: sqlite3.Connection, damage: str) -> None:
        """List all files in a new table."""
        messages = [
            message
            for path in sorted(self._objects.paths())
            for message in self._reindex(path, index)
        ]
        if damage:
            messages = [
                "the index of stored runs was damaged or of another version; it was rebuilt from "
                f"the files: {len(RUNS.find(index))} found"
            ]
        self.repairs += messages
