"""The sweeps of a folder and the estimates of their points, in an SQLite file that is made of their blocks.

Nothing is told by it alone: a line that is missing, or older than the blocks, is made anew from them, and so is all of
it where the file is damaged or of another version. It can be asked with any tool that reads SQLite.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bandits.base.errors import UserError
from bandits.results.metrics import Estimate
from bandits.storage.sqlite_index import Database, DatabaseCorruptError
from bandits.sweeps.analysis.landscape import METRICS, Landscape
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.runner import Runner
from bandits.sweeps.sweep import Sweep, read

from .block_files import BlockFiles, stored_sweep

T = TypeVar("T")
VERSION = 1
_TABLES = {
    "sweeps": "id TEXT PRIMARY KEY, sweep TEXT NOT NULL, points INTEGER NOT NULL, runs INTEGER NOT NULL, "
    "steps INTEGER NOT NULL, seed INTEGER NOT NULL, done REAL NOT NULL, changed REAL NOT NULL, bytes INTEGER NOT NULL",
    "points": "sweep TEXT NOT NULL, point INTEGER NOT NULL, parameters TEXT NOT NULL, runs INTEGER NOT NULL, "
    "diverged INTEGER NOT NULL, "
    + "".join(f"{name} REAL, {name}_low REAL, {name}_high REAL, " for name in METRICS)
    + "PRIMARY KEY (sweep, point)",
}
_log = logging.getLogger(__name__)


class CatalogueEntry(NamedTuple):
    """One kept sweep.

    Attributes
    ----------
    sweep : Sweep
    progress : float
        Share of its runs, 0 to 1.
    modified : float
        When something was last kept, in seconds since 1970.
    bytes : int
        On disk.
    """

    sweep: Sweep
    progress: float
    modified: float
    bytes: int


class Catalogue:
    """What is known of all sweeps under a folder; safe to use from several processes at once.

    Parameters
    ----------
    folder : Path
        Of all sweeps.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sweeps: dict[str, Sweep] = {}  # judged once, by id
        self._file = Database(folder / "index.sqlite", "the index of sweeps")

    def entries(self, busy: Collection[str] = ()) -> list[CatalogueEntry]:
        """Every kept sweep, newest first; those that are ``busy`` change all the time and are left out."""
        if not self.folder.is_dir():
            return []
        wanted, nothing = "SELECT id, sweep, done, changed, bytes FROM sweeps", list[Any]()
        lines = self._use(lambda tables: tables.execute(wanted).fetchall(), nothing, write=False)
        known = {str(line[0]): line[1:] for line in lines}
        found = []
        for path in self.folder.iterdir():
            if path.name in busy or not path.is_dir():
                continue
            try:
                line = self._line(path, known.get(path.name))
            except Exception:  # noqa: BLE001 - the others can be read
                _log.exception("the sweep in %s cannot be read", path)
                continue
            found += [] if line is None else [line]
        self._sweeps = {line.sweep.hash: line.sweep for line in found}
        for gone in known:
            if not (self.folder / gone).is_dir():
                self._use(partial(_forget, sweep=gone), None)
        return sorted(found, key=lambda line: -line.modified)

    def estimate_at(self, sweep: str, point: int) -> tuple[Estimate, int] | None:
        """The click rate of a kept point, and how many runs it rests on; None if it is not known."""
        wanted = "SELECT click_rate, click_rate_low, click_rate_high, runs FROM points WHERE sweep = ? AND point = ?"
        nothing = list[Any]()
        lines = self._use(lambda tables: tables.execute(wanted, (sweep, point)).fetchall(), nothing, write=False)
        if not lines or lines[0][0] is None:
            return None
        mean, *ends, runs = lines[0]
        low, high = (float("nan") if end is None else float(end) for end in ends)
        return Estimate(float(mean), low, high), int(runs)

    def _line(self, path: Path, line: tuple[Any, ...] | None) -> CatalogueEntry | None:
        with suppress(UserError, TypeError, ValueError):  # what a flipped bit has made of it
            if line is not None and float(line[2]) == path.stat().st_mtime:
                sweep = self._sweeps.get(path.name) or read(line[0])
                if sweep.hash == path.name:
                    return CatalogueEntry(sweep, float(line[1]), float(line[2]), int(line[3]))
        found = stored_sweep(self.folder, path.name)
        return None if found is None else self._made(BlockFiles(found, self.folder))

    def _made(self, files: BlockFiles) -> CatalogueEntry:
        """Read a sweep's blocks, and write its line and those of its points."""
        sweep, blocks = files.sweep, _blocks(files)
        runner = Runner(sweep, InProcessExecutor(), files)
        try:
            runner.load()
        except UserError:  # who made its points is not installed here, and may be tomorrow
            return CatalogueEntry(sweep, 0.0, files.modified, files.bytes)
        landscape = runner.landscape
        found = CatalogueEntry(sweep, landscape.progress, files.modified, files.bytes)
        if _blocks(files) != blocks:  # somebody is at it: the next time
            return found

        def write(tables: sqlite3.Connection) -> None:
            e = sweep.experiment
            _forget(tables, sweep.hash)
            line = (sweep.hash, sweep.model_dump_json(), sweep.size, e.replications, e.steps, e.seed, *found[1:])
            _insert(tables, "sweeps", [line])
            _insert(tables, "points", _points(landscape))

        self._use(write, None)
        return found

    def _use(self, work: Callable[[sqlite3.Connection], T], otherwise: T, *, write: bool = True) -> T:
        """Work on the tables, on new ones where they are damaged; ``otherwise`` where the disk does not let it."""
        for _ in range(2):
            try:
                self._create()
                return self._file.use(work, write=write)
            except DatabaseCorruptError as what:
                _log.warning("the index of sweeps is damaged (%s) and made anew", what)
                for ending in ("-wal", "-shm", ""):
                    Path(f"{self._file.path}{ending}").unlink(missing_ok=True)
            except OSError as error:
                _log.warning("%s", error)
                break
        return otherwise

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


def _blocks(files: BlockFiles) -> set[str]:
    return {path.name for path in files.folder.glob("*.block")}


def _version(tables: sqlite3.Connection) -> int:
    return int(tables.execute("PRAGMA user_version").fetchone()[0])


def _forget(tables: sqlite3.Connection, sweep: str) -> None:
    tables.execute("DELETE FROM sweeps WHERE id = ?", (sweep,))
    tables.execute("DELETE FROM points WHERE sweep = ?", (sweep,))


def _insert(tables: sqlite3.Connection, table: str, lines: Sequence[tuple[Any, ...]]) -> None:
    for line in lines:
        tables.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(line))})", line)  # noqa: S608 - ours


def _points(landscape: Landscape) -> list[tuple[Any, ...]]:
    """A line for every point that has a run."""
    sweep, lines = landscape.sweep, []
    for point in np.flatnonzero(landscape.completed.any(axis=1)).tolist():
        values = dict(zip((axis.path for axis in sweep.axes), sweep.values_at(point), strict=True))
        known, alive = int(landscape.completed[point].sum()), int(landscape.alive[point].sum())
        found = [landscape.estimate_at(point, name) for name in METRICS]
        numbers = [n for each in found for n in (each[0] if each is not None else (None, None, None))]
        lines.append((sweep.hash, point, json.dumps(values), alive, known - alive, *numbers))
    return lines
