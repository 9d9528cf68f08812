"""Index all sweeps of a folder and the estimates of their points in an SQLite file.

The index is derived from the blocks. An entry that is missing or older than its blocks is rebuilt.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.results.describe import plain_value
from bandits.results.metric_registry import OBJECTIVES
from bandits.results.metrics import Estimate
from bandits.results.run import Headline, from_json, to_json
from bandits.storage.annotations import Annotations
from bandits.storage.index import Index, Table
from bandits.sweeps.analysis.landscape import Landscape
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.runner import Runner
from bandits.sweeps.sweep import Sweep, read

from .block_files import BlockFiles, stored_sweep

SWEEPS = Table(
    "sweeps",
    {
        "id": "TEXT",
        "sweep": "TEXT",
        "points": "INTEGER",
        "runs": "INTEGER",
        "steps": "INTEGER",
        "seed": "INTEGER",
        "done": "REAL",
        "changed": "REAL",
        "bytes": "INTEGER",
        "best": "TEXT",
    },
    key="id",
)
POINTS = Table(
    "points",
    {
        "sweep": "TEXT",
        "point": "INTEGER",
        "parameters": "TEXT",
        "runs": "INTEGER",
        "diverged": "INTEGER",
        **{f"{name}{end}": "REAL" for name in OBJECTIVES for end in ("", "_low", "_high")},
    },
    key="sweep, point",
)
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
        The best point, labelled by the agent and the swept values; None before anything is
        computed.
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
        # validated once, by hash
        self._sweeps: dict[str, Sweep] = {}
        self._index = Index(folder / "index.sqlite", "the index of sweeps", (SWEEPS, POINTS))
        self._annotations = Annotations(folder / "annotations")

    def entries(self, busy: Collection[str] = ()) -> list[CatalogueEntry]:
        """List all stored sweeps, newest first, without those in ``busy``, which change all the
        time.
        """
        if not self.folder.is_dir():
            return []
        indexed = {row["id"]: row for row in self._find(SWEEPS)}
        entries = []
        for path in self.folder.iterdir():
            if path.name in busy or not path.is_dir():
                continue
            try:
                entry = self._entry(path, indexed.get(path.name))
            except Exception:  # noqa: BLE001
                _log.exception("the sweep in %s cannot be read", path)
                continue
            entries += [] if entry is None else [self.annotated(entry)]
        self._sweeps = {entry.sweep.hash: entry.sweep for entry in entries}
        for sweep in indexed:
            if not (self.folder / sweep).is_dir():
                self._write(partial(_delete_entry, sweep=sweep))
        return sorted(entries, key=lambda entry: -entry.modified)

    def annotated(self, entry: CatalogueEntry) -> CatalogueEntry:
        """Add the star and the notes of a sweep to its entry."""
        found = self._annotations.read(entry.sweep.hash)
        return entry._replace(starred=found.get("starred", False), notes=found.get("notes", ""))

    def annotate(self, sweep: str, *, running: bool = False, **changes: Any) -> None:
        """Change star (``starred``) or ``notes`` of a sweep, in one transaction of the index: no
        change is lost.

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
        self._index.use(change, write=True)

    def forget(self, sweep: str) -> None:
        """Delete star and notes of a sweep."""
        self._annotations.drop(sweep)

    def estimate_at(self, sweep: str, point: int) -> tuple[Estimate, int] | None:
        """Click-through rate of a stored point and its number of replications.

        None if it is not known.
        """
        rows = self._find(POINTS, "sweep = ? AND point = ?", sweep, point)
        if not rows or rows[0]["ctr"] is None:
            return None
        numbers = [
            np.nan if rows[0][name] is None else rows[0][name]
            for name in ("ctr", "ctr_low", "ctr_high")
        ]
        return Estimate(*numbers), int(rows[0]["runs"])

    def _entry(self, path: Path, row: dict[str, Any] | None) -> CatalogueEntry | None:
        # this version may not read what another one wrote
        with suppress(UserError):
            if row is not None and row["changed"] == path.stat().st_mtime:
                sweep = self._sweeps.get(path.name) or read(row["sweep"])
                if sweep.hash == path.name:
                    return CatalogueEntry(
                        sweep, row["done"], row["changed"], row["bytes"], from_json(row["best"])
                    )
        stored = stored_sweep(self.folder, path.name)
        return None if stored is None else self._rebuild_entry(BlockFiles(stored, self.folder))

    def _rebuild_entry(self, files: BlockFiles) -> CatalogueEntry:
        """Read the blocks of a sweep and write its entry and those of its points."""
        sweep, blocks = files.sweep, _blocks(files)
        runner = Runner(sweep, InProcessExecutor(), files)
        try:
            runner.load()
        except UserError:
            # Optuna made its points and is not installed
            return CatalogueEntry(sweep, 0.0, files.modified, files.bytes)
        # another process writes blocks: index them the next time
        return self.index(sweep, runner.landscape, written=_blocks(files) == blocks)

    def index(self, sweep: Sweep, landscape: Landscape, *, written: bool = True) -> CatalogueEntry:
        """Return the entry of a sweep and write it, with those of its points, to the index.

        Parameters
        ----------
        sweep : Sweep
            As it was given, without points that Optuna proposed.
        landscape : Landscape
            Of all stored blocks.
        written : bool
            Whether the index gets it: not, while another process writes blocks.
        """
        files = BlockFiles(sweep, self.folder)
        entry = CatalogueEntry(
            sweep, landscape.progress, files.modified, files.bytes, best_point(landscape)
        )

        def write(index: sqlite3.Connection) -> None:
            _delete_entry(index, sweep.hash)
            SWEEPS.put(index, _sweep_row(entry))
            for row in _point_rows(landscape):
                POINTS.put(index, row)

        if written:
            self._write(write)
        return entry

    def _find(self, table: Table, condition: str = "1", *values: Any) -> list[dict[str, Any]]:
        """Return rows of a table; none if the disk fails, so that the blocks are read."""
        try:
            return self._index.use(lambda index: table.find(index, condition, *values))
        except OSError as error:
            _log.warning("%s", error)
            return []

    def _write(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Change the index; if the disk fails, it is made anew the next time."""
        try:
            self._index.use(work, write=True)
        except OSError as error:
            _log.warning("%s", error)


def best_point(landscape: Landscape) -> Headline | None:
    """Describe the best point of a sweep by its own metric: LinUCB (alpha 0.35), CTR, regret.

    None before the first.
    """
    sweep, point = landscape.sweep, landscape.leader(landscape.sweep.metric)
    if point is None:
        return None
    found = [landscape.estimate_at(point, name) for name in ("ctr", "pseudo_regret")]
    if sweep.experiment.offers("visits"):
        # that of the next step is no regret there
        found[1] = None
    ctr, regret = (Estimate(np.nan, np.nan, np.nan) if each is None else each[0] for each in found)
    values = zip(sweep.axes, sweep.values_at(point), strict=True)
    setting = ", ".join(
        f"{axis.spoken.replace('_', ' ')} {plain_value(value)}" for axis, value in values
    )
    return Headline(f"{sweep.experiment.labels[0]} ({setting})", ctr, regret)


def _blocks(files: BlockFiles) -> set[str]:
    return {path.name for path in files.folder.glob("*.block")}


def _delete_entry(index: sqlite3.Connection, sweep: str) -> None:
    SWEEPS.delete(index, "id = ?", sweep)
    POINTS.delete(index, "sweep = ?", sweep)


def _sweep_row(entry: CatalogueEntry) -> dict[str, Any]:
    sweep, e = entry.sweep, entry.sweep.experiment
    return {
        "id": sweep.hash,
        "sweep": sweep.model_dump_json(),
        "points": sweep.size,
        "runs": e.replications,
        "steps": e.steps,
        "seed": e.seed,
        "done": entry.progress,
        "changed": entry.modified,
        "bytes": entry.bytes,
        "best": to_json(entry.best),
    }


def _point_rows(landscape: Landscape) -> Iterator[dict[str, Any]]:
    """Yield one row for every point with at least one computed replication."""
    sweep = landscape.sweep
    for point in np.flatnonzero(landscape.completed.any(axis=1)).tolist():
        values = dict(zip((axis.path for axis in sweep.axes), sweep.values_at(point), strict=True))
        completed, alive = int(landscape.completed[point].sum()), int(landscape.alive[point].sum())
        row = {
            "sweep": sweep.hash,
            "point": point,
            "parameters": json.dumps(values),
            "runs": alive,
            "diverged": completed - alive,
        }
        for name in OBJECTIVES:
            found = landscape.estimate_at(point, name)
            row[name], row[f"{name}_low"], row[f"{name}_high"] = (
                (None, None, None) if found is None else found[0]
            )
        yield row
