"""The supervisor without worker processes: their messages are written by the tests, one after the
other.
"""

from __future__ import annotations

import io
from threading import Thread
from typing import Any, cast

import numpy as np

from bandits.experiments.lockstep import Lockstep, load_histories
from bandits.runtime.division import Share
from bandits.runtime.job import Job
from bandits.runtime.protocol import Message, receive, send
from bandits.runtime.supervisor import Supervisor
from bandits.runtime.worker_handle import WorkerProcess
from tests.support import experiment


class Scripted:
    """A worker process that sends given messages and then ends.

    What it is sent is kept in ``sent``.
    """

    silence = 0.0

    def __init__(self, *messages: tuple[dict[str, Any], dict[str, Any]]) -> None:
        self._stream, self.sent = io.BytesIO(), list[dict[str, Any]]()
        for header, arrays in messages:
            send(self._stream, header, arrays)
        self._stream.seek(0)

    def receive(self) -> Message | None:
        return receive(self._stream)

    def send(self, header: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
        self.sent.append(header)

    def poll(self) -> None:
        return None

    def kill(self) -> None:
        pass


def leaves(job: Job, agents: list[int], step: int) -> Scripted:
    """Return a worker that returns some agents at a step."""
    lockstep = Lockstep(job.experiment, agents)
    list(lockstep.advance(step))
    state = {k: np.asarray(v) for k, v in lockstep.state_dict().items()}
    return Scripted(({"event": "checkpoint", "last": True}, state), ({"event": "left"}, {}))


def running(supervisor: Supervisor, *shares: set[int]) -> tuple[Job, list[Share]]:
    """Return a run of four agents that is computed in these shares, by workers that never
    answer.
    """
    job = Job(experiment("linucb", "lints", "beta_ts", "random"), status="running")
    job.histories = load_histories(job.experiment)
    made = [Share(job, agents) for agents in shares]
    for share in made:
        supervisor.division.processes[share] = cast(WorkerProcess, Scripted())
    return job, made


def test_a_run_that_is_queued_while_a_share_leaves_gives_no_agent_to_two_workers() -> None:
    supervisor = Supervisor(0, None)
    job, (first, second) = running(supervisor, {0, 1}, {2, 3})
    first.leaving = second.leaving = True
    supervisor._run_share(first, cast(WorkerProcess, leaves(job, [0, 1], 100)))
    assert job.status == "queued"
    with supervisor.change:
        # another worker begins before the second share has left
        next_share = supervisor.division.take()
    assert isinstance(next_share, Share)
    assert next_share.agents == {0, 1}
    worker = Scripted()
    supervisor.division.processes[next_share] = cast(WorkerProcess, worker)
    supervisor._run_share(second, cast(WorkerProcess, leaves(job, [2, 3], 100)))
    assert job.status == "running"
    assert next_share.agents == {0, 1, 2, 3}
    assert worker.sent == [{"command": "take", "agents": [2, 3]}]


def test_a_run_that_ends_while_it_is_queued_is_not_computed_again() -> None:
    """Its worker died after the last checkpoint, and the share that was leaving finished first."""
    supervisor = Supervisor(0, None)
    job, (died, other) = running(supervisor, {0, 1}, {2, 3})
    died.leaving = other.leaving = True
    steps = job.experiment.steps
    last = receive(cast(Any, leaves(job, [0, 1], steps)._stream))
    assert last is not None
    supervisor._run_share(died, cast(WorkerProcess, Scripted(last)))
    assert (job.status, job.worker_deaths) == ("queued", 1)
    checkpoint = receive(cast(Any, leaves(job, [2, 3], steps)._stream))
    assert checkpoint is not None
    finished = {"event": "finished", "agents": [2, 3]}
    supervisor._run_share(other, cast(WorkerProcess, Scripted(checkpoint, (finished, {}))))
    assert job.status == "finished"
    assert not supervisor.scheduler


def test_a_worker_takes_no_new_work_between_check_and_kill() -> None:
    supervisor = Supervisor(0, None)
    _, (share,) = running(supervisor, {0, 1, 2, 3})
    locked = []

    class Suspended(Scripted):
        def kill(self) -> None:
            other = Thread(
                target=lambda: locked.append(not supervisor.change.acquire(blocking=False))
            )
            other.start()
            other.join()

    process = cast(WorkerProcess, Suspended())
    # it computes something else
    supervisor._kill(share, process)
    assert locked == []
    supervisor.division.processes[share] = process
    supervisor._kill(share, process)
    assert locked == [True]
