"""Division of a run's agents among workers: the first division and moves."""

from __future__ import annotations

from threading import Condition

import numpy as np
import pytest

from bandits import run
from bandits.base.ledger import Ledger
from bandits.experiments.experiment import MEMORY_LIMIT
from bandits.experiments.lockstep import Lockstep, load_histories
from bandits.runtime import division as division_module
from bandits.runtime.division import Division, Share, deal, plan
from bandits.runtime.job import Job
from bandits.runtime.scheduler import Scheduler
from bandits.runtime.task_queue import Task
from bandits.sweeps.blocks import MAX_BYTES, Block, block_memory
from bandits.sweeps.sweep import read as read_sweep
from tests.support import experiment, same

AGENTS = ("linucb", "lints", "epsilon_greedy", "random")


def job_at(step: int, *seconds: float) -> Job:
    """Return a job of four agents at a step, which has cost each of them so many seconds."""
    job = Job(experiment(*AGENTS, steps=1000), status="running")
    job.histories = load_histories(job.experiment)
    for label, spent in zip(job.labels, seconds, strict=True):
        job.histories[label].step, job.histories[label].seconds = step, spent
    job.record_time()
    return job


def test_every_agent_is_dealt_to_exactly_one_worker() -> None:
    job = Job(experiment(*AGENTS))
    for n in range(1, 8):
        hands = deal(job, {0, 1, 3}, n)
        assert len(hands) == min(n, 3)
        assert all(hands)
        assert sorted(i for hand in hands for i in hand) == [0, 1, 3]


def test_a_run_waits_until_its_memory_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(2**30)
    monkeypatch.setattr(division_module, "LEDGER", ledger)
    change = Condition()
    division, job = Division(change, Scheduler()), Job(experiment(*AGENTS))
    with change:
        ledger.enter("others", 2**30 - 1)
        division.scheduler.add_run(job)
        assert division.take() is None
        assert (division.full, job.status, division.scheduler.position(job)) == (True, "queued", 0)
        ledger.leave("others")
        share = division.take()
        assert isinstance(share, Share)
        assert share.job is job
        need = job.experiment.memory(job.max_workers) + job.experiment.server_memory()
        assert ledger.entries == {job: need}
        # no worker computes it any more
        division.withdraw(job)
        division.settle(job)
        assert not ledger.entries


def test_a_block_of_a_sweep_waits_until_its_memory_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(2**30)
    monkeypatch.setattr(division_module, "LEDGER", ledger)
    change = Condition()
    division, task = Division(change, Scheduler()), Task("a sweep", {}, lambda _: None, 2**20)
    with change:
        ledger.enter("others", 2**30 - 1)
        division.scheduler.add_task(task)
        assert (division.take(), division.full) == (None, True)
        ledger.leave("others")
        assert division.take() is task
        assert ledger.entries == {task: 2**20}
        division.settle(task)
        assert not ledger.entries


def test_a_block_of_a_sweep_states_its_memory() -> None:
    sweep = read_sweep(
        {
            "experiment": experiment("linucb", steps=200, replications=4).model_dump(mode="json"),
            "axes": [{"path": "agents.0.alpha", "values": [0.5, 1.0]}],
        }
    )
    small, large = (block_memory(sweep, Block(((0, 0),) * n)) for n in (1, 200))
    assert 0 < small < large < 8 * MAX_BYTES


def test_the_largest_states_are_dealt_to_different_workers() -> None:
    job = Job(
        experiment("random", {"kind": "neural_ucb", "hidden": [64]}, "popularity", "ensemble")
    )
    hands = deal(job, range(4), 2)
    assert [len({1, 3} & hand) for hand in hands] == [1, 1]


def test_an_idle_worker_takes_half_of_the_expected_rest() -> None:
    job = job_at(100, 1.0, 1.0, 1.0, 1.0)
    move = plan(job, [Share(job, {0, 1, 2, 3})], spare=True)
    assert move is not None
    assert move.target is None
    assert len(move.agents) == 2


def test_agents_move_to_the_worker_with_the_shortest_rest() -> None:
    job = job_at(100, 3.0, 1.0, 1.0, 0.2)
    source, target = Share(job, {0, 1, 2}), Share(job, {3})
    move = plan(job, [source, target], spare=False)
    assert move is not None
    assert (move.source, move.target) == (source, target)
    assert move.agents in ({1, 2}, {0})
    rests = sorted([27.0, 9.0, 9.0, 1.8])
    assert source.rest + target.rest == pytest.approx(sum(rests))


@pytest.mark.parametrize("spare", [False, True])
def test_no_move_costs_more_than_it_gains(spare: bool) -> None:
    almost_done = job_at(999, 1.0, 1.0, 1.0, 1.0)
    assert (
        plan(almost_done, [Share(almost_done, {0, 1}), Share(almost_done, {2, 3})], spare=spare)
        is None
    )
    even = job_at(100, 1.0, 1.0, 1.0, 1.0)
    assert plan(even, [Share(even, {0, 1}), Share(even, {2, 3})], spare=False) is None
    # the last agent of a worker stays
    assert plan(even, [Share(even, {0}), Share(even, {1})], spare=spare) is None
    assert plan(even, [], spare=spare) is None


def test_an_agent_in_training_does_not_move() -> None:
    job = job_at(100, 1.0, 1.0, 1.0, 1.0)
    job.waiting = {"LinUCB", "LinTS", "ε-greedy"}
    move = plan(job, [Share(job, {0, 1, 2, 3})], spare=True)
    assert move is not None
    assert move.agents == {3}


@pytest.mark.slow
def test_agents_that_are_computed_apart_have_the_same_bits() -> None:
    """Agents go from one process to another at different steps, and wait there for the slowest."""
    e = experiment(*AGENTS, steps=700)
    here, there = Lockstep(e, [0, 1, 2]), Lockstep(e, [3])
    for _ in range(2):
        list(here.advance(150))
    list(there.advance(400))
    state = here.state_dict([1, 2])
    for agent in (1, 2):
        here.remove(agent)
        there.add(agent, state)
    assert there.step == 300
    saved = {**here.state_dict(), **there.state_dict()}
    last = Lockstep(e)
    last.load_state_dict(saved)
    assert [h.step for h in last.histories.values()] == [300, 300, 300, 400]
    assert [h.step for h in load_histories(e, here.state_dict()).values()] == [300, 0, 0, 0]
    while not last.done:
        list(last.advance(90))
    for label, history in run(e).histories.items():
        same(last.histories[label], history)


def test_the_memory_of_shared_data_counts_once_per_process() -> None:
    e = experiment("linucb", "lints", simulator={"kind": "classification", "data": "wine"})
    shared = e.simulator_class().shared_memory(e.simulator, 1)
    # and the copy of a history in a checkpoint: two agents, so that a third process has none
    copied = e.empty_history().nbytes
    assert e.memory(2) - e.memory() == shared + copied
    assert e.memory(3) - e.memory(2) == shared
    assert e.max_processes() == 2
    assert e.memory(e.max_processes()) <= MEMORY_LIMIT


def test_the_saved_state_of_a_run_is_that_of_its_shares() -> None:
    e = experiment(*AGENTS, steps=500)
    job = Job(e)
    for agents, steps in (([0, 2], 100), ([1, 3], 250)):
        part = Lockstep(e, agents)
        list(part.advance(steps))
        job.save({k: np.asarray(v) for k, v in part.state_dict().items()})
    assert int(job.saved["step"]) == 100
    assert job.unfinished_agents() == {0, 1, 2, 3}
    assert {k.partition(".")[0] for k in job.agent_state({1, 3})} == {"1", "3"}
    again = Job.from_checkpoint(e, job.saved, "")
    assert [h.step for h in again.histories.values()] == [100, 250, 100, 250]
