"""Compare agents at their best on a server: their sweeps one after the other, then the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from bandits.base.errors import UserError
from bandits.experiments.experiment import Experiment
from bandits.runtime.job import Job
from bandits.storage.run_store import Store

from .analysis.landscape import Landscape
from .at_best import AtBest, at_best, tunings
from .blocks import StoppedError
from .manager import SweepJob, SweepManager
from .sweep import Sweep

# seconds between looks at a sweep
POLL = 0.2


class AtBestJob:
    """The sweeps of a comparison, and the run that follows them.

    Parameters
    ----------
    experiment : Experiment
    manager : SweepManager
    submit : callable
        Starts a run.
    owner : str
    store : Store, optional
        Where the run is titled, with its values in its notes.

    Attributes
    ----------
    status : {"running", "finished", "stopped", "failed"}
        Finished: the run has been submitted.
    error : str
        Why it failed, in one sentence.
    found : AtBest or None
        None before all sweeps have ended.
    run : str
        Hash of the run, empty before that.

    Raises
    ------
    UserError
        The agents cannot be compared at their best.
    """

    def __init__(
        self,
        experiment: Experiment,
        manager: SweepManager,
        submit: Callable[[Experiment], Job],
        owner: str = "",
        store: Store | None = None,
    ) -> None:
        self.experiment, self._manager, self._submit = experiment, manager, submit
        self._owner, self._store = owner, store
        self.status: Literal["running", "finished", "stopped", "failed"] = "running"
        self.error, self.run = "", ""
        self.found: AtBest | None = None
        self.sweeps = sum(sweep is not None for _, sweep in tunings(experiment))
        self._done = 0
        self._sweep: SweepJob | None = None
        self._stopping = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    @property
    def active(self) -> bool:
        """Whether its sweeps are running."""
        return self.status == "running"

    @property
    def progress(self) -> float:
        """Finished share of the sweeps, 0 to 1."""
        sweep = self._sweep
        return (self._done + (sweep.progress if sweep and sweep.active else 0.0)) / self.sweeps

    def stop(self) -> None:
        """Stop; the finished blocks of its sweeps stay."""
        self._stopping.set()

    def _work(self) -> None:
        try:
            self.found = at_best(self.experiment, self._choose)
            job = self._submit(self.found.experiment)
            self.run, self.status = job.id, "finished"
        except StoppedError:
            self.status = "stopped"
            return
        except Exception as error:  # noqa: BLE001
            self.error = (
                str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            )
            self.status = "failed"
            return
        if self._store is not None:
            self._write(job, self.found, self._store)

    def _write(self, job: Job, found: AtBest, store: Store) -> None:
        """Title the run once it is stored, unless the user has written something about it."""
        while (written := store.notes(job.id)) is None and (job.active or job.unstored):
            time.sleep(POLL)
        if not written:
            # a disk that cannot be written is reported where runs are stored
            with suppress(OSError, UserError):
                store.rename(job.id, found.title)
                store.note(job.id, found.sentence)

    def _choose(self, sweep: Sweep) -> Landscape:
        self._sweep = job = self._manager.submit(sweep, self._owner)
        while job.active:
            if self._stopping.wait(POLL):
                self._manager.stop(job, self._owner)
                raise StoppedError
        if self._stopping.is_set() or job.status == "stopped":
            raise StoppedError
        if job.status == "failed":
            raise UserError(job.error)
        self._done += 1
        return job.landscape
