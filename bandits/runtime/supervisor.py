"""Keep worker processes running, give them runs and tasks, and collect what they send."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bandits.base.errors import UserError
from bandits.base.processes import remove_leftovers
from bandits.storage.run_store import Store

from .division import Division, Share, request
from .job import Job, JobStatus, save
from .protocol import mapped
from .scheduler import MAX_QUEUED, Scheduler
from .task_queue import Task, settle
from .worker_handle import WorkerProcess, start_worker

# workers that may die while they compute the same run or task
ATTEMPTS = 3
# seconds of wall time that one run may take
TIME_LIMIT = 1800.0
# seconds after which a run that no page shows gives way to those that wait
ABANDONED = 300.0
# seconds without a sign of life after which a worker is killed; it sends one every two seconds
SILENCE = 60.0
# seconds between looks at time limits and signs of life
WATCH_INTERVAL = 1.0
# seconds that a worker has to abandon its work before it is killed
GRACE = 3.0


class Supervisor:
    """A few worker processes, each served by a thread of this process.

    Parameters
    ----------
    workers : int
    store : Store, optional
        Where finished runs and checkpoints are written.
    limited : bool
        Whether a run that takes longer than `TIME_LIMIT` is stopped, and one that no page shows is
        paused when others wait.
    tidy : callable
        Called every second, with the lock.

    Attributes
    ----------
    change : threading.Condition
        Guards all attributes; notified when work is queued and when a worker becomes free.
    scheduler : Scheduler
    division : Division
        Which worker computes what.
    failed_starts : int
        Workers that ended before they were ready, since the last one that started.
    closed : bool
    """

    def __init__(
        self,
        workers: int,
        store: Store | None,
        *,
        limited: bool = True,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self.workers, self.store, self.limited = workers, store, limited
        self.change = threading.Condition()
        self.scheduler = Scheduler()
        self.division = Division(self.change, self.scheduler)
        self._tidy = tidy
        self._folder = None if store is None else store.staging
        self.failed_starts = 0
        self.closed = False
        for _ in range(workers):
            threading.Thread(target=self._serve, name="supervisor of a worker", daemon=True).start()
        threading.Thread(target=self._watch, name="time limits of runs", daemon=True).start()

    @property
    def failing(self) -> bool:
        """Whether no run is being computed and the last two workers of each thread failed
        to start.
        """
        return self.failed_starts >= 2 * self.workers and not self.division.n_runs

    def enqueue(self, job: Job, *, first: bool = False) -> None:
        """Queue a run after the others, or before them."""
        with self.change:
            job.status, job.error, job.interrupted, job.queued = (
                "queued",
                "",
                False,
                time.monotonic(),
            )
            job.state_stored = False
            self.scheduler.add_run(job, first=first)
            self.division.release()
            self.change.notify_all()

    def make_room(self) -> bool:
        """Return whether another run can be queued.

        If the queue is full, one that no page shows gives way.
        """
        with self.change:
            if (
                self.scheduler.n_runs >= MAX_QUEUED
                and (forgotten := self.scheduler.forgotten()) is not None
            ):
                self.end(forgotten, "stopped", "it gave way to other runs while no page showed it")
            return self.scheduler.n_runs < MAX_QUEUED

    def enqueue_task(self, task: Task, *, first: bool = False) -> None:
        """Queue a task after the others of its group, or before them."""
        with self.change:
            if self.closed:
                settle(task.future, UserError("the app was closed"))
            else:
                self.scheduler.add_task(task, first=first)
                self.division.release()
                self.change.notify_all()

    def end(self, job: Job, status: JobStatus, error: str = "") -> None:
        """Pause or stop a run that is queued or running; its workers still send a checkpoint."""
        with self.change:
            if job.live:
                self.scheduler.remove_run(job)
                job.end(status, error)
                self._abandon_run(job)

    def wait_until_free(self, job: Job | None) -> bool:
        """Wait until no worker computes a run any more; return False if that takes too long."""
        with self.change:
            return self.change.wait_for(
                lambda: job is None or not self.division.shares(job), 2 * GRACE
            )

    def close(self) -> None:
        """End all workers."""
        with self.change:
            self.closed = True
            for task in self.scheduler.drain_tasks():
                task.future.cancel()
            self.change.notify_all()
            processes = list(self.division.processes.values())
        for process in processes:
            process.kill()

    def _abandon_run(self, job: Job) -> None:
        self.division.withdraw(job)
        for share in self.division.shares(job):
            self._abandon(share)

    def _abandon(self, work: Share | Task) -> None:
        """Ask the worker of a share or task to abandon it.

        Kill it if it does not within `GRACE` seconds.
        """
        # so that the message does not reach a worker that has begun something else
        with self.change:
            if (process := self.division.processes.get(work)) is None:
                return
            timer = threading.Timer(GRACE, self._kill, (work, process))
            timer.daemon = True
            timer.start()
            self.division.tell(work, {"command": "leave"})

    def _kill(self, work: Share | Task, process: WorkerProcess) -> None:
        # so that it is not killed when it has begun something else
        with self.change:
            if self.division.processes.get(work) is process:
                process.kill()

    def _watch(self) -> None:
        while not self.closed:
            time.sleep(WATCH_INTERVAL)
            with self.change:
                # its variables hold no run in memory while this thread sleeps
                self._end_what_takes_too_long()
                self._tidy()

    def _end_what_takes_too_long(self) -> None:
        """End runs over their limit and kill workers that give no sign of life."""
        for job in self.division.running() if self.limited else ():
            if job.status == "running" and job.seconds > TIME_LIMIT:
                self.end(
                    job,
                    "stopped",
                    f"stopped after {TIME_LIMIT / 60:.0f} minutes, the limit for one run",
                )
            elif (
                job.status == "running"
                and self.scheduler.n_runs
                and time.monotonic() - job.seen > ABANDONED
            ):
                self.end(job, "paused", "it gave way to other runs while no page showed it")
        for process in self.division.processes.values():
            # its agents go on in another worker
            if process.silence > SILENCE:
                process.kill()

    # -- threads
    # -------------------------------------------------------------------------------------------------  # noqa: E501

    def _serve(self) -> None:
        """Keep one worker process running and give it work, in a loop."""
        while not self.closed:
            try:
                process = start_worker(self._folder)
            except (OSError, RuntimeError):
                # the machine has no memory, processes or threads left
                self._count_failed_start()
                continue
            try:
                if process.receive() is None:
                    self._count_failed_start()
                    continue
                self.failed_starts = 0
                while (work := self._next(process)) is not None:
                    alive = (
                        self._run_task(work, process)
                        if isinstance(work, Task)
                        else self._run_share(work, process)
                    )
                    # it would stay in memory while this thread waits
                    del work
                    if not alive:
                        break
            finally:
                process.end()
                # what it wrote for this process, which did not read it
                if self._folder is not None:
                    remove_leftovers(self._folder)

    def _count_failed_start(self) -> None:
        self.failed_starts += 1
        if self.failing:
            self._fail_tasks("no worker process can be started on this machine")
        time.sleep(1)  # do not spin

    def _next(self, process: WorkerProcess) -> Share | Task | None:
        """Wait for work for a worker and send it.

        Return None if the supervisor was closed or the worker died.
        """
        division = self.division
        with self.change:
            division.idle += 1
            try:
                division.balance_runs()
                while True:
                    while not (division.offers or self.scheduler or self.closed):
                        self.change.wait()
                    if self.closed or process.poll() is not None:
                        return None
                    if (work := division.take()) is not None:
                        division.processes[work] = process
                        # under the lock: other messages must come after it
                        division.tell(work, *request(work))
                        return work
                    if division.full:
                        # until something leaves the ledger
                        self.change.wait(WATCH_INTERVAL)
            finally:
                division.idle -= 1

    def _fail_tasks(self, message: str) -> None:
        with self.change:
            for task in self.scheduler.drain_tasks():
                settle(task.future, UserError(message))

    # -- tasks
    # ---------------------------------------------------------------------------------------------------  # noqa: E501

    def _run_task(self, task: Task, process: WorkerProcess) -> bool:
        """Follow a task until it ends; return whether its worker is still alive."""
        task.future.add_done_callback(
            lambda future: self._abandon(task) if future.cancelled() else None
        )
        alive = False
        with suppress(OSError):
            alive = self._follow_task(task, process)
        with self.change:
            del self.division.processes[task]
            self.division.settle(task)
            self.change.notify_all()
            if not alive:
                task.worker_deaths += 1
                if task.worker_deaths < ATTEMPTS and not self.closed:
                    self.enqueue_task(task, first=True)
                else:
                    died = f"its worker process died {ATTEMPTS} times"
                    settle(task.future, UserError("the app was closed" if self.closed else died))
        return alive

    def _follow_task(self, task: Task, process: WorkerProcess) -> bool:
        """Process the messages about a task until it ends; return False if the worker died."""
        while (message := process.receive()) is not None:
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

    # -- runs
    # ----------------------------------------------------------------------------------------------------  # noqa: E501

    def _run_share(self, share: Share, process: WorkerProcess) -> bool:
        """Follow a share until it ends or is returned; return whether its worker is still alive."""
        job, alive = share.job, False
        with suppress(OSError):
            alive = self._follow_share(share, process)
        with self.change:
            del self.division.processes[share]
            if not alive and job.status == "running":
                self._count_death(job, share.agents)
            if (
                job.status == "running"
                and share.agents
                and not self.division.place(job, share.agents)
            ):
                job.end("queued")
                self.enqueue(job, first=True)
            self.division.settle(job)
            self.change.notify_all()
        return alive

    def _count_death(self, job: Job, agents: set[int]) -> None:
        """Count a death of a worker that computed these agents.

        The run fails when the same agent has met several.
        """
        job.worker_deaths += 1
        job.failed_agents.update(agents)
        if self.closed:
            job.end("stopped", "the app was closed")
        elif max(job.failed_agents.values(), default=0) >= ATTEMPTS:
            job.end("failed", f"its worker process died {ATTEMPTS} times")
            self._abandon_run(job)

    def _follow_share(self, share: Share, process: WorkerProcess) -> bool:
        """Process the messages about a share until it ends; return False if the worker died."""
        job = share.job
        while (message := process.receive()) is not None:
            header, arrays = message
            event = header["event"]
            if event == "history":
                job.merge(header["label"], arrays, waiting=header["waiting"])
            elif event == "tick":
                self._tick(share, header["step"])
            elif event == "compiling":
                job.to_compile.update(header["kernels"])
            elif event == "compiled":
                job.compiled.add(header["kernel"])
            elif event == "checkpoint":
                if "file" in header:
                    arrays = _read_state(Path(header["file"]))
                with self.change:
                    job.save(arrays)
                # the state before it may be large
                del arrays, message
                save(self.store, job, last=header["last"])
            elif event == "gave":
                with self.change:
                    self.division.give(share, set(header["agents"]))
            elif event == "finished":
                self._finish(share, set(header["agents"]))
                return True
            elif event == "failed":
                with self.change:
                    # not if it was stopped meanwhile
                    if job.status == "running":
                        job.end("failed", header["error"])
                    self._abandon_run(job)
                return True
            elif event == "left":
                return True
        return False

    def _finish(self, share: Share, agents: set[int]) -> None:
        """Note the end of some agents; those of the last share end the run."""
        job = share.job
        with self.change:
            share.agents -= agents
            open_shares = [
                *self.division.shares(job),
                *(o for o in self.division.offers if o.job is job),
            ]
            go_on = any(other.agents for other in open_shares) or job.unfinished_agents()
            ends = job.status != "running"
        if go_on:
            # of a run that pauses, nothing may write later what this share has finished
            if ends:
                save(self.store, job, last=True)
            return
        save(self.store, job, finished=True)
        with self.change:
            # where it went when another share left
            self.scheduler.remove_run(job)
            job.step = job.experiment.steps
            job.end("finished", job.error)

    def _tick(self, share: Share, step: int) -> None:
        """Note the step of a share, and see whether its agents should move."""
        job = share.job
        with self.change:
            share.step = step
            job.step = min((s.step for s in self.division.shares(job) if s.step), default=step)
            job.record_time()
            self.division.balance(job)
            self.division.release()


def _read_state(path: Path) -> dict[str, Any]:
    """Return the state in a file of a worker; the file is deleted when nothing refers to it."""
    try:
        return mapped(path)
    finally:
        path.unlink(missing_ok=True)
