"""Runs in worker processes: submit an experiment, look at it while it grows, stop it.

Knows nothing of any user interface. Each run has a warm worker of its own for as long as it lasts; more runs
than workers wait their turn. Equal experiments are one job.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import IO, BinaryIO, Literal, cast

from .experiment import Experiment
from .race import worker_environment
from .result import Result
from .trace import History
from .worker import receive, send

Status = Literal["queued", "running", "finished", "stopped", "failed"]
KEPT = 24  # finished jobs that stay in memory


@dataclass(eq=False)
class Job:
    """A submitted experiment.

    Attributes
    ----------
    experiment : Experiment
    status : {"queued", "running", "finished", "stopped", "failed"}
    histories : dict of str to History
        What each agent has left behind so far. Read them under ``lock``.
    waiting : set of str
        Agents that are still being trained.
    step : int
        Step the race has reached.
    error : str
        Why it failed, in one sentence.
    """

    experiment: Experiment
    status: Status = "queued"
    step: int = 0
    error: str = ""
    waiting: set[str] = field(default_factory=set)
    histories: dict[str, History] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    started: float | None = None
    ended: float | None = None

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
    def progress(self) -> float:
        """Share of all agents' steps that are done, 0 to 1."""
        total = self.experiment.steps * max(len(self.histories), 1)
        return sum(h.step for h in self.histories.values()) / total if self.histories else 0.0

    @property
    def seconds(self) -> float:
        """Wall time it has been running."""
        return 0.0 if self.started is None else (self.ended or time.monotonic()) - self.started

    @property
    def seconds_left(self) -> float | None:
        """Expected wall time to the end, or None while there is too little to tell."""
        done = self.progress
        return self.seconds * (1 - done) / done if self.status == "running" and done > 0.02 else None


class Pool:
    """A few warm worker processes and a queue.

    Parameters
    ----------
    workers : int
        Runs at the same time.
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: deque[Job] = deque()
        self._change = threading.Condition()
        self._processes: dict[Job, subprocess.Popen[bytes]] = {}
        self._closed = False
        for _ in range(workers):
            threading.Thread(target=self._serve, daemon=True).start()
        atexit.register(self.close)

    def submit(self, experiment: Experiment) -> Job:
        """Run an experiment, unless the same one is running or finished already: then that job."""
        with self._change:
            known = self._jobs.get(experiment.hash)
            if known is not None and known.status in ("queued", "running", "finished"):
                self._jobs.move_to_end(known.id)
                return known
            job = Job(experiment)
            self._jobs[job.id] = job
            self._queue.append(job)
            self._forget()
            self._change.notify()
            return job

    def get(self, job_id: str) -> Job | None:
        """The job of an experiment's hash, if it is still known."""
        return self._jobs.get(job_id)

    def ahead(self, job: Job) -> int:
        """Queued jobs in front of this one."""
        with self._change:
            return self._queue.index(job) if job in self._queue else 0

    @property
    def busy(self) -> bool:
        """Every worker has a run."""
        return len(self._processes) >= self.workers

    def stop(self, job: Job) -> None:
        """End a job; what it has computed stays."""
        with self._change:
            if not job.active:
                return
            job.status, job.ended = "stopped", time.monotonic()
            if job in self._queue:
                self._queue.remove(job)
            if (process := self._processes.get(job)) is not None:
                process.kill()

    def close(self) -> None:
        """End all workers."""
        with self._change:
            self._closed = True
            self._change.notify_all()
            processes = list(self._processes.values())
        for process in processes:
            process.kill()

    def _forget(self) -> None:
        over = len(self._jobs) - KEPT
        for job in [j for j in self._jobs.values() if not j.active][: max(over, 0)]:
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
            job.status, job.started = "running", time.monotonic()
            return job

    def _run(self, job: Job, process: subprocess.Popen[bytes]) -> bool:
        """Run a job to its end; whether the worker can take another."""
        e = job.experiment
        n_items = e.simulator_class().describe(e.simulator).n_items
        with job.lock:
            job.histories = {label: History(e.steps, e.replications, n_items) for label in e.labels}
        with self._change:
            if job.status != "running":
                return True
            self._processes[job] = process
        lives = False
        try:
            send(_pipe(process.stdin), {"experiment": e.model_dump(mode="json")})
            lives = self._follow(job, process)
        except OSError:
            self._end(job, "failed", "the worker process died")
        finally:
            with self._change:
                del self._processes[job]
        return lives and job.status != "stopped"  # to stop a job is to kill its worker

    def _follow(self, job: Job, process: subprocess.Popen[bytes]) -> bool:
        while (message := receive(_pipe(process.stdout))) is not None:
            header, arrays = message
            if header["event"] == "news":
                with job.lock:
                    job.histories[header["label"]].merge(arrays)
                    (job.waiting.add if header["waiting"] else job.waiting.discard)(header["label"])
            elif header["event"] == "tick":
                job.step = header["step"]
            elif header["event"] == "finished":
                self._end(job, "finished")
                return True
            elif header["event"] == "failed":
                self._end(job, "failed", header["error"])
                return True
        self._end(job, "failed", "the worker process died")
        return False

    def _end(self, job: Job, status: Status, error: str = "") -> None:
        with self._change:
            if job.status == "running":  # not if it was stopped meanwhile
                job.status, job.error, job.ended = status, error, time.monotonic()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "bandits.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=worker_environment(),
    )


def _pipe(stream: IO[bytes] | None) -> BinaryIO:
    return cast(BinaryIO, stream)
