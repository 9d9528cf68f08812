"""Store finished runs and checkpoints on disk: an SQLite index over immutable, checksummed files.

A file is written under a temporary name, synced, renamed to the SHA-256 of its content and only
then indexed: a process killed at any moment leaves a complete file or none. Every file is verified
when it is read, and damaged ones are quarantined. Each file carries its own row of the index, so
that a damaged index is rebuilt from the files."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from bandits.base.errors import UserError
from bandits.base.files import Arrays, home, lock_file
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.history import History
from bandits.results.result import Result
from bandits.results.run import headline, to_json

from . import reserve
from .annotations import Annotations
from .checkpoints import RUN_ID, Checkpoints
from .object_files import ObjectFiles, digest, pack_run
from .run_index import RUNS, WRITTEN, CorruptFileError, RunIndex
from .scores import Scores
from .stored_run import StoredRun, read_kept, result_of, stored_run

__all__ = ["MIN_FREE", "RUN_ID", "CorruptFileError", "EvictedError", "Store", "StoredRun"]
COMPARABLE = """
evicted = 0 AND CASE WHEN json_valid(experiment) THEN
    json_extract(experiment, '$.seed') = ? AND json_extract(experiment, '$.steps') = ?
    AND json_extract(experiment, '$.replications') = ? AND json_extract(experiment, '$.simulator.kind') = ?
END ORDER BY created DESC LIMIT ?
"""  # noqa: E501
MAX_COMPARABLE = 256  # runs
# bytes that must be free before a run starts
MIN_FREE = 200 * 2**20


class EvictedError(CorruptFileError):
    """The curves of a stored run were deleted to save space; the message is one sentence."""


class Store:
    """Runs in a folder; safe to use from several processes at once.

    Parameters
    ----------
    folder : Path, optional
        ``BANDITS_HOME`` or the user's data directory by default.

    Raises
    ------
    OSError
        The folder cannot be created or written; so too from every method.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home()
        self._objects = ObjectFiles(self.folder)
        self.checkpoint_files = Checkpoints(
            self.folder / "checkpoints", self._objects.staging, self._objects.quarantine
        )
        self._annotations = Annotations(self.folder / "annotations", self._objects.staging)
        self._index = RunIndex(self.folder / "index.sqlite", self._objects, self._annotations)
        self.scores = Scores(self.folder / "scores.sqlite")
        self._lock: IO[str] | None = None
        if not self.notice:
            reserve.fill(self.folder)

    @property
    def notice(self) -> str:
        """Why runs can be read but not changed, in one sentence.

        Empty where they can be changed.
        """
        return (
            self._index.obstacle
            and f"The stored runs can be read but not changed: {self._index.obstacle}."
        )

    @property
    def repairs(self) -> list[str]:
        """Damage that was found and repaired, one sentence each, until `check` has reported it."""
        return self._index.repairs

    def claim(self) -> bool:
        """Claim the unfinished runs; return whether this object holds the claim.

        One object at a time holds it, until `release` or until its process ends: the system
        releases the file lock even if the process is killed."""
        # the folder was emptied
        if self._lock is not None and not os.fstat(self._lock.fileno()).st_nlink:
            self.release()
        if self._lock is None:
            # where nothing can be written, no run is continued
            with suppress(OSError):
                self._lock = lock_file(self.folder / "server.lock")
        return self._lock is not None

    def release(self) -> None:
        """Give up the claim on the unfinished runs."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def require_space(self) -> None:
        """Check that there is enough free disk space to store another run.

        Raises
        ------
        UserError
        """
        try:
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise UserError(
                f"the folder of stored runs, {self.folder}, cannot be reached: {error.strerror}"
            ) from None
        if free < MIN_FREE:
            raise UserError(
                f"the disk under {self.folder} has {free / 2**20:,.0f} MiB left; "
                f"a run needs {MIN_FREE / 2**20:,.0f} MiB"
            )

    # -- runs
    # ----------------------------------------------------------------------------------------------------  # noqa: E501

    def put(self, experiment: Experiment, histories: dict[str, History], seconds: float) -> None:
        """Store a finished run; a run that is already stored is left unchanged.

        Raises
        ------
        OSError
            The disk is full or cannot be written; no partial file stays.
        """
        row: dict[str, Any] = {
            "id": experiment.hash,
            "experiment": experiment.model_dump_json(),
            "title": ", ".join(experiment.labels),
            "tags": "",
            "created": time.time(),
            "seconds": seconds,
            "evicted": 0,
            "starred": False,
            "notes": "",
            "headline": to_json(headline(experiment, histories)),
        }
        arrays = {
            f"{i}/{k}": v for i, h in enumerate(histories.values()) for k, v in h.since(0).items()
        }

        def commit(index: sqlite3.Connection, staged: Path, content: dict[str, Any]) -> str | None:
            known = RUNS.find(index, "id = ?", row["id"])
            if known and not known[0]["evicted"]:
                return None
            self._objects.commit(staged, content["content"])
            written = {name: known[0][name] for name in WRITTEN} if known else {}
            RUNS.put(index, {**row, **content, **written})
            return str(known[0]["content"]) if known else None

        self._store(pack_run(row, arrays), commit)

    def _store(
        self, data: bytes, commit: Callable[[sqlite3.Connection, Path, dict[str, Any]], str | None]
    ) -> None:
        """Write a file and list it.

        ``commit`` returns the name of the file that it replaces, if any.

        The file is renamed within the transaction: no other process can list or delete the run in
        between."""
        content = {"content": digest(data), "bytes": len(data)}
        staged = self._objects.stage(data)
        try:
            self._remove_unlisted(
                self._index.use(lambda index: commit(index, staged, content), write=True)
            )
        finally:
            staged.unlink(missing_ok=True)

    def _remove_unlisted(self, content: str | None) -> None:
        """Delete a file that a finished transaction has replaced, unless another run has the same
        content.
        """
        if content is not None and not self._index.find("content = ?", content):
            # what stays is listed again when the store is opened
            with suppress(OSError):
                self._objects.path(content).unlink(missing_ok=True)

    def seconds(self, run: str) -> float:
        """Return the wall time of a stored run in seconds; 0 if it is not stored."""
        return sum(float(row["seconds"]) for row in self._index.find("id = ?", run))

    def get(self, run: str) -> Result | None:
        """Return a stored run, or None if it is not stored.

        Raises
        ------
        CorruptFileError
            The file was damaged; it has been quarantined and the run is no longer listed.
        EvictedError
            The curves were deleted to save space; the run is still listed and can be run again.
        """
        rows = self._index.find("id = ?", run)
        # perhaps another process was killed while it replaced the file
        if rows and not self._objects.path(rows[0]["content"]).exists():
            self._index.reindex_all()
            rows = self._index.find("id = ?", run)
        found = self._index.read_object(run, rows[0]["content"]) if rows else None
        if found is None:
            return None
        if found.row["evicted"]:
            raise EvictedError(
                f"the curves of run {run[:12]} were deleted to save space; run it again to restore "
                "them"
            )
        try:
            return result_of(read(found.row["experiment"]), found.arrays)
        except (KeyError, IndexError, TypeError, ValueError, MemoryError) as error:
            # a plug-in or a data set is missing
            if isinstance(error, UserError):
                raise
            self._index.set_aside(run, rows[0]["content"])
            return None

    def runs(self) -> list[StoredRun]:
        """List all stored runs, newest first."""
        rows = self._index.find("1 ORDER BY created DESC")
        return [run for row in rows if (run := stored_run(row)) is not None]

    def comparable(self, experiment: Experiment) -> list[tuple[str, Experiment]]:
        """List at most 256 stored runs with curves, newest first, over the same users as an
        experiment.

        They have its kind of simulator, seed, steps and replications.
        """
        kind = experiment.simulator.kind
        same = (experiment.seed, experiment.steps, experiment.replications, kind, MAX_COMPARABLE)
        found = (
            (row["id"], read_kept(row["experiment"])) for row in self._index.find(COMPARABLE, *same)
        )
        return [(run, other) for run, other in found if other is not None and other.hash == run]

    def rename(self, run: str, title: str) -> None:
        """Replace the title of a run."""
        self._annotate(run, title=title)

    def tag(self, run: str, tags: str) -> None:
        """Replace the tags of a run."""
        self._annotate(run, tags=tags)

    def star(self, run: str, starred: bool) -> None:
        """Star a run, or remove its star."""
        self._annotate(run, starred=starred)

    def note(self, run: str, notes: str) -> None:
        """Replace the notes on a run."""
        self._annotate(run, notes=notes)

    def notes(self, run: str) -> str | None:
        """Return the notes on a run; None if it is not stored."""
        rows = self._index.find("id = ?", run)
        return str(rows[0]["notes"]) if rows else None

    def _annotate(self, run: str, **changes: Any) -> None:
        """Change what is written about a run: in its file, from which the index can be rebuilt, and
        in the index.
        """

        def change(index: sqlite3.Connection) -> None:
            for row in RUNS.find(index, "id = ?", run):
                new = {**row, "starred": bool(row["starred"]), **changes}
                self._annotations.write(run, {name: new[name] for name in WRITTEN})
                RUNS.put(index, new)

        self._index.use(change, write=True)

    def delete(self, run: str) -> None:
        """Delete a run and its checkpoint, and its file unless another run has the same content."""
        # first: a checkpoint without its run would be listed as unfinished
        self.drop_checkpoint(run)

        def remove(index: sqlite3.Connection) -> list[dict[str, Any]]:
            rows = RUNS.find(index, "id = ?", run)
            RUNS.delete(index, "id = ?", run)
            return rows

        for row in self._index.use(remove, write=True):
            self._remove_unlisted(row["content"])
        self._annotations.drop(run)

    # -- disk space
    # ----------------------------------------------------------------------------------------------

    def evictable(self, *, checkpoints: bool = True) -> list[tuple[float, int, str]]:
        """List runs whose curves can be deleted and computed again: creation time, bytes, run.

        Oldest first.
        """
        sizes = self.checkpoint_files.sizes() if checkpoints else {}
        return sorted(
            (run.created, run.bytes + sizes.get(run.id, 0), run.id)
            for run in self.runs()
            if not run.evicted
        )

    def evict(self, run: str) -> int:
        """Delete a finished run's curves and checkpoint; it stays listed.

        Return the number of bytes freed.
        """
        rows = self._index.find("id = ?", run)
        if not rows:
            return 0
        size = int(rows[0]["bytes"]) + self.checkpoint_files.sizes().get(run, 0)
        # this frees space and needs none
        self.drop_checkpoint(run)
        data = pack_run({**rows[0], "evicted": 1}, {})

        def commit(index: sqlite3.Connection, staged: Path, content: dict[str, Any]) -> str | None:
            self._objects.commit(staged, content["content"])
            for row in RUNS.find(index, "id = ?", run):
                RUNS.put(index, {**row, **content, "evicted": 1})
            return str(rows[0]["content"])

        self._store(data, commit)
        return size - len(data)

    def check(self) -> list[str]:
        """Verify every file; return one sentence for each that was damaged or not listed.

        Damaged files are quarantined, files that the index does not list are listed again.
        """
        messages = [*self._index.check(), *self.checkpoint_files.check()]
        if not self.notice:
            self._objects.remove_stale()
            for run in [run.id for run in self.runs() if self._annotations.is_damaged(run.id)]:
                # written again from the index
                self._annotate(run)
                messages.append(
                    f"the file of the texts on run {run[:12]} was damaged; it was written again"
                )
        return messages

    # -- checkpoints
    # ---------------------------------------------------------------------------------------------

    @property
    def staging(self) -> Path:
        """Folder of temporary files, on the file system of the others."""
        return self._objects.staging

    def keep_checkpoint(self, run: str, experiment: Experiment, state: bytes | Path) -> None:
        """Replace the checkpoint of a run; see `Checkpoints.write`."""
        self.checkpoint_files.write(run, experiment, state)

    def checkpoint_arrays(self, run: str) -> Arrays:
        """Return the state in a run's checkpoint as arrays, empty if there is no intact one."""
        return self.checkpoint_files.arrays(run)

    def checkpoint_experiment(self, run: str) -> str | None:
        """Return the experiment's JSON in a run's checkpoint, or None if there is no intact one."""
        return self.checkpoint_files.experiment(run)

    def checkpoints(self) -> list[tuple[str, str]]:
        """List the unfinished runs: ids and experiments as JSON, newest first."""
        return self.checkpoint_files.unfinished({row["id"] for row in self._index.find()})

    def drop_checkpoint(self, run: str) -> None:
        """Delete the checkpoint of a run, if there is one."""
        self.checkpoint_files.drop(run)
