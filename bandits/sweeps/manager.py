"""Manage the sweeps of a server: start, watch, stop, find stored ones, delete."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from bandits.base.errors import UserError
from bandits.base.ledger import LEDGER
from bandits.experiments.experiment import Experiment
from bandits.results.metrics import Estimate
from bandits.runtime.pool import Pool
from bandits.storage.eviction import Evictable, enforce
from bandits.sweeps.analysis.landscape import Landscape
from bandits.sweeps.analysis.nearest import NearestPoint, PointLookup, nearest_points
from bandits.sweeps.execution.audit import Audit
from bandits.sweeps.execution.executors import (
    Executor,
    FailoverExecutor,
    InProcessExecutor,
    PoolExecutor,
)
from bandits.sweeps.storage.block_files import BlockFiles, evictable_sweep, stored_sweep
from bandits.sweeps.storage.catalogue import Catalogue, CatalogueEntry, best_point

from .blocks import StoppedError
from .optuna_search import import_optuna
from .runner import Runner
from .sweep import Sweep

_log = logging.getLogger(__name__)
# running sweeps of one owner
MAX_ACTIVE = 2
# running sweeps of all owners
MAX_ACTIVE_TOTAL = 8
# of one sweep: an hour or two of a linear agent
MAX_DECISIONS = 5_000_000_000
# seconds of wall time of a sweep from start to stop
TIME_LIMIT = 4 * 3600.0
# ended sweeps that stay in memory
MAX_ENDED_JOBS = 16
SweepStatus = Literal["running", "finished", "stopped", "failed"]


class SweepJob:
    """A sweep that is running, has ended, or was loaded from disk.

    Parameters
    ----------
    sweep : Sweep
    executor : callable
        Return the executor that computes it.
    folder : Path
        Where sweeps are stored.
    on_finished : callable
        Called with the job, in its thread, before it is shown as finished.
    on_end : callable
        Called with the job, in its thread, after it has ended.
    owner : str

    Attributes
    ----------
    sweep : Sweep
    owner : str
        The user who started it; only the owner may stop it.
    status : {"running", "finished", "stopped", "failed"}
    error : str
        Why it failed, or another message for the user, in one sentence.
    lock : threading.Lock
        Held while the landscape is read.
    seconds : float or None
        Wall time from the last start to the end; None before that, and for a sweep that was loaded.
    """

    def __init__(
        self,
        sweep: Sweep,
        executor: Callable[[], Executor],
        folder: Path,
        on_finished: Callable[[SweepJob], None],
        on_end: Callable[[SweepJob], None],
        owner: str = "",
    ) -> None:
        self.sweep, self.owner = sweep, owner
        self._executor, self._on_finished, self._on_end = executor, on_finished, on_end
        self.status: SweepStatus = "stopped"
        self.error = ""
        self.seconds: float | None = None
        self.lock = threading.Lock()
        self._stopping = threading.Event()
        self._runner = Runner(
            sweep, InProcessExecutor(), BlockFiles(sweep, folder), self._stop_requested, self.lock
        )
        self._started_at, self._computed_before = 0.0, self._runner.rows()[0]

    @property
    def id(self) -> str:
        """The sweep's hash."""
        return self.sweep.hash

    @property
    def landscape(self) -> Landscape:
        """The results so far; to be read under ``lock``."""
        return self._runner.landscape

    def estimate_at(self, point: int) -> tuple[Estimate, int] | None:
        """Click-through rate of a point so far and its number of replications; None without any."""
        with self.lock:
            return self.landscape.estimate_at(point)

    @property
    def active(self) -> bool:
        """Whether it is running."""
        return self.status == "running"

    @property
    def waiting(self) -> bool:
        """Whether it is running, and nothing of it has been computed yet since it was started."""
        return self.active and not (self._runner.rows()[0] > self._computed_before).any()

    @property
    def progress(self) -> float:
        """Finished share of the work, 0 to 1."""
        return 1.0 if self.status == "finished" else self._runner.progress

    @property
    def seconds_left(self) -> float | None:
        """Expected wall time to the end; None before two percent of the work are done.

        A row counts with the time that it takes in its simulator: with 500 products, longer than
        with 5."""
        if not self.active:
            return None
        with self.lock:
            costs, (computed, left) = self.landscape.row_costs(), self._runner.rows()
        if costs is None:
            return None
        done, rest = (
            float((computed - self._computed_before) @ costs),
            max(0.0, float(left @ costs)),
        )
        return (
            (time.monotonic() - self._started_at) * rest / done
            if done > 0.02 * (done + rest)
            else None
        )

    def load(self) -> None:
        """Load the stored blocks."""
        try:
            self.status = "finished" if self._runner.load() else "stopped"
        except UserError as error:
            # Optuna made its points and is not installed any more
            self.error = str(error)

    def start(self) -> None:
        """Compute the missing blocks in a new thread."""
        self._stopping.clear()
        self.status, self.error, self.seconds = "running", "", None
        self._started_at, self._computed_before = time.monotonic(), self._runner.rows()[0]
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Stop; finished blocks stay, and the sweep can be started again."""
        self._stopping.set()

    def _stop_requested(self) -> bool:
        if time.monotonic() - self._started_at > TIME_LIMIT:
            self.error = (
                f"stopped after {TIME_LIMIT / 3600:.0f} hours, the limit for one sweep; press Run "
                "to continue it"
            )
            return True
        return self._stopping.is_set()

    @property
    def is_stored(self) -> bool:
        """Whether no results are missing on disk that could not be written."""
        return not self._runner.error

    def _run(self) -> None:
        self.status = self._computed()
        self._on_end(self)

    def _computed(self) -> SweepStatus:
        """Compute what is missing; return how it ended."""
        try:
            # connecting to a cluster takes seconds
            self._runner.executor = self._executor()
            self._runner.run()
            self.error = ". ".join(self._runner.notices)
            self.seconds = time.monotonic() - self._started_at
            self._on_finished(self)
        except StoppedError:
            return "stopped"
        except Exception as error:  # noqa: BLE001
            self.error = (
                str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            )
            return "failed"
        return "finished"


class SweepManager:
    """All sweeps of a server, computed on a cluster or on the workers of its pool.

    Equal sweeps are one job.

    Parameters
    ----------
    pool : Pool
    folder : Path
        Where sweeps are stored.
    cluster : str
        Address of a Dask scheduler; empty for none. If it cannot be used, the pool computes and a
        message reports it.
    """

    def __init__(self, pool: Pool, folder: Path, cluster: str = "") -> None:
        self._pool, self._folder, self._cluster = pool, folder, cluster
        self._connected: FailoverExecutor | None = None
        self._connecting = threading.Lock()
        self._audit = Audit(lambda: PoolExecutor(pool))
        self._jobs: dict[str, SweepJob] = {}
        self._catalogue = Catalogue(folder)
        self._lock = threading.Lock()

    def submit(self, sweep: Sweep, owner: str = "") -> SweepJob:
        """Start a sweep, or continue a stopped one.

        An equal sweep that is running or finished is returned as it is.

        Raises
        ------
        UserError
            If too many sweeps are running, the sweep is too large for a server, or the disk is
            full.
        """
        with self._lock:
            job = self._get(sweep.hash) or SweepJob(
                sweep, self._executor, self._folder, self._finished, self._ended, owner
            )
            if job.active or job.status == "finished":
                return job
            if not sweep.is_grid:
                import_optuna()
            e = sweep.experiment
            if (decisions := sweep.size * e.replications * e.steps) > MAX_DECISIONS:
                raise UserError(
                    f"this sweep has {decisions:,} decisions (points x replications x steps); a "
                    f"server allows at most {MAX_DECISIONS:,}: use python -m bandits sweep"
                )
            if self._pool.store is not None:
                self._pool.store.require_space()
            if sum(s.active for s in self._jobs.values()) >= MAX_ACTIVE_TOTAL:
                raise UserError(
                    f"{MAX_ACTIVE_TOTAL} sweeps are running already; wait until one ends"
                )
            if (
                owner
                and sum(s.active and s.owner == owner for s in self._jobs.values()) >= MAX_ACTIVE
            ):
                raise UserError(
                    f"you have {MAX_ACTIVE} sweeps running; stop one or wait until one ends"
                )
            self._pool.owners.record(sweep.hash, owner)
            job.owner, self._jobs[sweep.hash] = self._pool.owners.of(sweep.hash), job
            job.start()
            self._drop_ended_jobs()
            return job

    def _executor(self) -> Executor:
        local = PoolExecutor(self._pool)
        if not self._cluster:
            return local
        from bandits.sweeps.execution.dask_client import DaskExecutor

        with self._connecting:
            if self._connected is not None and not self._connected.failure:
                return self._connected
            # the first connection, or a new one after the cluster was lost
            try:
                self._connected = FailoverExecutor(
                    DaskExecutor(self._cluster, self._audit), lambda: local
                )
            except UserError as error:
                local.note = f"{error}; continuing on this machine"
                return local
            return self._connected

    def get(self, sweep: str) -> SweepJob | None:
        """Return the sweep with this hash from memory or from disk; None if there is none."""
        with self._lock:
            return self._get(sweep)

    def _get(self, sweep: str) -> SweepJob | None:
        if sweep not in self._jobs and (found := stored_sweep(self._folder, sweep)) is not None:
            self._jobs[sweep] = SweepJob(
                found, self._executor, self._folder, self._finished, self._ended
            )
            self._jobs[sweep].load()
            self._drop_ended_jobs(but=sweep)
        return self._jobs.get(sweep)

    def _drop_ended_jobs(self, but: str = "") -> None:
        """Remove the oldest ended sweeps from memory, and enter the others; they are on disk."""
        ended = [s.id for s in self._jobs.values() if not s.active and s.id != but]
        for old in ended[: max(len(self._jobs) - MAX_ENDED_JOBS, 0)]:
            del self._jobs[old]
        LEDGER.keep("sweeps", sum(job.landscape.nbytes for job in self._jobs.values()))

    def stop(self, job: SweepJob, owner: str = "") -> None:
        """Stop a sweep.

        Raises
        ------
        UserError
            If it belongs to another user.
        """
        if job.owner and job.owner != owner:
            raise UserError("only the user who started this sweep can stop it")
        job.stop()

    def stored_sweeps(self) -> list[CatalogueEntry]:
        """List all running and stored sweeps, newest first."""
        jobs = self._active_jobs()
        running = []
        for job in jobs:
            with job.lock:
                best = best_point(job.landscape)
            size = BlockFiles(job.sweep, self._folder).bytes
            entry = CatalogueEntry(job.sweep, job.progress, time.time(), size, best)
            running.append(self._catalogue.annotated(entry))
        return [*running, *self._catalogue.entries([j.id for j in jobs])]

    def star(self, sweep: str, starred: bool) -> None:
        """Star a running or stored sweep, or remove its star."""
        self._annotate(sweep, starred=starred)

    def note(self, sweep: str, notes: str) -> None:
        """Replace the notes on a running or stored sweep."""
        self._annotate(sweep, notes=notes)

    def _annotate(self, sweep: str, **changes: bool | str) -> None:
        # a sweep that ends meanwhile is noticed after it
        with self._lock:
            job = self._jobs.get(sweep)
            self._catalogue.annotate(sweep, running=job is not None and job.active, **changes)

    def _finished(self, job: SweepJob) -> None:
        """Index a sweep from memory, which nothing writes to any more: no page has to read its
        blocks for it.
        """
        if not job.is_stored:
            return
        try:
            self._catalogue.index(job.sweep, job.landscape)
        except Exception:  # noqa: BLE001
            # the sweep is complete; its blocks are indexed when a page asks for them
            _log.exception("the sweep %s could not be indexed", job.id)

    def _ended(self, job: SweepJob) -> None:
        """Forget star and notes of a sweep that has ended and stored nothing: no list shows it.

        Keep to the budget.
        """
        with self._lock:
            if not job.active and not BlockFiles(job.sweep, self._folder).exists:
                self._catalogue.forget(job.id)
            # its page reads this one; another one may have waited for this end
            self._drop_ended_jobs(but=job.id)
        if self._pool.store is not None:
            # the budget may be no size, which the page Runs states
            with suppress(OSError, UserError):
                enforce(self._pool.store, self.evictable())

    def evictable(self) -> list[Evictable]:
        """List the curves of ended sweeps without a star: files that can be recomputed."""
        entries = self._catalogue.entries([job.id for job in self._active_jobs()])
        return [
            evictable_sweep(BlockFiles(entry.sweep, self._folder))
            for entry in entries
            if not entry.starred
        ]

    def nearest_points(self, experiment: Experiment) -> list[NearestPoint]:
        """Find results for the agents of an experiment in all sweeps
        (`analysis.nearest.nearest_points`).
        """
        jobs = self._active_jobs()
        swept: list[tuple[Sweep, PointLookup]] = [(j.sweep, j.estimate_at) for j in jobs]
        stored = self._catalogue.entries([j.id for j in jobs])
        swept += [
            (entry.sweep, partial(self._catalogue.estimate_at, entry.sweep.hash))
            for entry in stored
        ]
        return nearest_points(swept, experiment)

    def _active_jobs(self) -> list[SweepJob]:
        with self._lock:
            return [s for s in self._jobs.values() if s.active]

    def delete(self, sweep: str, owner: str | None = None) -> None:
        """Delete a sweep and all of its results.

        Parameters
        ----------
        sweep : str
            Its hash.
        owner : str, optional
            Who deletes it: its owner, or by default a person at the server itself.

        Raises
        ------
        UserError
            If it is running, or belongs to another owner.
        """
        self._pool.owners.require(sweep, owner)
        with self._lock:
            job = self._get(sweep)
            if job is None:
                return
            if job.active:
                raise UserError("this sweep is running; stop it before you delete it")
            del self._jobs[sweep]
            self._drop_ended_jobs()
            BlockFiles(job.sweep, self._folder).delete()
            self._catalogue.forget(sweep)
            self._pool.owners.drop(sweep)
