"""The blocks of a sweep on disk: one checksummed file each, under the sweep's own folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import Arrays, atomic_write, pack, unpack
from bandits.experiments.history import History
from bandits.storage.eviction import Evictable
from bandits.storage.run_store import RUN_ID
from bandits.sweeps.analysis.landscape import late_start
from bandits.sweeps.blocks import CURVE_POINTS, Block
from bandits.sweeps.sweep import Sweep, read


class BlockFiles:
    """What is kept of one sweep.

    Parameters
    ----------
    sweep : Sweep
        With the points that have been proposed so far, where they are.
    folder : Path
        Of all sweeps.
    """

    def __init__(self, sweep: Sweep, folder: Path) -> None:
        self.sweep, self.folder = sweep, folder / sweep.hash

    def get(self, block: Block) -> Arrays | None:
        """A block's arrays; None if it cannot be read. A damaged file is removed: it is computed again."""
        path = self._path(block)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        if not _whole(data):
            path.unlink(missing_ok=True)
            return None
        return unpack(data[32:])

    def save_sweep(self) -> None:
        """Say what the folder is of."""
        about = self.folder / "sweep.json"
        if not about.exists():
            atomic_write(about, self.sweep.model_dump_json(exclude={"proposed"}).encode())

    def save(self, block: Block, arrays: Arrays) -> None:
        """Write a block: all of it or nothing.

        Raises
        ------
        OSError
            The disk is full or cannot be written.
        """
        self.save_sweep()
        _write(self._path(block), arrays)

    @property
    def study(self) -> Path:
        """Where Optuna keeps its study of it."""
        return self.folder / "study.db"

    @property
    def modified(self) -> float:
        """When something was last kept, in seconds since 1970; 0 if nothing is."""
        try:
            return self.folder.stat().st_mtime
        except OSError:
            return 0.0

    @property
    def bytes(self) -> int:
        """What it weighs."""
        total = 0
        for path in self.folder.glob("*"):
            with suppress(FileNotFoundError):  # it was being written, and has its name now
                total += path.stat().st_size
        return total

    def drop_curves(self) -> int:
        """Give up the curves: of every sum only what the metrics need stays. Returns the bytes this has freed."""
        before, grid = self.bytes, History(self.sweep.experiment.steps, 1, 0, points=CURVE_POINTS).grid
        for path in self.folder.glob("*.block"):
            data = path.read_bytes()
            if not _whole(data):
                continue
            arrays = unpack(data[32:])
            if bool(arrays.get("thin", False)):
                continue
            for name in History.SUMS:
                gone = np.ones(len(grid), np.bool_)
                gone[[0, late_start(grid), -1]] = False
                arrays[f"sum.{name}"][gone] = np.nan
            _write(path, {**arrays, "thin": np.array(True)})
        return before - self.bytes

    def delete(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, block: Block) -> Path:
        about = json.dumps(block.rows)
        if not self.sweep.is_grid:  # its hash says nothing of the points
            about += json.dumps([self.sweep.values_at(point) for point, _ in block.rows])
        return self.folder / f"{hashlib.sha256(about.encode()).hexdigest()[:32]}.block"


def stored_sweep(folder: Path, sweep: str) -> Sweep | None:
    """The sweep of this hash, if there is one that this version can read."""
    if not RUN_ID.fullmatch(sweep):
        return None
    try:
        found = read((folder / sweep / "sweep.json").read_bytes())
    except (OSError, UserError):
        return None
    return found if found.hash == sweep else None


def evictable_sweeps(folder: Path) -> list[Evictable]:
    """The curves of stored sweeps; the numbers of all points stay."""
    found = [stored_sweep(folder, path.name) for path in folder.iterdir()] if folder.is_dir() else []
    files = [BlockFiles(sweep, folder) for sweep in found if sweep is not None]
    return [Evictable(f.modified, f.bytes, f"sweep {f.folder.name[:12]}", f.drop_curves) for f in files]


def remove_damaged(folder: Path) -> list[str]:
    """Remove damaged blocks, unfinished files and unreadable sweeps; returns one sentence for each sweep."""
    messages = []
    for sweep in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not sweep.is_dir() or not RUN_ID.fullmatch(sweep.name):
            continue
        if stored_sweep(folder, sweep.name) is None:
            shutil.rmtree(sweep)
            messages.append(f"sweep {sweep.name[:12]} did not say what it is; it was removed")
            continue
        bad = [path for path in sweep.iterdir() if path.suffix == ".part" or not is_intact(path)]
        for path in bad:
            path.unlink()
        if bad:
            count = f"{len(bad)} damaged or unfinished blocks were removed"
            messages.append(f"sweep {sweep.name[:12]}: {count}; run it again")
    return messages


def is_intact(path: Path) -> bool:
    """Whether a file of a sweep is what was written."""
    return path.suffix != ".block" or _whole(path.read_bytes())


def _whole(data: bytes) -> bool:
    return hashlib.sha256(data[32:]).digest() == data[:32]


def _write(path: Path, arrays: Arrays) -> None:
    data = pack(arrays)
    atomic_write(path, hashlib.sha256(data).digest() + data)
