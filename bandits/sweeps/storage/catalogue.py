"""Index all sweeps of a folder and the estimates of their points in an SQLite file.

The index is derived from the blocks. An entry that is missing or older than its blocks is rebuilt, and so is the whole
file if it is damaged or of another version. Any tool that reads SQLite can query it.
"""

from __future__ import annotations

import errno
import json
import logging
import re
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bandits.base.errors import UserError
from bandits.results.describe import plain_value
from bandits.results.metric_registry import OBJECTIVES
from bandits.results.metrics import Estimate
from bandits.results.run import Headline, from_json, to_json
from bandits.storage.annotations import Annotations
from bandits.storage.sqlite_index import Database, DatabaseCorruptError
from bandits.sweeps.analysis.landscape import Landscape
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.runner import Runner
from bandits.sweeps.sweep import Sweep, read

from .block_files import BlockFiles, stored_sweep

T = TypeVar("T")
VERSION = 1
_TABLES = {
    "sweeps": "id TEXT PRIMARY KEY, sweep TEXT NOT NULL, points INTEGER NOT NULL, runs INTEGER NOT NULL, "
    "steps INTEGER NOT NULL, seed INTEGER NOT NULL, done REAL NOT NULL, changed REAL NOT NULL, bytes INTEGER NOT NULL, "
    "best TEXT NOT NULL, checksum TEXT NOT NULL",
    "points": "sweep TEXT NOT NULL, point INTEGER NOT NULL, parameters TEXT NOT NULL, runs INTEGER NOT NULL, "
    "diverged INTEGER NOT NULL, "
    + "".join(f"{name} REAL, {name}_low REAL, {name}_high REAL, " for name in OBJECTIVES)
    + "checksum TEXT NOT NULL, PRIMARY KEY (sweep, point)",
}
_INTACT = {  # SQL that is true for a line whose checksum is right
    table: f"checksum IS checksum_of({', '.join(re.findall('([a-z_]+) (?:TEXT|INTEGER|REAL)', columns)[:-1])})"
    for table, columns in _TABLES.items()
}
_log = logging.getLogger(__name__)


class CatalogueEntry(NamedTuple):
    """One stored sweep.

    Attributes
    ----------
    sweep : Sweep
    progress : float
        Finished share of the work, 0 to 1.
    modified : float
        Time of the last write, in seconds since 1970.
    bytes : int
        Size on disk.
    best : Headline or None
        The best point, labelled by the agent and the swept values; None before anything is computed.
    starred : bool
    notes : str
        Written by the user.
    """

    sweep: Sweep
    progress: float
    modified: float
    bytes: int
    best: Headline | None = None
    starred: bool = False
    notes: str = ""


class Catalogue:
    """Index of the sweeps in a folder; several processes may use it at the same time.

    Parameters
    ----------
    folder : Path
        Folder of all sweeps.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sweeps: dict[str, Sweep] = {}  # validated once, by hash
        self._file = Database(folder / "index.sqlite", "the index of sweeps")
        self._annotations = Annotations(folder / "annotations")

    def entries(self, busy: Collection[str] = ()) -> list[CatalogueEntry]:
        """List all stored sweeps, newest first, without those in ``busy``, which change all the time."""
        if not self.folder.is_dir():
            return []
        query, empty = "SELECT id, sweep, done, changed, bytes, best FROM sweeps", list[Any]()
        lines = self._use(partial(_intact_lines, "sweeps", query, ()), empty, write=False)
        indexed = {str(line[0]): line[1:] for line in lines}
        entries = []
        for path in self.folder.iterdir():
            if path.name in busy or not path.is_dir():
                continue
            try:
                entry = self._entry(path, indexed.get(path.name))
            except Exception:  # noqa: BLE001 - one unreadable sweep must not hide the others
                _log.exception("the sweep in %s cannot be read", path)
                continue
            entries += [] if entry is None else [self.annotated(entry)]
        self._sweeps = {entry.sweep.hash: entry.sweep for entry in entries}
        for sweep in indexed:
            if not (self.folder / sweep).is_dir():
                self._use(partial(_delete_entry, sweep=sweep), None)
        return sorted(entries, key=lambda entry: -entry.modified)

    def annotated(self, entry: CatalogueEntry) -> CatalogueEntry:
        """Add the star and the notes of a sweep to its entry."""
        found = self._annotations.read(entry.sweep.hash)
        return entry._replace(starred=found.get("starred", False), notes=found.get("notes", ""))

    def annotate(self, sweep: str, *, running: bool = False, **changes: Any) -> None:
        """Change star (``starred``) or ``notes`` of a sweep, in one transaction of the index: no change is lost.

        Parameters
        ----------
        sweep : str
        running : bool
            Whether it is running, and may have stored nothing yet.

        Raises
        ------
        UserError
            There is no such sweep.
        OSError
            The disk is full or cannot be written.
        """
        if not running and stored_sweep(self.folder, sweep) is None:
            raise UserError("this sweep has been deleted; star and notes were not stored")

        def change(_: sqlite3.Connection) -> None:
            self._annotations.write(sweep, {**self._annotations.read(sweep), **changes})

        self.folder.mkdir(parents=True, exist_ok=True)
        self._use_repaired(change, write=True)

    def forget(self, sweep: str) -> None:
        """Delete star and notes of a sweep."""
        self._annotations.drop(sweep)

    def estimate_at(self, sweep: str, point: int) -> tuple[Estimate, int] | None:
        """Click-through rate of a stored point and its number of replications; None if it is not known."""
        columns = "ctr, ctr_low, ctr_high, runs"
        query = f"SELECT {columns} FROM points NOT INDEXED WHERE sweep = ? AND point = ?"  # noqa: S608 - constant names
        empty = list[Any]()
        lines = self._use(partial(_intact_lines, "points", query, (sweep, point)), empty, write=False)
        if not lines or lines[0][0] is None:
            return None
        mean, *ends, runs = lines[0]
        low, high = (float("nan") if end is None else float(end) for end in ends)
        return Estimate(float(mean), low, high), int(runs)

    def _entry(self, path: Path, line: tuple[Any, ...] | None) -> CatalogueEntry | None:
        with suppress(UserError, TypeError, ValueError):  # a damaged line
            if line is not None and float(line[2]) == path.stat().st_mtime:
                sweep = self._sweeps.get(path.name) or read(line[0])
                if sweep.hash == path.name:
                    return CatalogueEntry(sweep, float(line[1]), float(line[2]), int(line[3]), from_json(line[4]))
        stored = stored_sweep(self.folder, path.name)
        return None if stored is None else self._rebuild_entry(BlockFiles(stored, self.folder))

    def _rebuild_entry(self, files: BlockFiles) -> CatalogueEntry:
        """Read the blocks of a sweep and write its entry and those of its points."""
        sweep, blocks = files.sweep, _blocks(files)
        runner = Runner(sweep, InProcessExecutor(), files)
        try:
            runner.load()
        except UserError:  # Optuna made its points and is not installed
            return CatalogueEntry(sweep, 0.0, files.modified, files.bytes)
        landscape = runner.landscape
        entry = CatalogueEntry(sweep, landscape.progress, files.modified, files.bytes, best_point(landscape))
        if _blocks(files) != blocks:  # another process writes blocks: index them the next time
            return entry

        def write(tables: sqlite3.Connection) -> None:
            e = sweep.experiment
            _delete_entry(tables, sweep.hash)
            line = (
                sweep.hash,
                sweep.model_dump_json(),
                sweep.size,
                e.replications,
                e.steps,
                e.seed,
                *entry[1:4],
                to_json(entry.best),
            )
            _insert(tables, "sweeps", [line])
            _insert(tables, "points", _points(landscape))

        self._use(write, None)
        return entry

    def _use(self, work: Callable[[sqlite3.Connection], T], default: T, *, write: bool = True) -> T:
        """Call ``work`` with the tables, rebuilt if they are damaged; returns ``default`` if the disk fails."""
        try:
            return self._use_repaired(work, write=write)
        except OSError as error:
            _log.warning("%s", error)
            return default

    def _use_repaired(self, work: Callable[[sqlite3.Connection], T], *, write: bool) -> T:
        """Call ``work`` with the tables, rebuilt if they are damaged.

        Raises
        ------
        OSError
        """
        for _ in range(2):
            try:
                self._create()
                return self._file.use(work, write=write)
            except DatabaseCorruptError as error:
                _log.warning("the index of sweeps is damaged (%s); it is rebuilt", error)
                for ending in ("-wal", "-shm", ""):
                    Path(f"{self._file.path}{ending}").unlink(missing_ok=True)
        raise OSError(errno.EIO, "the index of sweeps stays damaged", str(self._file.path))

    def _create(self) -> None:
        if self._file.use(_version) == VERSION:
            return

        def make(tables: sqlite3.Connection) -> None:
            if _version(tables) != VERSION:  # another process may have been first
                for name, columns in _TABLES.items():
                    tables.execute(f"DROP TABLE IF EXISTS {name}")
                    tables.execute(f"CREATE TABLE {name} ({columns})")
                tables.execute(f"PRAGMA user_version={VERSION}")

        self._file.use(make, write=True)


def best_point(landscape: Landscape) -> Headline | None:
    """Describe the best point of a sweep by its own metric: LinUCB (alpha 0.35), CTR, regret; None before the first."""
    sweep, point = landscape.sweep, landscape.leader(landscape.sweep.metric)
    if point is None:
        return None
    found = [landscape.estimate_at(point, name) for name in ("ctr", "pseudo_regret")]
    ctr, regret = (Estimate(np.nan, np.nan, np.nan) if each is None else each[0] for each in found)
    values = zip(sweep.axes, sweep.values_at(point), strict=True)
    setting = ", ".join(f"{axis.spoken.replace('_', ' ')} {plain_value(value)}" for axis, value in values)
    return Headline(f"{sweep.experiment.labels[0]} ({setting})", ctr, regret)


def _blocks(files: BlockFiles) -> set[str]:
    return {path.name for path in files.folder.glob("*.block")}


def _version(tables: sqlite3.Connection) -> int:
    return int(tables.execute("PRAGMA user_version").fetchone()[0])


def _intact_lines(table: str, query: str, values: tuple[Any, ...], tables: sqlite3.Connection) -> list[Any]:
    """Return the lines of a query.

    Raises
    ------
    DatabaseCorruptError
        A line of the table differs from its checksum.
    """
    if tables.execute(f"SELECT 1 FROM {table} WHERE NOT ({_INTACT[table]}) LIMIT 1").fetchone():  # noqa: S608 - constant table names
        raise DatabaseCorruptError(f"a line of {table} is damaged")
    return tables.execute(query, values).fetchall()


def _delete_entry(tables: sqlite3.Connection, sweep: str) -> None:
    tables.execute("DELETE FROM sweeps WHERE id = ?", (sweep,))
    tables.execute("DELETE FROM points NOT INDEXED WHERE sweep = ?", (sweep,))


def _insert(tables: sqlite3.Connection, table: str, lines: Sequence[tuple[Any, ...]]) -> None:
    for line in lines:
        values = ", ".join("?" * len(line))
        tables.execute(f"INSERT INTO {table} VALUES ({values}, checksum_of({values}))", [*line, *line])  # noqa: S608 - constant table names


def _points(landscape: Landscape) -> list[tuple[Any, ...]]:
    """Return one line for every point with at least one computed row."""
    sweep, lines = landscape.sweep, []
    for point in np.flatnonzero(landscape.completed.any(axis=1)).tolist():
        values = dict(zip((axis.path for axis in sweep.axes), sweep.values_at(point), strict=True))
        completed, alive = int(landscape.completed[point].sum()), int(landscape.alive[point].sum())
        estimates = [landscape.estimate_at(point, name) for name in OBJECTIVES]
        numbers = [n for each in estimates for n in (each[0] if each is not None else (None, None, None))]
        lines.append((sweep.hash, point, json.dumps(values), alive, completed - alive, *numbers))
    return lines
