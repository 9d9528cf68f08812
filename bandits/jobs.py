"""Runs in worker processes: submit an experiment, look at it while it grows, pause it, continue it, stop it.

Knows nothing of any user interface. Each run has a warm worker of its own for as long as it lasts; more runs
than workers wait their turn. Equal experiments are one job. Every few seconds a worker hands over the state of its
race: a paused run, a run whose worker died and a finished run that is to be longer all go on from there, to the bit.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, Literal, cast

from .experiment import Experiment, Refused, read
from .race import worker_environment
from .result import Result
from .store import Corrupt, Store, pack, unpack
from .trace import History
from .worker import receive, send

Status = Literal["queued", "running", "paused", "finished", "stopped", "failed"]
KEPT = 24  # ended jobs that stay in memory
ATTEMPTS = 3  # workers that may die under one run
MAX_ACTIVE = 4  # runs that one owner may have queued or running
TIME_LIMIT = 1800.0  # seconds of wall time that one run may take
GRACE = 3.0  # seconds a worker has to stop by itself


@dataclass(eq=False)
class Job:
    """A submitted experiment.

    Attributes
    ----------
    experiment : Experiment
    owner : str
        Who submitted it first, and alone may pause, continue and stop it.
    status : {"queued", "running", "paused", "finished", "stopped", "failed"}
    histories : dict of str to History
        What each agent has left behind so far. Read them under ``lock``.
    waiting : set of str
        Agents that are still being trained.
    step : int
        Step the race has reached.
    error : str
        Why it failed, or what else there is to say, in one sentence.
    saved : dict of arrays
        State of the race from which it can go on.
    """

    experiment: Experiment
    owner: str = ""
    status: Status = "queued"
    step: int = 0
    error: str = ""
    waiting: set[str] = field(default_factory=set)
    histories: dict[str, History] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    saved: dict[str, Any] = field(default_factory=dict)
    deaths: int = 0
    started: float | None = None
    ended: float | None = None
    spent: float = 0.0  # seconds of earlier stints
    since: float | None = None  # start of the present one

    @property
    def id(self) -> str:
        """The experiment's hash."""
        return self.experiment.hash

    @property
    def active(self) -> bool:
        """Queued or running."""
        return self.status in ("queued", "running")

    @property
    def result(self) -> Result:
        """The histories as a result; of a running job, as far as it has come."""
        return Result(self.experiment, {label: h for label, h in self.histories.items() if h.size > 1})

    @property
    def arms(self) -> int:
        """How many there are to choose from; 0 before anything has been computed."""
        return next((h.n_items for h in self.histories.values()), 0)

    @property
    def progress(self) -> float:
        """Share of all agents' steps that are done, 0 to 1."""
        total = self.experiment.steps * max(len(self.histories), 1)
        return sum(h.step for h in self.histories.values()) / total if self.histories else 0.0

    @property
    def seconds(self) -> float:
        """Wall time it has been running, pauses not counted."""
        return self.spent + (0.0 if self.since is None else time.monotonic() - self.since)

    @property
    def seconds_left(self) -> float | None:
        """Expected wall time to the end, or None while there is too little to tell."""
        done = self.progress
        return self.seconds * (1 - done) / done if self.status == "running" and done > 0.02 else None

    def end(self, status: Status, error: str = "") -> None:
        """Stop the clock."""
        self.spent, self.since, self.ended = self.seconds, None, time.monotonic()
        self.status, self.error = status, error


class Pool:
    """A few warm worker processes and a queue.

    Parameters
    ----------
    workers : int
        Runs at the same time.
    store : Store, optional
        Keeps finished runs and checkpoints beyond the life of this process.
    """

    def __init__(self, workers: int = 1, store: Store | None = None) -> None:
        self.workers, self.store = workers, store
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: deque[Job] = deque()
        self._change = threading.Condition()
        self._processes: dict[Job, subprocess.Popen[bytes]] = {}
        self._closed = False
        for _ in range(workers):
            threading.Thread(target=self._serve, daemon=True).start()
        atexit.register(self.close)

    # -- what a user does ------------------------------------------------------------------------------------

    def submit(self, experiment: Experiment, owner: str = "", *, saved: dict[str, Any] | None = None) -> Job:
        """Run an experiment, unless the same one is here already, finished or on its way: then that job.

        Raises
        ------
        Refused
            The owner has too many runs going, or the disk is too full to keep another.
        """
        known = self.get(experiment.hash)
        if known is not None and known.status in ("queued", "running", "paused", "finished"):
            return known
        if self.store is not None:
            self.store.require_space()
        with self._change:
            if owner and sum(j.active and j.owner == owner for j in self._jobs.values()) >= MAX_ACTIVE:
                raise Refused(f"you have {MAX_ACTIVE} runs going; stop one or wait for it")
            job = Job(experiment, owner, saved=saved or {})
            self._jobs[job.id] = job
            self._forget()
            self._enqueue(job)
            return job

    def get(self, job_id: str) -> Job | None:
        """The job of an experiment's hash, from memory or from the store, if it is known."""
        with self._change:
            if (job := self._jobs.get(job_id)) is not None:
                self._jobs.move_to_end(job_id)
                return job
        if self.store is None:
            return None
        try:
            result = self.store.get(job_id)
        except (Corrupt, Refused, OSError):
            return None  # it was set aside, or its data or the disk are gone: it can be run again
        if result is None:
            return None
        steps = result.experiment.steps
        job = Job(result.experiment, status="finished", step=steps, histories=result.histories)
        job.spent = sum(h.seconds for h in result.histories.values())
        with self._change:
            self._forget()
            return self._jobs.setdefault(job_id, job)

    def ahead(self, job: Job) -> int:
        """Queued jobs in front of this one."""
        with self._change:
            return self._queue.index(job) if job in self._queue else 0

    @property
    def busy(self) -> bool:
        """Every worker has a run."""
        return len(self._processes) >= self.workers

    def pause(self, job: Job, owner: str = "") -> None:
        """Let a run rest; its worker serves others meanwhile.

        Raises
        ------
        Refused
            Somebody else's run; so too for `resume`, `stop` and `extend`.
        """
        self._leave(job, owner, "paused")

    def stop(self, job: Job, owner: str = "") -> None:
        """End a job; what it has computed stays."""
        self._leave(job, owner, "stopped")

    def resume(self, job: Job, owner: str = "") -> None:
        """Go on with a paused, stopped or failed run from where it was saved."""
        self._require(job, owner)
        with self._change:
            gone = self._change.wait_for(lambda: job not in self._processes, 2 * GRACE)
            if gone and job.status in ("paused", "stopped", "failed"):
                job.deaths = 0
                self._enqueue(job)

    def extend(self, job: Job, steps: int, owner: str = "") -> Job:
        """Continue a finished run up to more steps: the longer experiment's own run, begun where this one ended."""
        longer = read({**job.experiment.model_dump(mode="json"), "steps": steps})
        return self.submit(longer, owner, saved=job.saved or self._checkpoint(job.id))

    def unfinished(self) -> list[Experiment]:
        """Experiments whose runs were interrupted when the last process ended, and can be resumed."""
        if self.store is None:
            return []
        found = []
        for run, text in self.store.checkpoints():
            with suppress(Refused):
                if run not in self._jobs:
                    found.append(read(text))
        return found

    def revive(self, experiment: Experiment, owner: str = "") -> Job:
        """Go on with an interrupted run from its stored checkpoint."""
        return self.submit(experiment, owner, saved=self._checkpoint(experiment.hash))

    def close(self) -> None:
        """End all workers."""
        with self._change:
            self._closed = True
            self._change.notify_all()
            processes = list(self._processes.values())
        for process in processes:
            process.kill()

    # -- behind the scenes -----------------------------------------------------------------------------------

    def _require(self, job: Job, owner: str) -> None:
        if job.owner and job.owner != owner:
            raise Refused("only who started this run may pause, continue or stop it")

    def _enqueue(self, job: Job, *, first: bool = False) -> None:
        job.status, job.error = "queued", ""
        (self._queue.appendleft if first else self._queue.append)(job)
        self._change.notify()

    def _leave(self, job: Job, owner: str, status: Status) -> None:
        self._require(job, owner)
        with self._change:
            if not job.active:
                return
            if job in self._queue:
                self._queue.remove(job)
            job.end(status)
            process = self._processes.get(job)
        if process is not None:
            with suppress(OSError):
                send(_pipe(process.stdin), {"command": "leave"})
            timer = threading.Timer(GRACE, self._insist, (job, process))
            timer.daemon = True
            timer.start()

    def _insist(self, job: Job, process: subprocess.Popen[bytes]) -> None:
        if self._processes.get(job) is process:
            process.kill()

    def _checkpoint(self, run: str) -> dict[str, Any]:
        data = self.store.checkpoint(run) if self.store is not None else None
        return unpack(data) if data else {}

    def _forget(self) -> None:
        over = len(self._jobs) - KEPT
        for job in [j for j in self._jobs.values() if not j.active and j.status != "paused"][: max(over, 0)]:
            del self._jobs[job.id]

    def _serve(self) -> None:
        """A thread's life: keep a warm worker, give it the next job, replace it when it is gone."""
        while not self._closed:
            process = _start()
            try:
                if receive(_pipe(process.stdout)) is None:
                    time.sleep(1)  # it died while starting: do not spin
                    continue
                while (job := self._next(process)) is not None and self._run(job, process):
                    pass
            finally:
                process.kill()
                process.wait()

    def _next(self, process: subprocess.Popen[bytes]) -> Job | None:
        """Wait for a job for this worker; None if there will be none, or if the worker died waiting."""
        with self._change:
            while not self._queue and not self._closed:
                self._change.wait()
            if self._closed or process.poll() is not None:
                return None
            job = self._queue.popleft()
            now = time.monotonic()
            job.status, job.since, job.started = "running", now, job.started or now
            self._processes[job] = process
            return job

    def _run(self, job: Job, process: subprocess.Popen[bytes]) -> bool:
        """Run a job until it ends, pauses or its worker dies; whether the worker can take another."""
        e = job.experiment
        lives = False
        try:
            if not job.histories:
                n_items = e.simulator_class().describe(e.simulator).n_items
                with job.lock:
                    job.histories = {label: History(e.steps, e.replications, n_items) for label in e.labels}
            send(_pipe(process.stdin), {"experiment": e.model_dump(mode="json")}, job.saved)
            lives = self._follow(job, process)
        except Refused as sentence:  # its data were taken away while it waited
            self._end(job, "failed", str(sentence))
            lives = True
        except OSError:
            lives = False
        with self._change:
            del self._processes[job]
            self._change.notify_all()
            if not lives and job.status == "running":
                job.deaths += 1
                if self._closed:
                    job.end("stopped", "the app was closed")
                elif job.deaths < ATTEMPTS:
                    job.end("queued")
                    self._enqueue(job, first=True)
                else:
                    job.end("failed", f"its worker process died {ATTEMPTS} times")
        return lives

    def _follow(self, job: Job, process: subprocess.Popen[bytes]) -> bool:
        """Take in what the worker sends; False if it died."""
        while (message := receive(_pipe(process.stdout))) is not None:
            header, arrays = message
            event = header["event"]
            if event == "news":
                with job.lock:
                    job.histories[header["label"]].merge(arrays)
                    (job.waiting.add if header["waiting"] else job.waiting.discard)(header["label"])
            elif event == "tick":
                job.step = header["step"]
                if job.seconds > TIME_LIMIT:
                    self._leave(job, job.owner, "stopped")
                    job.error = f"stopped after {TIME_LIMIT / 60:.0f} minutes, the limit for one run"
            elif event == "checkpoint":
                job.saved = arrays
                self._keep(job, finished=False)
            elif event == "finished":
                self._keep(job, finished=True)
                self._end(job, "finished")
                return True
            elif event == "failed":
                self._end(job, "failed", header["error"])
                return True
            elif event == "left":
                return True
        return False

    def _end(self, job: Job, status: Status, error: str = "") -> None:
        with self._change:
            if job.status == "running" or status == "finished":  # not if it was stopped meanwhile
                job.end(status, error or job.error)

    def _keep(self, job: Job, *, finished: bool) -> None:
        """Write a run, or its checkpoint, to the store; a full disk is said and costs nothing else."""
        if self.store is None:
            return
        try:
            self.store.keep_checkpoint(job.id, job.experiment, pack(job.saved))
            if finished:
                self.store.put(job.experiment, job.histories, job.seconds)
        except OSError as error:
            job.error = f"this run could not be kept on disk ({error.strerror or error}); it stays until the app ends"


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "bandits.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=worker_environment(),
    )


def _pipe(stream: IO[bytes] | None) -> BinaryIO:
    return cast(BinaryIO, stream)
