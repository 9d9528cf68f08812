"""Runs on several workers: the same bits as in process, through moves, deaths, pauses and other
numbers of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bandits import Experiment, run
from bandits.agents import REGISTRY as AGENTS
from bandits.contract.environments import ENVIRONMENTS, params_of
from bandits.runtime.job import Job
from bandits.runtime.pool import Pool
from bandits.simulators import REGISTRY as SIMULATORS
from tests.gate import Gate
from tests.support import STRESS, experiment, often, over, same, wait_for, workers_of

WORLDS = [name for name in ENVIRONMENTS if name in SIMULATORS or name == "two stages"]
STEPS, HELD = 120, 40
# agents of one experiment
MOST = 12


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with closing(Pool(2)) as made:
        wait_for(lambda: made._supervisor.division.idle == 2, "both workers")
        yield made


def ended(job: Job) -> Job:
    wait_for(lambda: not job.active, "the end of the run")
    return job


def equal_to_one_process(job: Job) -> None:
    assert (job.status, job.error) == ("finished", "")
    for label, history in run(job.experiment).histories.items():
        same(job.histories[label], history)


def of_all_agents(environment: str, seed: int) -> list[Experiment]:
    """Return experiments with the agents that fit, each under its first test parameters: every
    ninth, and all under ``make stress``. The contract resumes the states of all.
    """
    agents: list[dict[str, Any]] = []
    simulator = params_of(environment)
    for kind, cls in AGENTS.items():
        params = cls.test_params()[0]
        if (
            cls.requires(cls.Params(**params))
            <= ENVIRONMENTS[environment].describe(simulator).capabilities
        ):
            agents.append({"kind": kind, **params})
    agents = agents[:: often(9, 1)]
    return [
        experiment(
            *agents[i : i + MOST],
            simulator=simulator.model_dump(),
            steps=STEPS,
            replications=2,
            seed=seed + i,
        )
        for i in range(0, len(agents), MOST)
    ]


@pytest.mark.parametrize("environment", WORLDS if STRESS else WORLDS[:1])
def test_agents_have_the_same_bits_on_two_workers(pool: Pool, gate: Gate, environment: str) -> None:
    """One worker is killed in the middle, and the run is paused and resumed."""
    for e in of_all_agents(environment, 5000 + 100 * WORLDS.index(environment)):
        gate.hold(e.seed, HELD)
        job = pool.submit(e)
        wait_for(lambda job=job: "step" in job.saved, "a checkpoint", over(job))
        if len(e.agents) > 1:
            wait_for(lambda job=job: len(workers_of(pool, job)) == 2, "both workers", over(job))
        workers_of(pool, job)[-1].kill()
        wait_for(lambda job=job: job.worker_deaths == 1, "the death", over(job))
        pool.pause(job)
        gate.open(e.seed)
        pool.resume(job)
        equal_to_one_process(ended(job))


def test_an_idle_worker_helps_and_serves_the_next_visitor_at_once(pool: Pool, gate: Gate) -> None:
    for seed in (6000, 6001):
        gate.hold(seed, HELD)
    first = pool.submit(experiment("linucb", "lints", "random", steps=2000, seed=6000), "teacher")
    wait_for(lambda: len(workers_of(pool, first)) == 2, "both workers", over(first))
    second = pool.submit(experiment("linucb", "lints", steps=2000, seed=6001), "pupil")
    wait_for(lambda: second.step == HELD, "a worker for the second visitor", over(first, second))
    assert [len(workers_of(pool, job)) for job in (first, second)] == [1, 1]
    wait_for(lambda: first.step == HELD, "the first run on one worker", over(first, second))
    gate.open(6001)
    equal_to_one_process(ended(second))
    assert first.status == "running"
    gate.open(6000)
    equal_to_one_process(ended(first))


def test_a_task_of_a_sweep_gets_the_second_worker_of_a_run(pool: Pool, gate: Gate) -> None:
    gate.hold(6002, HELD)
    job = pool.submit(experiment("linucb", "lints", "random", steps=2000, seed=6002))
    wait_for(lambda: len(workers_of(pool, job)) == 2, "both workers", over(job))
    sweep = {"experiment": experiment("linucb", seed=6003).model_dump(mode="json"), "axes": []}
    sweep["axes"] = [{"path": "agents.0.alpha", "values": [0.5, 1.0]}]
    message = {"sweep": sweep, "rows": [[0, 0], [1, 0]]}
    arrays = pool.compute("a sweep", message, lambda _: None).result(timeout=240)
    assert arrays
    assert job.status == "running"
    gate.open(6002)
    equal_to_one_process(ended(job))


def test_a_run_continues_with_another_number_of_workers(pool: Pool, gate: Gate) -> None:
    e = experiment(
        "linucb", "lints", "beta_ts", {"kind": "linucb", "label": "two"}, steps=3000, seed=6004
    )
    gate.hold(6004, 1000)
    with closing(Pool(1)) as one:
        job = one.submit(e)
        wait_for(lambda: job.step == 1000, "the step", over(job))
        one.pause(job)
        wait_for(lambda: job not in one.processes, "the last checkpoint")
    gate.hold(6004, 2000)
    more = pool.submit(e, saved=job.saved)
    wait_for(
        lambda: more.step == 2000 and len(workers_of(pool, more)) == 2, "both workers", over(more)
    )
    pool.stop(more)
    wait_for(lambda: more not in pool.processes, "the last checkpoint")
    gate.open(6004)
    with closing(Pool(1)) as one:
        equal_to_one_process(ended(one.submit(e, saved=more.saved)))


def test_a_finished_run_is_extended_on_two_workers(pool: Pool) -> None:
    short = ended(pool.submit(experiment("linucb", "lints", "beta_ts", steps=1000, seed=6005)))
    equal_to_one_process(ended(pool.extend(short, 3000)))
