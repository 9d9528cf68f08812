"""Sweeps beside the runs of an app: begun, looked at while they grow, stopped, found again on disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from bandits.base.errors import UserError
from bandits.experiments.experiment import Experiment
from bandits.results.metrics import Estimate
from bandits.runtime.pool import Pool
from bandits.sweeps.analysis.landscape import Landscape
from bandits.sweeps.analysis.nearest import NearestPoint, PointLookup, nearest_points
from bandits.sweeps.execution.executors import Executor, FailoverExecutor, InProcessExecutor, PoolExecutor
from bandits.sweeps.storage.block_files import BlockFiles, stored_sweep
from bandits.sweeps.storage.catalogue import Catalogue, CatalogueEntry

from .blocks import StoppedError
from .optuna_search import import_optuna
from .runner import Runner
from .sweep import Sweep

MAX_ACTIVE = 2  # sweeps that one owner may have going
MAX_TOGETHER = 8  # that all owners may
MAX_DECISIONS = 5_000_000_000  # of one sweep: an hour or two of a linear agent
TIME_LIMIT = 4 * 3600.0  # seconds of wall time that one sweep may take at a stretch
MAX_ENDED_JOBS = 16  # ended sweeps that stay in memory
SweepStatus = Literal["running", "finished", "stopped", "failed"]


class SweepJob:
    """One sweep on its way, or as far as it has come.

    Attributes
    ----------
    sweep : Sweep
    owner : str
        Who began it, and alone may stop it.
    status : {"running", "finished", "stopped", "failed"}
    error : str
        Why it failed, or what else there is to say, in one sentence.
    lock : threading.Lock
        Hold it to read the landscape.
    """

    def __init__(self, sweep: Sweep, executor: Callable[[], Executor], folder: Path, owner: str = "") -> None:
        self.sweep, self.owner = sweep, owner
        self._executor = executor
        self.status: SweepStatus = "stopped"
        self.error = ""
        self.lock = threading.Lock()
        self._stopping = threading.Event()
        self._runner = Runner(sweep, InProcessExecutor(), BlockFiles(sweep, folder), self._stop_requested, self.lock)
        self._began, self._begun_at = 0.0, 0.0

    @property
    def id(self) -> str:
        """The sweep's hash."""
        return self.sweep.hash

    @property
    def landscape(self) -> Landscape:
        """What is known so far; read it under ``lock``."""
        return self._runner.landscape

    def estimate_at(self, point: int) -> tuple[Estimate, int] | None:
        """The click rate of a point so far, and how many runs it rests on; None without any."""
        with self.lock:
            return self.landscape.estimate_at(point)

    @property
    def active(self) -> bool:
        """On its way."""
        return self.status == "running"

    @property
    def progress(self) -> float:
        """Share of the work, 0 to 1."""
        return 1.0 if self.status == "finished" else self._runner.progress

    @property
    def seconds_left(self) -> float | None:
        """Expected wall time to the end, or None while there is too little to tell."""
        here = self.progress - self._begun_at
        return (time.monotonic() - self._began) * (1 - self.progress) / here if self.active and here > 0.02 else None

    def load(self) -> None:
        """Take in what is on disk."""
        try:
            self.status = "finished" if self._runner.load() else "stopped"
        except UserError as sentence:  # Optuna made it, and is gone
            self.error = str(sentence)

    def start(self) -> None:
        """Compute what is missing, in a thread of its own."""
        self._stopping.clear()
        self.status, self.error = "running", ""
        self._began, self._begun_at = time.monotonic(), self._runner.progress
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Give up; what is finished stays, and it can be started again."""
        self._stopping.set()

    def _stop_requested(self) -> bool:
        if time.monotonic() - self._began > TIME_LIMIT:
            self.error = f"stopped after {TIME_LIMIT / 3600:.0f} hours, the limit for one sweep; Run goes on with it"
            return True
        return self._stopping.is_set()

    def _run(self) -> None:
        try:
            self._runner.executor = self._executor()  # a cluster takes its time to connect to
            self._runner.run()
            self.error = ". ".join(self._runner.notices)
            self.status = "finished"
        except StoppedError:
            self.status = "stopped"
        except Exception as error:  # noqa: BLE001 - told to whoever looks; a thread has nobody else to tell
            self.error = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            self.status = "failed"


class SweepManager:
    """All sweeps of a server, on a cluster or on the workers of its pool. Equal sweeps are one.

    Parameters
    ----------
    pool : Pool
    folder : Path
        Where they are kept.
    cluster : str
        Address of a Dask scheduler; empty for none. Where it cannot be used, the pool is, and a sentence says so.
    """

    def __init__(self, pool: Pool, folder: Path, cluster: str = "") -> None:
        self._pool, self._folder, self._cluster = pool, folder, cluster
        self._connected: FailoverExecutor | None = None
        self._connecting = threading.Lock()
        self._jobs: dict[str, SweepJob] = {}
        self._catalogue = Catalogue(folder)
        self._lock = threading.Lock()

    def submit(self, sweep: Sweep, owner: str = "") -> SweepJob:
        """Begin a sweep, or go on with one that was stopped; the same one if it is on its way or done.

        Raises
        ------
        UserError
            The owner has too many going, or the disk is too full to keep another.
        """
        with self._lock:
            found = self._get(sweep.hash) or SweepJob(sweep, self._executor, self._folder, owner)
            if found.active or found.status == "finished":
                return found
            if not sweep.is_grid:
                import_optuna()
            e = sweep.experiment
            if (decisions := sweep.size * e.replications * e.steps) > MAX_DECISIONS:
                raise UserError(
                    f"this sweep has {decisions:,} decisions (points x runs x steps); a server takes at most "
                    f"{MAX_DECISIONS:,}: use python -m bandits sweep"
                )
            if self._pool.store is not None:
                self._pool.store.require_space()
            if sum(s.active for s in self._jobs.values()) >= MAX_TOGETHER:
                raise UserError(f"{MAX_TOGETHER} sweeps are going on already; wait for one to end")
            if owner and sum(s.active and s.owner == owner for s in self._jobs.values()) >= MAX_ACTIVE:
                raise UserError(f"you have {MAX_ACTIVE} sweeps going; stop one or wait for it")
            found.owner, self._jobs[sweep.hash] = owner, found
            found.start()
            self._drop_ended_jobs()
            return found

    def _executor(self) -> Executor:
        here = PoolExecutor(self._pool)
        if not self._cluster:
            return here
        from bandits.sweeps.execution.dask_client import DaskExecutor

        with self._connecting:
            if self._connected is not None and not self._connected.note:
                return self._connected
            try:  # for the first time, or once more after it was lost
                self._connected = FailoverExecutor(DaskExecutor(self._cluster), lambda: here)
            except UserError as sentence:
                here.note = f"{sentence}; this machine goes on alone"
                return here
            return self._connected

    def get(self, sweep: str) -> SweepJob | None:
        """A sweep by its hash, from memory or from disk, if it is known."""
        with self._lock:
            return self._get(sweep)

    def _get(self, sweep: str) -> SweepJob | None:
        if sweep not in self._jobs and (found := stored_sweep(self._folder, sweep)) is not None:
            self._jobs[sweep] = SweepJob(found, self._executor, self._folder)
            self._jobs[sweep].load()
            self._drop_ended_jobs(but=sweep)
        return self._jobs.get(sweep)

    def _drop_ended_jobs(self, but: str = "") -> None:
        """Let go of the oldest sweeps that have ended; they are on disk."""
        ended = [s.id for s in self._jobs.values() if not s.active and s.id != but]
        for old in ended[: max(len(self._jobs) - MAX_ENDED_JOBS, 0)]:
            del self._jobs[old]

    def stop(self, found: SweepJob, owner: str = "") -> None:
        """Have a sweep stopped.

        Raises
        ------
        UserError
            It is somebody else's.
        """
        if found.owner and found.owner != owner:
            raise UserError("only who started this sweep may stop it")
        found.stop()

    def stored_sweeps(self) -> list[CatalogueEntry]:
        """Every sweep that is going on or kept, newest first."""
        going = self._active_jobs()
        now = [CatalogueEntry(s.sweep, s.progress, time.time(), BlockFiles(s.sweep, self._folder).bytes) for s in going]
        return [*now, *self._catalogue.entries([s.id for s in going])]

    def nearest_points(self, experiment: Experiment) -> list[NearestPoint]:
        """What sweeps already say of the agents of an experiment (`what_if.nearest`)."""
        going = self._active_jobs()
        swept: list[tuple[Sweep, PointLookup]] = [(s.sweep, s.estimate_at) for s in going]
        kept_ = self._catalogue.entries([s.id for s in going])
        swept += [(line.sweep, partial(self._catalogue.estimate_at, line.sweep.hash)) for line in kept_]
        return nearest_points(swept, experiment)

    def _active_jobs(self) -> list[SweepJob]:
        with self._lock:
            return [s for s in self._jobs.values() if s.active]

    def delete(self, sweep: str, owner: str = "") -> None:
        """Forget a sweep with all it has found.

        Raises
        ------
        UserError
            It is going on, or is somebody else's.
        """
        with self._lock:
            found = self._get(sweep)
            if found is None:
                return
            if found.active:
                raise UserError("this sweep is going on; stop it before you delete it")
            if found.status != "finished" and found.owner and found.owner != owner:
                raise UserError("only who started this sweep may delete it before its end")
            del self._jobs[sweep]
            BlockFiles(found.sweep, self._folder).delete()
