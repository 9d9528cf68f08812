"""Store the blocks of a sweep on disk: one file with checksum per block, in one folder per
sweep.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from bandits.base.files import Arrays, atomic_write, pack, seal, unpack, unseal
from bandits.experiments.history import History
from bandits.results.metrics import late_start
from bandits.storage.annotations import Annotations
from bandits.storage.eviction import Evictable
from bandits.storage.run_store import RUN_ID
from bandits.sweeps.axis import Value
from bandits.sweeps.block_check import block_problem
from bandits.sweeps.blocks import CURVE_POINTS, Block
from bandits.sweeps.sweep import Sweep, read

# fields of sweep.json beside those of the sweep: what Optuna proposed, and a hash of the sweep and
# these points
PROPOSALS, CHECKSUM = "proposals", "checksum"


class BlockFiles:
    """The files of one sweep.

    Parameters
    ----------
    sweep : Sweep
        With the points proposed so far, if there is no grid.
    folder : Path
        Folder of all sweeps.
    """

    def __init__(self, sweep: Sweep, folder: Path) -> None:
        self.sweep, self.folder = sweep, folder / sweep.hash

    def get(self, block: Block, stage: Sweep | None = None) -> Arrays | None:
        """Return a block's arrays; None if it is not stored.

        A file that is damaged, of another sweep or block, or impossible is removed, so that it is
        computed again.

        Parameters
        ----------
        block : Block
        stage : Sweep, optional
            The stage of the sweep before a refinement that the block belongs to. Its blocks are
            copied from the folders of the sweeps that were refined, so that these can be deleted.
        """
        if (arrays := self._read(block, stage)) is not None or stage is None:
            return arrays
        for earlier in self.sweep.stages[:-1]:
            if (arrays := BlockFiles(earlier, self.folder.parent)._copy(block, stage)) is not None:
                # reported when the first block is stored
                with suppress(OSError):
                    self.save(block, arrays, stage)
                return arrays
        return None

    def _copy(self, block: Block, stage: Sweep) -> Arrays | None:
        """Return a block of this sweep or of one of its own stages."""
        return self._read(block, stage) if stage.looks <= self.sweep.looks else None

    def _read(self, block: Block, stage: Sweep | None) -> Arrays | None:
        path = self._path(block, stage)
        try:
            arrays = _read(path)
        except OSError:
            return None
        if arrays is not None and not block_problem(
            stage or self.sweep, block, arrays, stored=True
        ):
            return arrays
        # it is computed again, and replaced if the disk can be written
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None

    def save_sweep(self) -> None:
        """Store the sweep itself."""
        if not self.exists:
            atomic_write(
                self._description, self.sweep.model_dump_json(exclude={"proposed"}).encode()
            )

    def proposals(self) -> list[tuple[Value, ...]]:
        """Return the stored proposals of a search by Optuna.

        None if they are damaged: they are made again.
        """
        with suppress(OSError, ValueError, LookupError, TypeError):
            stored = json.loads(self._description.read_bytes())
            found = [tuple(point) for point in stored[PROPOSALS]]
            if stored[CHECKSUM] == self._checksum(found):
                return found
        return []

    def save_proposals(self, proposals: Sequence[tuple[Value, ...]]) -> None:
        """Store the sweep with all proposals of its search so far.

        Raises
        ------
        OSError
            If the disk is full or cannot be written.
        """
        own = self.sweep.model_dump(mode="json", exclude={"proposed"})
        content = json.dumps(
            {**own, PROPOSALS: proposals, CHECKSUM: self._checksum(proposals)}
        ).encode()
        if not self.exists or self._description.read_bytes() != content:
            atomic_write(self._description, content)

    def _checksum(self, proposals: Sequence[tuple[Value, ...]]) -> str:
        return hashlib.sha256(json.dumps([self.sweep.hash, proposals]).encode()).hexdigest()

    def save(self, block: Block, arrays: Arrays, stage: Sweep | None = None) -> None:
        """Write a block atomically.

        Raises
        ------
        OSError
            If the disk is full or cannot be written.
        """
        self.save_sweep()
        _write(self._path(block, stage), arrays)

    @property
    def exists(self) -> bool:
        """Whether the sweep itself is stored."""
        return self._description.exists()

    @property
    def _description(self) -> Path:
        return self.folder / "sweep.json"

    @property
    def modified(self) -> float:
        """Time of the last write, in seconds since 1970; 0 if nothing is stored."""
        try:
            return self.folder.stat().st_mtime
        except OSError:
            return 0.0

    @property
    def bytes(self) -> int:
        """Size on disk."""
        total = 0
        for path in self.folder.glob("*"):
            # renamed while it was listed
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    def drop_curves(self) -> int:
        """Delete the curves and keep what the metrics need; returns the number of bytes freed."""
        before, grid = (
            self.bytes,
            History(self.sweep.experiment.steps, 1, 0, points=CURVE_POINTS).grid,
        )
        for path in self.folder.glob("*.block"):
            arrays = _read(path)
            if arrays is None or bool(arrays.get("thin", False)):
                continue
            for name in [name for name in arrays if name.startswith("sum.")]:
                dropped = np.ones(len(grid), np.bool_)
                dropped[[0, late_start(grid), -1]] = False
                arrays[name][dropped] = np.nan
            _write(path, {**arrays, "thin": np.array(True)})
        return before - self.bytes

    def delete(self) -> None:
        """Delete all files of the sweep."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, block: Block, stage: Sweep | None = None) -> Path:
        key = json.dumps(block.rows)
        # it numbers its points differently
        if stage is not None and stage.looks < self.sweep.looks:
            key += stage.hash
        # the hash of the sweep does not determine its points
        if not self.sweep.is_grid:
            key += json.dumps([self.sweep.values_at(point) for point, _ in block.rows])
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.block"


def stored_sweep(folder: Path, sweep: str) -> Sweep | None:
    """Read the stored sweep with this hash; None if there is none that this version can read."""
    if not RUN_ID.fullmatch(sweep):
        return None
    try:
        data = json.loads((folder / sweep / "sweep.json").read_bytes())
        if isinstance(data, dict):
            data = {
                name: value for name, value in data.items() if name not in (PROPOSALS, CHECKSUM)
            }
        stored = read(data)
    except (OSError, ValueError):
        return None
    return stored if stored.hash == sweep else None


def evictable_sweeps(folder: Path) -> list[Evictable]:
    """List the curves of all stored sweeps as evictable items."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    stored = [stored_sweep(folder, name) for name in names]
    return [evictable_sweep(BlockFiles(sweep, folder)) for sweep in stored if sweep is not None]


def evictable_sweep(files: BlockFiles) -> Evictable:
    """Return the curves of a sweep as an evictable item; all metrics stay."""
    name = f"sweep {files.folder.name[:12]}"
    return Evictable(files.modified, files.bytes, name, files.drop_curves)


def remove_damaged(folder: Path) -> list[str]:
    """Delete damaged blocks, unfinished files and unreadable sweeps.

    Returns one message per sweep.
    """
    messages = []
    for sweep in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not sweep.is_dir() or not RUN_ID.fullmatch(sweep.name):
            continue
        if stored_sweep(folder, sweep.name) is None:
            shutil.rmtree(sweep, ignore_errors=True)
            done = "is damaged" if sweep.exists() else "was removed"
            messages.append(f"sweep {sweep.name[:12]} had no readable sweep.json; it {done}")
            continue
        if (texts := Annotations(folder / "annotations")).is_damaged(sweep.name):
            with suppress(OSError):
                texts.drop(sweep.name)
            messages.append(
                f"sweep {sweep.name[:12]}: the file of its star and notes was damaged; it was "
                "removed"
            )
        bad = [path for path in sweep.iterdir() if path.suffix == ".part" or not is_intact(path)]
        for path in bad:
            # in a folder that cannot be written
            with suppress(OSError):
                path.unlink()
        if bad:
            done = "are damaged" if any(path.exists() for path in bad) else "were removed"
            messages.append(
                f"sweep {sweep.name[:12]}: {len(bad)} damaged or unfinished blocks {done}; run it "
                "again"
            )
    return messages


def is_intact(path: Path) -> bool:
    """Whether a file of a sweep is undamaged."""
    return path.suffix != ".block" or _read(path) is not None


def _read(path: Path) -> Arrays | None:
    """Return the arrays of a block file.

    None if it is damaged or has the name of another sweep or block.
    """
    data = unseal(_owner(path), path.read_bytes())
    with suppress(ValueError):
        return None if data is None else unpack(data)
    return None


def _write(path: Path, arrays: Arrays) -> None:
    atomic_write(path, seal(_owner(path), pack(arrays)))


def _owner(path: Path) -> str:
    """Return the hashes of the sweep and of the block, which are the names of folder and file."""
    return f"{path.parent.name}/{path.stem}"
