"""Keep worker processes running, give them runs and tasks, and collect what they send."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, BinaryIO, cast

from bandits.base.errors import UserError
from bandits.base.files import pack
from bandits.base.processes import worker_environment
from bandits.experiments.race import load_histories
from bandits.storage.run_store import Store

from .job import Job, JobStatus
from .protocol import receive, send
from .scheduler import Scheduler
from .task_queue import Task, settle

ATTEMPTS = 3  # workers that may die while they compute the same run or task
TIME_LIMIT = 1800.0  # seconds of wall time that one run may take
GRACE = 3.0  # seconds that a worker has to abandon its work before it is killed

Process = subprocess.Popen[bytes]


class Supervisor:
    """A few worker processes, each served by a thread of this process.

    Parameters
    ----------
    workers : int
    store : Store, optional
        Where finished runs and checkpoints are written.

    Attributes
    ----------
    change : threading.Condition
        Guards all attributes; notified when work is queued and when a worker becomes free.
    scheduler : Scheduler
    processes : dict of Job or Task to Popen
        The worker process of everything that is being computed.
    failed_starts : int
        Workers that ended before they were ready, since the last one that started.
    closed : bool
    """

    def __init__(self, workers: int, store: Store | None) -> None:
        self.workers, self.store = workers, store
        self.change = threading.Condition()
        self.scheduler = Scheduler()
        self.processes: dict[Job | Task, Process] = {}
        self.failed_starts = 0
        self.closed = False
        for _ in range(workers):
            threading.Thread(target=self._serve, daemon=True).start()

    @property
    def n_runs(self) -> int:
        """Number of workers that compute a run."""
        return sum(isinstance(work, Job) for work in list(self.processes))

    @property
    def failing(self) -> bool:
        """Whether no run is being computed and the last two workers of each thread failed to start."""
        return self.failed_starts >= 2 * self.workers and not self.n_runs

    def enqueue(self, job: Job, *, first: bool = False) -> None:
        """Queue a run after the others, or before them."""
        with self.change:
            job.status, job.error, job.interrupted = "queued", "", False
            self.scheduler.add_run(job, first=first)
            self.change.notify_all()

    def enqueue_task(self, task: Task, *, first: bool = False) -> None:
        """Queue a task after the others of its group, or before them."""
        with self.change:
            if self.closed:
                settle(task.future, UserError("the app was closed"))
            else:
                self.scheduler.add_task(task, first=first)
                self.change.notify_all()

    def end(self, job: Job, status: JobStatus) -> None:
        """Pause or stop a run that is queued or running; its worker still sends a checkpoint."""
        with self.change:
            if job.live:
                self.scheduler.remove_run(job)
                job.end(status)
                self._abandon(job)

    def wait_until_free(self, job: Job | None) -> bool:
        """Wait until no worker computes a run any more; return False if that takes too long."""
        with self.change:
            return self.change.wait_for(lambda: job not in self.processes, 2 * GRACE)

    def close(self) -> None:
        """End all workers."""
        with self.change:
            self.closed = True
            for task in self.scheduler.drain_tasks():
                task.future.cancel()
            self.change.notify_all()
            processes = list(self.processes.values())
        for process in processes:
            process.kill()

    def _abandon(self, work: Job | Task) -> None:
        """Ask the worker of a run or task to abandon it, and kill the worker if it does not within `GRACE` seconds."""
        with self.change:  # so that the message does not reach a worker that has begun something else
            if (process := self.processes.get(work)) is None:
                return
            timer = threading.Timer(GRACE, self._kill, (work, process))
            timer.daemon = True
            timer.start()
            with suppress(OSError):
                send(_stream(process.stdin), {"command": "leave"})

    def _kill(self, work: Job | Task, process: Process) -> None:
        if self.processes.get(work) is process:
            process.kill()

    # -- threads -------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Keep one worker process running and give it work, in a loop."""
        while not self.closed:
            process = start_worker()
            try:
                if receive(_stream(process.stdout)) is None:
                    self.failed_starts += 1
                    if self.failing:
                        self._fail_tasks("no worker process can be started on this machine")
                    time.sleep(1)  # it died while it started: do not spin
                    continue
                self.failed_starts = 0
                while (work := self._next(process)) is not None:
                    alive = self._run_task(work, process) if isinstance(work, Task) else self._run_job(work, process)
                    if not alive:
                        break
            finally:
                process.kill()
                process.wait()

    def _next(self, process: Process) -> Job | Task | None:
        """Wait for work for a worker; return None if the supervisor was closed or the worker died."""
        with self.change:
            while not self.scheduler and not self.closed:
                self.change.wait()
            if self.closed or process.poll() is not None:
                return None
            n_runs = self.n_runs
            work = self.scheduler.next(n_runs, len(self.processes) - n_runs)
            if isinstance(work, Job):
                now = time.monotonic()
                work.status, work.running_since, work.started = "running", now, work.started or now
                self.processes[work] = process
            return work

    def _fail_tasks(self, message: str) -> None:
        with self.change:
            for task in self.scheduler.drain_tasks():
                settle(task.future, UserError(message))

    # -- tasks ---------------------------------------------------------------------------------------------------

    def _run_task(self, task: Task, process: Process) -> bool:
        """Have a worker compute a task; return whether the worker is still alive."""
        if task.future.cancelled():
            return True
        alive = False
        with suppress(OSError):
            with self.change:  # the request must be sent before a cancellation can be
                self.processes[task] = process
                send(_stream(process.stdin), task.message)
            task.future.add_done_callback(lambda future: self._abandon(task) if future.cancelled() else None)
            alive = self._follow_task(task, process)
        with self.change:
            del self.processes[task]
            if not alive:
                task.worker_deaths += 1
                if task.worker_deaths < ATTEMPTS and not self.closed:
                    self.enqueue_task(task, first=True)
                else:
                    died = f"its worker process died {ATTEMPTS} times"
                    settle(task.future, UserError("the app was closed" if self.closed else died))
        return alive

    def _follow_task(self, task: Task, process: Process) -> bool:
        """Process the messages about a task until it ends; return False if the worker died."""
        while (message := receive(_stream(process.stdout))) is not None:
            header, arrays = message
            if header["event"] == "tick":
                task.on_progress(header["step"])
                continue
            if header["event"] == "finished":
                settle(task.future, arrays)
            elif header["event"] == "failed":
                settle(task.future, UserError(header["error"]))
            return True
        return False

    # -- runs ----------------------------------------------------------------------------------------------------

    def _run_job(self, job: Job, process: Process) -> bool:
        """Have a worker compute a run until it ends or is paused; return whether the worker is still alive."""
        e = job.experiment
        alive = False
        try:
            if not job.histories:
                with job.lock:
                    job.histories = load_histories(e)
            send(_stream(process.stdin), {"experiment": e.model_dump(mode="json")}, job.saved)
            alive = self._follow_job(job, process)
        except UserError as error:  # its data set was deleted while it waited
            self._set_ended(job, "failed", str(error))
            alive = True
        except OSError:
            alive = False
        with self.change:
            del self.processes[job]
            self.change.notify_all()
            if not alive and job.status == "running":
                job.worker_deaths += 1
                if self.closed:
                    job.end("stopped", "the app was closed")
                elif job.worker_deaths < ATTEMPTS:
                    job.end("queued")
                    self.enqueue(job, first=True)
                else:
                    job.end("failed", f"its worker process died {ATTEMPTS} times")
        return alive

    def _follow_job(self, job: Job, process: Process) -> bool:
        """Process the messages about a run until it ends; return False if the worker died."""
        while (message := receive(_stream(process.stdout))) is not None:
            header, arrays = message
            event = header["event"]
            if event == "history":
                with job.lock:
                    job.histories[header["label"]].merge(arrays)
                    (job.waiting.add if header["waiting"] else job.waiting.discard)(header["label"])
            elif event == "tick":
                job.step = header["step"]
                job.record_time()
                if job.seconds > TIME_LIMIT:
                    self.end(job, "stopped")
                    job.error = f"stopped after {TIME_LIMIT / 60:.0f} minutes, the limit for one run"
            elif event == "checkpoint":
                job.saved = arrays
                self._save(job, finished=False)
            elif event == "finished":
                self._save(job, finished=True)
                self._set_ended(job, "finished")
                return True
            elif event == "failed":
                self._set_ended(job, "failed", header["error"])
                return True
            elif event == "left":
                return True
        return False

    def _set_ended(self, job: Job, status: JobStatus, error: str = "") -> None:
        with self.change:
            if job.status == "running" or status == "finished":  # not if it was stopped meanwhile
                job.end(status, error or job.error)

    def _save(self, job: Job, *, finished: bool) -> None:
        """Write a run, or its checkpoint, to the store; a full disk is reported in ``job.error`` and ends nothing."""
        if self.store is None:
            return
        try:
            self.store.keep_checkpoint(job.id, job.experiment, pack(job.saved))
            if finished:
                self.store.put(job.experiment, job.histories, job.seconds)
        except OSError as error:
            job.error = f"this run could not be kept on disk ({error.strerror or error}); it stays until the app ends"


def start_worker() -> Process:
    """Start a worker process."""
    return subprocess.Popen(
        [sys.executable, "-m", "bandits.runtime.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=worker_environment(),
        process_group=0,  # Ctrl-C goes to this process, which ends the workers
    )


def _stream(pipe: IO[bytes] | None) -> BinaryIO:
    return cast(BinaryIO, pipe)
