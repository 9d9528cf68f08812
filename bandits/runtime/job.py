"""A submitted experiment: its status, its progress and the histories of its agents."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import LARGE, pack, pack_file
from bandits.base.mapped_arrays import memory
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.history import History
from bandits.experiments.lockstep import load_histories
from bandits.results.result import Result
from bandits.storage.eviction import enforce
from bandits.storage.run_store import RUN_ID, CorruptFileError, Store

from .time_left import RunClock

# seconds between writes of a run's checkpoint
WRITE_INTERVAL = 1.5
# times the duration of a write, before the next
WRITE_PAUSE = 5.0
# seconds between attempts to store a finished run, and their number
RETRY_INTERVAL, RETRIES = 30.0, 120
# bytes of a finished run's checkpoint; without it, an extension starts anew
MAX_KEPT_STATE = 8 * 2**20
JobStatus = Literal["offered", "queued", "running", "paused", "finished", "stopped", "failed"]


@dataclass(eq=False)
class Job:
    """A submitted experiment.

    Attributes
    ----------
    experiment : Experiment
    owner : str
        Who submitted it, and alone may pause, resume and stop it; "" for anyone.
    address : str
        The network address that it was submitted from; "" if that is not known.
    status : {"offered", "queued", "running", "paused", "finished", "stopped", "failed"}
        "offered": it was not submitted yet.
    histories : dict of str to History
        Results of each agent so far. Read them under ``lock``; the pool's lock is never waited for
        while it is held.
    waiting : set of str
        Agents that are still being trained.
    to_compile, compiled : set of str
        Kernels that were missing when the run began, and those that are there since.
    step : int
        Step that the run has reached: that of its slowest share.
    error : str
        Why it failed, or another remark, in one sentence.
    saved : dict of arrays
        State from which the run can continue; once it has finished, only while it is not in the
        store.
    interrupted : bool
        Whether an earlier process ended during the run, so that only its checkpoint is known.
    """

    experiment: Experiment
    owner: str = ""
    status: JobStatus = "queued"
    step: int = 0
    error: str = ""
    waiting: set[str] = field(default_factory=set)
    to_compile: set[str] = field(default_factory=set)
    compiled: set[str] = field(default_factory=set)
    histories: dict[str, History] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    saved: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    worker_deaths: int = 0
    # deaths of a worker that computed the agent
    failed_agents: Counter[int] = field(default_factory=Counter)
    address: str = ""
    # when a page last asked for it
    seen: float = field(default_factory=time.monotonic)
    # when it was queued
    queued: float = 0.0
    started: float | None = None
    ended: float | None = None
    # wall time of earlier stretches, without pauses
    seconds_before: float = 0.0
    # start of the current stretch
    running_since: float | None = None
    # expected seconds to the end of each agent
    agents_left: dict[int, float] = field(default_factory=dict)
    # of its checkpoint to the disk
    writing: threading.Lock = field(default_factory=threading.Lock)
    next_write: float = 0.0
    # finished, and still to be stored
    unstored: bool = False
    # what is saved, from which a finished run is extended and a paused one goes on
    state_stored: bool = False

    @classmethod
    def from_checkpoint(cls, experiment: Experiment, saved: dict[str, Any], error: str) -> Job:
        """Return a job for an interrupted run, with the histories of its checkpoint."""
        step, histories = int(saved["step"]), load_histories(experiment, saved)
        job = cls(
            experiment,
            "",
            "stopped",
            step,
            error,
            histories=histories,
            saved=saved,
            interrupted=True,
        )
        job.seconds_before = sum(h.seconds for h in histories.values())
        return job

    @cached_property
    def id(self) -> str:
        """The experiment's hash."""
        return self.experiment.hash

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Unique names of the agents."""
        return self.experiment.labels

    @property
    def active(self) -> bool:
        """Whether it is queued or running."""
        return self.status in ("queued", "running")

    @property
    def live(self) -> bool:
        """Whether it is queued, running or paused."""
        return self.active or self.status == "paused"

    @property
    def result(self) -> Result:
        """The histories as a result, up to the step that the run has reached."""
        return Result(
            self.experiment, {label: h for label, h in self.histories.items() if h.size > 1}
        )

    @property
    def arms(self) -> int:
        """Number of arms; 0 before anything has been computed."""
        return next((h.n_items for h in self.histories.values()), 0)

    @property
    def progress(self) -> float:
        """Share of all agents' steps that have been computed, 0 to 1."""
        total = self.experiment.steps * max(len(self.histories), 1)
        return sum(h.step for h in self.histories.values()) / total if self.histories else 0.0

    @property
    def seconds(self) -> float:
        """Wall time in seconds, without pauses."""
        return self.seconds_before + (
            0.0 if self.running_since is None else time.monotonic() - self.running_since
        )

    @property
    def nbytes(self) -> int:
        """Memory of its histories and of its saved state in bytes, but for what stays in a file."""
        saved = sum(map(memory, self.saved.values()))
        return saved + sum(history.nbytes for history in self.histories.values())

    def record_time(self) -> None:
        """Record what each agent has reached, from which `seconds_left` and `agents_left` are
        predicted.

        An agent that has not begun is expected to be as fast as the others on average.
        """
        steps = self.experiment.steps
        reached = {label: (h.step, h.seconds) for label, h in self.histories.items()}
        self.clock.record(reached, self.seconds)
        costs = {label: seconds / step for label, (step, seconds) in reached.items() if step}
        mean = sum(costs.values()) / max(len(costs), 1)
        for i, (label, (step, _)) in enumerate(reached.items()):
            left = self.clock.agents[label].seconds_left(steps)
            self.agents_left[i] = costs.get(label, mean) * (steps - step) if left is None else left

    @property
    def seconds_left(self) -> float | None:
        """Expected wall time to the end in seconds.

        None while it is not known well, and when it is not running.

        `RunClock.record` states when it is known. The cost of a step may grow: see `time_left`.
        """
        return None if self.status != "running" or self.waiting else self.clock.seconds_left

    @cached_property
    def clock(self) -> RunClock:
        """Steps and times of its agents."""
        return RunClock(self.experiment.steps)

    # -- agents, by their position in the experiment
    # -------------------------------------------------------------

    @cached_property
    def max_workers(self) -> int:
        """Number of workers that may compute it at the same time."""
        return self.experiment.max_processes()

    def unfinished_agents(self) -> set[int]:
        """Return the agents whose saved state has not reached the last step."""
        n, steps = len(self.experiment.agents), self.experiment.steps
        return {i for i in range(n) if int(self.saved.get(f"{i}.lane.step", 0)) < steps}

    def is_waiting(self, agent: int) -> bool:
        """Return whether an agent is still being trained."""
        return self.labels[agent] in self.waiting

    def state_bytes(self, agent: int) -> int:
        """Return the size of an agent's last checkpoint in bytes."""
        return sum(
            np.asarray(v).nbytes for k, v in self.agent_state([agent]).items() if k != "step"
        )

    def agent_state(self, agents: Collection[int]) -> dict[str, Any]:
        """Return the part of the saved state that belongs to some agents."""
        return {
            k: v for k, v in self.saved.items() if k.partition(".")[0] in {str(i) for i in agents}
        }

    def merge(self, label: str, added: dict[str, Any], *, waiting: bool) -> None:
        """Add new points of an agent's history."""
        with self.lock:
            self.histories[label].merge(added)
            (self.waiting.add if waiting else self.waiting.discard)(label)

    def save(self, state: dict[str, Any]) -> None:
        """Replace the saved state of some agents."""
        merged = {**self.saved, **state}
        steps = [
            int(v) for k, v in merged.items() if k.endswith(".lane.step") and k.count(".") == 2
        ]
        self.saved = {
            **merged,
            "step": np.array(min((s for s in steps if s), default=int(state["step"]))),
        }

    def end(self, status: JobStatus, error: str = "") -> None:
        """Set the status and stop the clock."""
        self.seconds_before, self.running_since, self.ended = self.seconds, None, time.monotonic()
        self.status, self.error = status, error
        self.release_state()

    def release_state(self) -> None:
        """Forget the saved state of a finished run that the store has."""
        if self.status == "finished" and self.state_stored:
            self.saved = {}


def save(store: Store | None, job: Job, *, finished: bool = False, last: bool = False) -> None:
    """Write a finished run, or a checkpoint, to the store.

    A full disk is reported in ``job.error`` and ends nothing.

    All shares of a run send checkpoints. One that is not the last of a share that leaves is left
    out soon after another and while another is being written, because the messages of a worker are
    not read meanwhile."""
    needed = finished or last
    job.state_stored = False
    if store is None or not job.writing.acquire(blocking=needed):
        return
    try:
        began = time.monotonic()
        if not needed and began < job.next_write:
            return
        if finished:
            keep_result(store, job)
        else:
            saved = job.saved
            with packed_state(store, job) as state:
                store.keep_checkpoint(job.id, job.experiment, state)
            # not if another share has sent its own meanwhile
            job.state_stored = job.saved is saved
        spent = time.monotonic() - began
        job.next_write = began + spent + max(WRITE_INTERVAL, WRITE_PAUSE * spent)
    except OSError as error:
        job.error = (
            f"this run could not be kept on disk ({error.strerror or error}); it stays until the "
            "app ends"
        )
        job.next_write = time.monotonic() + WRITE_INTERVAL
        if finished:
            job.unstored = True
            _try_again(store, job, RETRIES)
    finally:
        job.writing.release()


@contextmanager
def packed_state(store: Store, job: Job) -> Iterator[bytes | Path]:
    """Return the saved state of a run as `pack` makes it, or a file with it if that is large."""
    if sum(np.asarray(value).nbytes for value in job.saved.values()) <= LARGE:
        yield pack(job.saved)
        return
    path = pack_file(job.saved, store.staging)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def keep_result(store: Store, job: Job) -> None:
    """Store a finished run, then the state from which it can be extended, if that is small and fits
    on the disk.

    What exceeds the disk budget is deleted: see `bandits.storage.eviction.enforce`.

    Raises
    ------
    OSError
        The disk is full or cannot be written; no partial file stays.
    """
    store.put(job.experiment, job.histories, job.seconds)
    # the budget may be no size, which the page Runs states
    with suppress(OSError, UserError):
        with packed_state(store, job) as state:
            length = len(state) if isinstance(state, bytes) else state.stat().st_size
            if length <= MAX_KEPT_STATE:
                store.keep_checkpoint(job.id, job.experiment, state)
                job.state_stored = True
            else:
                store.drop_checkpoint(job.id)
        enforce(store)


def _try_again(store: Store, job: Job, attempts: int) -> None:
    """Store a finished run later: the index was locked, or the disk was full or missing."""

    def attempt() -> None:
        with job.writing:
            # deleted meanwhile
            if not job.unstored:
                return
            try:
                keep_result(store, job)
                job.unstored, job.error = False, ""
                job.release_state()
            except OSError:
                _try_again(store, job, attempts - 1)

    if attempts:
        timer = threading.Timer(RETRY_INTERVAL, attempt)
        timer.daemon = True
        timer.start()


def stored_job(store: Store, run: str) -> Job | None:
    """Return the job of a stored run, or of one that has only a checkpoint.

    None if there is neither.
    """
    if not RUN_ID.fullmatch(run):
        return None
    reason = "interrupted when the app ended"
    try:
        result = store.get(run)
    except (CorruptFileError, OSError, UserError) as error:
        # quarantined, or its disk or its data set is missing
        result, reason = None, str(error)
    if result is None:
        return _from_checkpoint(store, run, reason)
    job = Job(
        result.experiment,
        status="finished",
        step=result.experiment.steps,
        histories=result.histories,
    )
    job.seconds_before = store.seconds(run)
    # of a plug-in that was edited meanwhile, the new hash differs
    job.id = run
    return job


def saved_state(store: Store | None, run: str) -> dict[str, Any]:
    """Return the state in a run's checkpoint; empty if there is none."""
    return {} if store is None else store.checkpoint_arrays(run)


def _from_checkpoint(store: Store, run: str, reason: str) -> Job | None:
    """Return the job of a run that has only a checkpoint.

    None if there is none that this version can read.
    """
    text = store.checkpoint_experiment(run) if store.claim() else None
    if text is None or not (saved := saved_state(store, run)):
        return None
    try:
        job = Job.from_checkpoint(read(text), saved, reason)
    except (KeyError, IndexError, TypeError, ValueError, MemoryError):
        # of another version, or forged
        return None
    # of a plug-in that was edited meanwhile
    return job if job.id == run else None
