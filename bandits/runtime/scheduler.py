"""Decide what a free worker computes next: a run, or a task of a sweep."""

from __future__ import annotations

from collections import deque

from .job import Job
from .task_queue import FairQueue, Task

SHORT_RUN = 10_000_000  # decisions (steps x replications x agents): seconds for linear agents, minutes for networks


class Scheduler:
    """A queue of runs and a fair queue of tasks. It is not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._runs: deque[Job] = deque()
        self._tasks = FairQueue()
        self._task_next = False  # whose turn it is where runs and tasks alternate

    def __len__(self) -> int:
        return len(self._runs) + len(self._tasks)

    def add_run(self, job: Job, *, first: bool = False) -> None:
        """Queue a run after the others, or before them."""
        (self._runs.appendleft if first else self._runs.append)(job)

    def add_task(self, task: Task, *, first: bool = False) -> None:
        """Queue a task after the others of its group, or before them."""
        self._tasks.put(task, first=first)

    def remove_run(self, job: Job) -> None:
        """Remove a run from the queue, if it is there."""
        if job in self._runs:
            self._runs.remove(job)

    def position(self, job: Job) -> int:
        """Return the number of queued runs before this one."""
        return self._runs.index(job) if job in self._runs else 0

    def drain_tasks(self) -> list[Task]:
        """Remove and return all tasks."""
        return self._tasks.drain()

    def next(self, n_runs: int, n_tasks: int) -> Job | Task:
        """Remove and return what is computed next; the queues must not both be empty.

        Parameters
        ----------
        n_runs, n_tasks : int
            Workers that compute a run, and a task, at present.
        """
        if self._tasks and (not self._runs or self._prefers_task(n_tasks - n_runs)):
            self._task_next = False
            return self._tasks.take()
        self._task_next = True
        return self._runs.popleft()

    def _prefers_task(self, surplus: int) -> bool:
        """Alternate between runs and tasks, but prefer the kind that fewer workers compute.

        A short run is exempt, because it soon frees its worker. So long runs leave a worker to sweeps, and neither
        kind waits for the other to end.
        """
        if surplus < 0 and _decisions(self._runs[0]) <= SHORT_RUN:
            return self._task_next
        return self._task_next if surplus == 0 else surplus < 0


def _decisions(job: Job) -> int:
    e = job.experiment
    return e.steps * e.replications * len(e.agents)
