"""Decide what a free worker computes next: a run, or a task of a sweep."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from bandits.experiments.experiment import Experiment

from .job import Job
from .task_queue import FairQueue, Task

# decisions (steps x replications x agents): seconds for linear agents, minutes for networks
SHORT_RUN = 10_000_000
# short runs that pass a long one in a row
MAX_PASSES = 8
MAX_QUEUED = 100  # runs
# addresses and owners whose last turn is remembered
MAX_NAMES = 1000
# seconds for which the order of the queue is not determined anew
ORDER_AGE = 1.0
# seconds after which a run that no page asks for counts as not looked at any more
UNSEEN = 60.0


class Scheduler:
    """A queue of runs and a fair queue of tasks. It is not thread-safe: its owner holds a lock.

    Runs that a page shows come before those that no page shows any more; then addresses take turns,
    and the owners at an address. Short runs pass long ones, a few in a row."""

    def __init__(self) -> None:
        self._runs: list[Job] = []
        # begun, and returned by a worker that died
        self._first: deque[Job] = deque()
        self._tasks = FairQueue()
        # whose turn it is where runs and tasks alternate
        self._task_next = False
        self._turn = _Turn()
        # in which the runs will be served, as determined at ...
        self._order: list[Job] = []
        self._ordered = 0.0  # ... this time

    def __len__(self) -> int:
        return self.n_runs + len(self._tasks)

    @property
    def n_runs(self) -> int:
        """Number of queued runs."""
        return len(self._runs) + len(self._first)

    def add_run(self, job: Job, *, first: bool = False) -> None:
        """Queue a run after the others, or before them."""
        (self._first.appendleft if first else self._runs.append)(job)

    def forgotten(self) -> Job | None:
        """Return the queued run that no page has shown for longest; None if all are shown."""
        unseen = [job for job in self._runs if not _is_seen(job, time.monotonic())]
        return min(unseen, key=lambda job: job.seen, default=None)

    def add_task(self, task: Task, *, first: bool = False) -> None:
        """Queue a task after the others of its group, or before them."""
        self._tasks.put(task, first=first)

    def remove_run(self, job: Job) -> None:
        """Remove a run from the queue, if it is there."""
        for queue in (self._runs, self._first):
            if job in queue:
                queue.remove(job)

    def position(self, job: Job) -> int:
        """Return the number of queued runs before this one, if no other is added."""
        now = time.monotonic()
        if (
            len(self._order) != self.n_runs
            or now - self._ordered > ORDER_AGE
            or job not in self._order
        ):
            waiting, turn, self._order, self._ordered = (
                list(self._runs),
                self._turn.copy(),
                list(self._first),
                now,
            )
            while waiting:
                chosen = turn.choose(waiting, now)
                turn.served(chosen, waiting)
                waiting.remove(chosen)
                self._order.append(chosen)
        return self._order.index(job) if job in self._order else 0

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
        if self._tasks and (not self.n_runs or self._prefers_task(n_tasks - n_runs)):
            self._task_next = False
            return self._tasks.take()
        self._task_next = True
        if self._first:
            return self._first.popleft()
        job = self._turn.choose(self._runs, time.monotonic())
        self._turn.served(job, self._runs)
        self._runs.remove(job)
        return job

    def _prefers_task(self, surplus: int) -> bool:
        """Alternate between runs and tasks, but prefer the kind that fewer workers compute.

        A short run is exempt, because it soon frees its worker. So long runs leave a worker to
        sweeps, and neither kind waits for the other to end."""
        job = self._first[0] if self._first else self._turn.choose(self._runs, time.monotonic())
        if surplus < 0 and is_short(job):
            return self._task_next
        return self._task_next if surplus == 0 else surplus < 0


class _Turn:
    """Whose turn it is: when addresses and owners were last served, and how many short runs have
    passed long ones.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._clock = 0
        self._passed = 0

    def copy(self) -> _Turn:
        """Return a copy that can be served from, without effect on this one."""
        other = _Turn()
        other._last, other._clock, other._passed = dict(self._last), self._clock, self._passed
        return other

    def choose(self, runs: Sequence[Job], now: float) -> Job:
        """Return the run that is served next."""
        runs = [job for job in runs if _is_seen(job, now)] or runs
        short = [job for job in runs if is_short(job)]
        if short and self._passed < MAX_PASSES:
            runs = short
        elif short and len(short) < len(runs):
            runs = [job for job in runs if not is_short(job)]
        # the first of equals
        return min(runs, key=lambda job: tuple(self._last.get(name, 0) for name in _names(job)))

    def served(self, job: Job, waiting: Sequence[Job]) -> None:
        """Note that a run of those that wait is served."""
        self._clock += 1
        self._last.update(dict.fromkeys(_names(job), self._clock))
        if len(self._last) > MAX_NAMES:
            self._last = dict(list(self._last.items())[-MAX_NAMES // 2 :])
        passes = is_short(job) and not all(map(is_short, waiting))
        self._passed = self._passed + 1 if passes else 0


def decisions(experiment: Experiment) -> int:
    """Return the number of decisions of a run: steps x replications x agents."""
    return experiment.steps * experiment.replications * len(experiment.agents)


def is_short(job: Job) -> bool:
    """Return whether a run soon frees its worker."""
    return decisions(job.experiment) <= SHORT_RUN


def _names(job: Job) -> tuple[str, str]:
    return f"address {job.address}", f"owner {job.owner}"


def _is_seen(job: Job, now: float) -> bool:
    return now - job.seen < UNSEEN
