"""Run experiments in worker processes: submit them, follow them while they run, pause, resume and
stop them.

Each run has a worker process, and idle workers compute some of its agents; further runs wait in a
queue. Equal experiments share one job. Every few seconds a worker sends a checkpoint: a paused run,
a run whose worker died and a finished run that is extended all continue from there, to the bit."""

from __future__ import annotations

import atexit
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from bandits.base.errors import UserError
from bandits.base.files import Arrays
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.history import History
from bandits.experiments.lockstep import state_for
from bandits.storage.owners import Owners, require_owner
from bandits.storage.run_store import CorruptFileError, Store
from bandits.storage.stored_run import StoredValue, stored_values

from . import supervisor
from .job import Job, saved_state, stored_job
from .least_time import require_end
from .scheduler import MAX_QUEUED, UNSEEN
from .supervisor import Supervisor
from .task_queue import Task
from .worker_handle import WorkerProcess

__all__ = ["Job", "Pool"]
# ended jobs that stay in memory; the others are read from the store
MAX_ENDED_JOBS, MAX_ENDED_BYTES = 24, 192 * 2**20
# runs that one owner may have queued, running or paused
MAX_ACTIVE = 4


class Pool:
    """Jobs, and the worker processes that compute them.

    Parameters
    ----------
    workers : int
        Number of worker processes.
    store : Store, optional
        Keeps finished runs and checkpoints beyond the life of this process.
    limited : bool
        Whether runs have a time limit.
    """

    def __init__(
        self, workers: int = 1, store: Store | None = None, *, limited: bool = True
    ) -> None:
        self.workers, self.store = workers, store
        self.owners = Owners(None if store is None else store.folder / "owners")
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        # those that have left memory: their checkpoints are stored
        self._paused: set[str] = set()
        self._supervisor = Supervisor(workers, store, limited=limited, tidy=self._drop_ended_jobs)
        # guards the jobs too
        self._change = self._supervisor.change
        atexit.register(self.close)

    def submit(
        self,
        experiment: Experiment,
        owner: str = "",
        *,
        saved: dict[str, Any] | None = None,
        address: str = "",
    ) -> Job:
        """Start an experiment, or return the job of an equal one that is finished, queued or
        running.

        A run that was paused, interrupted, stopped or failed continues from its last checkpoint, to
        the same bits. A paused one goes on for each user who asks for it, and stays its owner's.

        Parameters
        ----------
        experiment : Experiment
        owner : str
            Who submits it, and alone may pause, resume and stop it; "" for anyone.
        saved : dict of arrays, optional
            State to start from.
        address : str
            The network address of the owner: addresses take turns.

        Raises
        ------
        UserError
            The owner has too many active runs, the disk is too full, or the run cannot end within
            its time limit.
        """
        stored = self.get(experiment.hash)
        if self._supervisor.limited and stored is None and not saved:
            require_end(experiment, self.workers, supervisor.TIME_LIMIT)
        with self._change:
            # another thread may have submitted it meanwhile
            known = self._jobs.get(experiment.hash, stored)
            if known is not None and (known.active or known.status == "finished"):
                return known
            if known is None or not (known.interrupted or known.status == "paused"):
                self._check_limits(owner)
                job = Job(
                    experiment,
                    owner,
                    saved=(known.saved if known else {}) or saved or {},
                    address=address,
                )
                self._jobs[job.id] = job
                self._drop_ended_jobs()
                self._supervisor.enqueue(job)
                self.owners.record(job.id, owner)
                return job
        self._go_on(known, owner)
        return known

    def get(self, job_id: str) -> Job | None:
        """Return the job of an experiment's hash, from memory or from the store, or None.

        A run that an earlier process did not finish is returned as stopped, with the histories of
        its checkpoint."""
        with self._change:
            if (job := self._jobs.get(job_id)) is not None:
                self._jobs.move_to_end(job_id)
                job.seen = time.monotonic()
                return job
        if self.store is None or (job := stored_job(self.store, job_id)) is None:
            return None
        with self._change:
            if job_id in self._paused and job.interrupted:
                job.status, job.interrupted, job.error = "paused", False, ""
                job.owner, job.state_stored = self.owners.of(job_id), True
            job = self._jobs.setdefault(job_id, job)
            self._drop_ended_jobs()
            return job

    def stored_values(
        self, experiment: Experiment, label: str, names: Iterable[str]
    ) -> dict[str, list[StoredValue]]:
        """List, for parameters of an agent, the other values that they have in finished runs.

        See `stored_values`.
        """
        with self._change:
            in_memory = [
                (job.id, job.experiment) for job in self._jobs.values() if job.status == "finished"
            ]
        # else a plug-in was edited
        kept = [(run, one) for run, one in reversed(in_memory) if one.hash == run]
        kept += self.store.comparable(experiment) if self.store else []
        return {name: stored_values(experiment, label, name, kept) for name in names}

    def kept_history(self, kept: StoredValue) -> History:
        """Return the history of the agent in a finished run.

        Raises
        ------
        UserError
            The run is no longer stored.
        """
        with self._change:
            job = self._jobs.get(kept.run)
        if job is not None and job.status == "finished":
            return job.histories[kept.label]
        with suppress(CorruptFileError):
            if self.store is not None and (result := self.store.get(kept.run)) is not None:
                return result.histories[kept.label]
        raise UserError("this run is no longer stored")

    def queue_position(self, job: Job) -> int:
        """Return the number of queued runs before this one."""
        job.seen = time.monotonic()
        with self._change:
            return self._supervisor.scheduler.position(job)

    @property
    def processes(self) -> Mapping[Job | Task, WorkerProcess]:
        """The worker process of each run and task that is being computed.

        Of a run with several, the first.
        """
        return self._supervisor.division.first_processes

    @property
    def busy(self) -> bool:
        """Whether every worker computes a run."""
        return self._supervisor.division.n_runs >= self.workers

    @property
    def ready(self) -> bool:
        """Whether every worker has started and waits for work."""
        with self._change:
            return self._supervisor.division.idle == self.workers

    @property
    def starting(self) -> int:
        """Number of workers that load libraries and cannot compute yet."""
        with self._change:
            division = self._supervisor.division
            return self.workers - division.idle - len(division.processes)

    @property
    def broken(self) -> bool:
        """Whether workers have repeatedly failed to start."""
        return self._supervisor.failing

    def live_jobs(self) -> list[Job]:
        """List the jobs that are queued, running or paused, oldest first."""
        with self._change:
            return [job for job in self._jobs.values() if job.live]

    # -- pause, stop, resume
    # -------------------------------------------------------------------------------------

    def pause(self, job: Job, owner: str = "") -> None:
        """Pause a run; its worker serves others meanwhile.

        Raises
        ------
        UserError
            The run belongs to another owner; so too in `resume`, `stop` and `extend`.
        """
        require_owner(job.owner, owner)
        self._supervisor.end(job, "paused")

    def stop(self, job: Job, owner: str = "") -> None:
        """Stop a run; what it has computed stays."""
        require_owner(job.owner, owner)
        self._supervisor.end(job, "stopped")

    def resume(self, job: Job, owner: str = "") -> None:
        """Continue a paused, stopped or failed run from its checkpoint.

        A run without an owner becomes this owner's. One that a restart has interrupted stays that
        of who started it.

        Raises
        ------
        UserError
            The run belongs to another owner, the owner has too many active runs, or the disk is too
            full.
        """
        require_owner(job.owner, owner)
        self._go_on(job, owner)

    def _go_on(self, job: Job, owner: str) -> None:
        with self._change:
            if self._supervisor.wait_until_free(job) and job.status in (
                "paused",
                "stopped",
                "failed",
            ):
                if self._jobs.setdefault(job.id, job) is not job:
                    # it was dropped from memory meanwhile, and submitted again
                    return
                self._check_limits(owner, job)
                if job.interrupted:
                    # the browser that started it before a restart still owns it
                    self.owners.record(job.id, owner)
                    job.owner = self.owners.of(job.id)
                self._paused.discard(job.id)
                job.worker_deaths = 0
                job.failed_agents.clear()
                self._supervisor.enqueue(job)

    def extend(self, job: Job, steps: int, owner: str = "") -> Job:
        """Continue a finished run up to more steps: the job of the longer experiment, begun where
        this one ended.
        """
        longer = read({**job.experiment.model_dump(mode="json"), "steps": steps})
        return self.submit(longer, owner, saved=job.saved or saved_state(self.store, job.id))

    def submit_changed(
        self, experiment: Experiment, owner: str = "", *, before: Job | None, address: str = ""
    ) -> Job:
        """Submit an experiment.

        The agents that are the same in an ended run are not computed again.

        Raises
        ------
        UserError
            As `submit`.
        """
        saved: dict[str, Any] = {}
        # with another hash, plug-ins were edited since
        if before is not None and not before.live and before.id == before.experiment.hash:
            saved = before.saved or saved_state(self.store, before.id)
            saved = state_for(experiment, before.experiment, saved)
        if self._supervisor.limited and saved and self.get(experiment.hash) is None:
            # as if nothing were taken over
            require_end(experiment, self.workers, supervisor.TIME_LIMIT)
        return self.submit(experiment, owner, saved=saved, address=address)

    # -- unfinished and stored runs
    # ------------------------------------------------------------------------------

    def unfinished(self) -> list[Experiment]:
        """List experiments whose runs ended early and can continue from a checkpoint, newest first.

        The list is empty while another process runs experiments on the same folder: the checkpoints
        may be of runs that it is computing."""
        if self.store is None or not self.store.claim():
            return []
        experiments = []
        for run, text in self.store.checkpoints():
            # written by a version whose parameters this one does not know
            with suppress(UserError):
                job, experiment = self._jobs.get(run), read(text)
                if experiment.hash == run and (job is None or job.status in ("stopped", "failed")):
                    experiments.append(experiment)
        return experiments

    def resume_unfinished(self, experiment: Experiment, owner: str = "") -> Job:
        """Continue an unfinished run from its stored checkpoint."""
        job = self.get(experiment.hash)
        if job is None:
            return self.submit(experiment, owner)
        self.resume(job, owner)
        return job

    def discard(self, run: str, owner: str | None = None) -> None:
        """Delete an unfinished run with everything it has computed; it is stopped first.

        Raises
        ------
        UserError
            The run belongs to another owner, or to none; see `delete`.
        """
        with self._change:
            job = self._jobs.get(run)
        if job is not None and job.live and owner is not None:
            require_owner(job.owner, owner)
        self.owners.require(run, owner)
        if job is not None:
            self._supervisor.end(job, "stopped")
        # its worker still sends a last checkpoint
        self._supervisor.wait_until_free(job)
        self.delete(run, owner)

    def delete(self, run: str, owner: str | None = None) -> None:
        """Delete a run from memory and from the store.

        Parameters
        ----------
        run : str
            Its hash.
        owner : str, optional
            Who deletes it: its owner, or by default a person at the server itself.

        Raises
        ------
        UserError
            The run is queued, running or paused, or belongs to another owner.
        """
        self.owners.require(run, owner)
        with self._change:
            job = self._jobs.get(run)
            if job is not None and job.live:
                raise UserError("this run is active; stop it before you delete it")
            self._jobs.pop(run, None)
            self._paused.discard(run)
        if job is not None:
            job.unstored = False
        if self.store is not None:
            self.store.delete(run)
        self.owners.drop(run)

    # -- tasks
    # ---------------------------------------------------------------------------------------------------  # noqa: E501

    def compute(
        self,
        group: str,
        message: dict[str, Any],
        on_progress: Callable[[int], None],
        *,
        memory: int = 0,
    ) -> Future[Arrays]:
        """Have a worker compute a task, between the runs.

        Parameters
        ----------
        group : str
            What the task is a part of: groups take turns.
        message : dict
            The request that is sent to the worker.
        on_progress : callable
            Called with the step that the task has reached, a few times a second.
        memory : int
            Bytes that the task takes, as estimated: it waits until they fit.

        Returns
        -------
        Future
            Of the worker's arrays. Cancelling it ends the work within a second. It raises UserError
            if the task failed, or if several workers died while they computed it.
        """
        task = Task(group, message, on_progress, memory)
        self._supervisor.enqueue_task(task)
        return task.future

    def close(self) -> None:
        """End all workers."""
        self._supervisor.close()
        if self.store is not None:
            self.store.release()

    def _check_limits(self, owner: str, job: Job | None = None) -> None:
        """Check that the owner may have one more active run (``job`` itself is not counted) and
        that it can be stored.

        Raises
        ------
        UserError
        """
        if self.store is not None:
            self.store.require_space()
        if (
            owner
            and sum(j.live and j.owner == owner and j is not job for j in self._jobs.values())
            >= MAX_ACTIVE
        ):
            raise UserError(f"you have {MAX_ACTIVE} active runs; stop one or wait for it")
        if not self._supervisor.make_room():
            raise UserError(f"{MAX_QUEUED} runs are waiting already; try again in a few minutes")

    def _drop_ended_jobs(self) -> None:
        """Forget the ended and paused jobs that were asked for longest ago, but for the newest and
        for those not stored yet; a paused one also when no page shows it.
        """
        size, now = 0, time.monotonic()
        for place, job in enumerate([j for j in reversed(self._jobs.values()) if self._at_rest(j)]):
            size += job.nbytes
            unseen = job.status == "paused" and now - job.seen > UNSEEN
            if unseen or (place and (place >= MAX_ENDED_JOBS or size > MAX_ENDED_BYTES)):
                del self._jobs[job.id]
                if job.status == "paused":
                    self._paused.add(job.id)

    def _at_rest(self, job: Job) -> bool:
        """Return whether a job can be read again from the store."""
        if job.status == "paused":
            return job.state_stored and not self._supervisor.division.shares(job)
        return not job.live and not job.unstored
