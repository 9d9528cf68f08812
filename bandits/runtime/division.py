"""Which worker computes which agents of the active runs: shares are begun, moved and returned."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.ledger import LEDGER
from bandits.experiments.lockstep import load_histories

from .job import Job
from .scheduler import Scheduler
from .task_queue import Task
from .worker_handle import WorkerProcess

# seconds by which a move must shorten a run, beyond its cost, and the same relative to the longest
# rest
MIN_GAIN, MIN_SHARE_OF_REST = 0.1, 0.05
# of a state that is moved: packed, sent, unpacked
BYTES_PER_SECOND = 50e6
# expected seconds of a run for which another run returns a worker
MIN_NEED = 2.0


@dataclass(eq=False)
class Share:
    """The agents of a run that one worker computes.

    Attributes
    ----------
    job : Job
    agents : set of int
        Positions of the agents that it has not finished.
    step : int
        Step that it has reached.
    giving : set of int
        Agents that its worker has been asked to hand over.
    leaving : bool
        Whether its worker has been asked to return all agents.
    """

    job: Job
    agents: set[int]
    step: int = 0
    giving: set[int] = field(default_factory=set)
    leaving: bool = False

    @property
    def rest(self) -> float:
        """Expected seconds to its end."""
        return sum(self.job.agents_left.get(i, 0.0) for i in self.agents)


class Move(NamedTuple):
    """Agents that one share gives to another, or to a new one (None)."""

    source: Share
    agents: set[int]
    target: Share | None


def deal(job: Job, agents: Iterable[int], n: int) -> list[set[int]]:
    """Deal agents out to at most ``n`` workers, the largest states first, each to the worker with
    the least.

    Nothing has been measured yet, so the declared size of an agent's state stands for its cost per
    step."""
    experiment = job.experiment
    spec = experiment.simulator_class().describe(experiment.simulator)
    size = {i: experiment.agent_class(i).memory(experiment.agents[i], spec) for i in agents}
    hands: list[set[int]] = [set() for _ in range(max(1, min(n, len(size))))]
    for i in sorted(size, key=lambda i: (-size[i], i)):
        min(hands, key=lambda hand: (sum(size[j] for j in hand), len(hand))).add(i)
    return hands


def plan(job: Job, shares: Sequence[Share], *, spare: bool) -> Move | None:
    """Choose the agents to move from the share with the longest rest.

    None if no move is worth its cost.

    Parameters
    ----------
    spare : bool
        Whether an idle worker can take them; otherwise the share with the shortest rest does.
    """
    if not shares:
        return None
    rests = {share: share.rest for share in shares}
    source = max(shares, key=lambda share: (len(share.agents) > 1, rests[share]))
    target = None if spare else min(shares, key=lambda share: rests[share])
    if target is source or source.leaving:
        return None
    there, here, chosen = 0.0 if target is None else rests[target], rests[source], set[int]()
    for i in sorted(source.agents, key=lambda i: -job.agents_left.get(i, 0.0)):
        seconds = job.agents_left.get(i, 0.0)
        if (
            len(chosen) + 1 < len(source.agents)
            and not job.is_waiting(i)
            and there + seconds < here
        ):
            chosen.add(i)
            here, there = here - seconds, there + seconds
    gain = rests[source] - max(here, there)
    cost = MIN_GAIN + sum(map(job.state_bytes, chosen)) / BYTES_PER_SECOND
    return (
        Move(source, chosen, target)
        if chosen and gain > max(cost, MIN_SHARE_OF_REST * rests[source])
        else None
    )


class Division:
    """Divides the active runs among the workers.

    Its owner holds the lock ``change`` during every call.

    A run has one worker, and further ones that would be idle otherwise; several runs have equally
    many.

    Attributes
    ----------
    change : threading.Condition
    scheduler : Scheduler
    processes : dict of Share or Task to WorkerProcess
        The worker process of everything that is being computed.
    offers : deque of Share
        Shares for idle workers, which take them before anything else.
    idle : int
        Workers that wait for work.
    full : bool
        Whether the next run or task waits for memory.
    """

    def __init__(self, change: Condition, scheduler: Scheduler) -> None:
        self.change, self.scheduler = change, scheduler
        self.processes: dict[Share | Task, WorkerProcess] = {}
        self.offers: deque[Share] = deque()
        self.idle = 0
        self.full = False

    @property
    def first_processes(self) -> dict[Job | Task, WorkerProcess]:
        """The worker process of each run and task that is being computed.

        Of a run with several, the first.
        """
        found: dict[Job | Task, WorkerProcess] = {}
        for work, process in self.processes.copy().items():
            found.setdefault(work.job if isinstance(work, Share) else work, process)
        return found

    @property
    def n_runs(self) -> int:
        """Number of runs that are being computed."""
        return sum(isinstance(work, Job) for work in self.first_processes)

    @property
    def spare(self) -> int:
        """Number of workers that neither the queue nor an offered share will occupy."""
        return self.idle - len(self.offers) - len(self.scheduler)

    def shares(self, job: Job) -> list[Share]:
        """List the shares of a run that are being computed."""
        return [work for work in self.processes if isinstance(work, Share) and work.job is job]

    def running(self) -> list[Job]:
        """List the runs that are being computed, those with the fewest workers first."""
        jobs = {work.job: 0 for work in (*self.processes, *self.offers) if isinstance(work, Share)}
        return sorted(jobs, key=lambda job: len(self.shares(job)))

    def take(self) -> Share | Task | None:
        """Take an offered share, or what the scheduler serves next; None if that cannot begin."""
        self.full = False
        if self.offers:
            return self.offers.popleft()
        # the worker that takes it
        self.idle -= 1
        try:
            n_tasks = sum(isinstance(work, Task) for work in self.processes)
            work = self.scheduler.next(self.n_runs, n_tasks)
            if isinstance(work, Task):
                if work.future.cancelled():
                    return None
                self.full = not LEDGER.enter(work, work.memory)
                if not self.full:
                    return work
                self.scheduler.add_task(work, first=True)
                return None
            self.full = not LEDGER.enter(work, _need(work))
            if not self.full:
                return self._start(work)
            self.scheduler.add_run(work, first=True)
            return None
        finally:
            self.idle += 1

    def _start(self, job: Job) -> Share | None:
        now = time.monotonic()
        job.status, job.running_since, job.started = "running", now, job.started or now
        try:
            if not job.histories:
                # without the run's lock: a page that draws the run holds it, and may wait for the
                # pool's
                job.histories = load_histories(job.experiment, job.saved)
            return self._begin(job)
        except UserError as error:
            # its data set was deleted while it waited
            job.end("failed", str(error))
        except (KeyError, ValueError):
            job.end("failed", "its checkpoint is of another version")
        LEDGER.leave(job)
        return None

    def _begin(self, job: Job) -> Share:
        """Divide a run among this worker and idle ones; return this worker's share.

        Agents of shares that are leaving stay there, and are placed when these have left.
        """
        free = set(range(len(job.experiment.agents))).difference(
            *(share.agents for share in self.shares(job))
        )
        agents = job.unfinished_agents() & free or free
        first, *others = deal(job, agents, min(1 + max(self.spare, 0), job.max_workers))
        self._offer(*(Share(job, hand) for hand in others))
        return Share(job, first)

    def place(self, job: Job, agents: set[int]) -> bool:
        """Find a worker for agents that have none: an idle one, or another of the run.

        False if there is none.
        """
        staying = sorted(
            (s for s in self.shares(job) if not s.leaving), key=lambda share: share.rest
        )
        if self.spare > 0 and self._may_grow(job):
            self._offer(Share(job, agents))
        elif staying:
            staying[0].agents |= agents
            self.tell(
                staying[0], {"command": "take", "agents": sorted(agents)}, job.agent_state(agents)
            )
        elif offered := next((offer for offer in self.offers if offer.job is job), None):
            offered.agents |= agents
        else:
            return False
        return True

    def give(self, share: Share, agents: set[int]) -> None:
        """Find another worker for the agents that a worker has handed over."""
        share.agents -= agents
        share.giving = set()
        if share.job.status == "running" and agents and not self.place(share.job, agents):
            # it is leaving, and they are placed when it has left
            share.agents |= agents

    def balance_runs(self) -> None:
        """Balance all runs that are being computed."""
        for job in self.running():
            self.balance(job)

    def balance(self, job: Job) -> None:
        """Ask a worker of a run to give agents to another one, or to an idle one, where that ends
        the run earlier.
        """
        shares = self.shares(job)
        if job.status != "running" or any(share.giving or share.leaving for share in shares):
            # one move at a time
            return
        move = plan(job, shares, spare=self.spare > 0 and self._may_grow(job))
        if move is not None:
            move.source.giving = move.agents
            self.tell(move.source, {"command": "give", "agents": sorted(move.agents)})

    def release(self) -> None:
        """Have runs return workers that are due to the queue, or to a run that needs them more."""
        allotted = self._allot()
        needed = len(self.scheduler) > self.idle
        for job in allotted:
            staying = [share for share in self.shares(job) if not share.leaving]
            rest = max((share.rest for share in staying), default=0.0)
            needed = needed or (len(staying) < allotted[job] and rest > MIN_NEED)
        for job, n in allotted.items():
            staying = sorted(
                (s for s in self.shares(job) if not s.leaving), key=lambda share: share.rest
            )
            for share in (
                staying[: max(0, len(staying) - n)] if needed and job.status == "running" else ()
            ):
                share.leaving = True
                self.tell(share, {"command": "leave"})

    def _allot(self) -> dict[Job, int]:
        """Divide the workers that no task and no queued work occupies evenly among the runs, at
        least one to each.
        """
        jobs = self.running()
        n = (
            sum(isinstance(work, Share) for work in self.processes)
            + self.idle
            - len(self.scheduler)
            - len(jobs)
        )
        allotted, wanted = dict.fromkeys(jobs, 1), {job: job.max_workers for job in jobs}
        while n > 0 and (needy := [job for job in jobs if allotted[job] < wanted[job]]):
            allotted[min(needy, key=lambda job: allotted[job])] += 1
            n -= 1
        return allotted

    def _may_grow(self, job: Job) -> bool:
        present = len(self.shares(job)) + sum(offer.job is job for offer in self.offers)
        return present < self._allot().get(job, 1)

    def withdraw(self, job: Job) -> None:
        """Take back all offered shares of a run."""
        self.offers = deque(offer for offer in self.offers if offer.job is not job)

    def tell(
        self, work: Share | Task, header: dict[str, Any], arrays: dict[str, Any] | None = None
    ) -> None:
        """Queue a message for the worker of a share or task: nothing here waits for a worker to
        read.
        """
        self.processes[work].send(header, arrays)

    def settle(self, work: Job | Task) -> None:
        """Remove a run or task from the ledger that no worker computes any more."""
        if isinstance(work, Task) or (
            not self.shares(work) and all(offer.job is not work for offer in self.offers)
        ):
            LEDGER.leave(work)

    def _offer(self, *shares: Share) -> None:
        self.offers.extend(shares)
        self.change.notify_all()


def _need(job: Job) -> int:
    """Return the bytes that a run takes here and in as many workers as it may have."""
    try:
        return job.experiment.memory(job.max_workers) + job.experiment.server_memory()
    except UserError:
        # its data set was deleted, which its start states
        return 0


def request(work: Share | Task) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make the message that starts a share or a task: a header and arrays."""
    if isinstance(work, Task):
        return work.message, {}
    source, agents = work.job.experiment.model_dump(mode="json"), sorted(work.agents)
    return {"experiment": source, "agents": agents}, work.job.agent_state(agents)
