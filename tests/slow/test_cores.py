"""Scripts and the command line: `bandits.run` hands a long run over to worker processes, to the
same bits.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import Experiment, UserError, run
from bandits.agents.context_free.popularity import Popularity
from bandits.experiments import plugins
from bandits.experiments.experiment import MEMORY_LIMIT
from bandits.experiments.lockstep import Lockstep, run_to_end
from bandits.runtime import cores, supervisor
from bandits.runtime.pool import Job, Pool
from bandits.runtime.worker_handle import WorkerProcess, start_worker
from tests.gate import Gate
from tests.support import experiment, same, wait_for

FIVE = ("linucb", "lints", "beta_ts", "random", {"kind": "epsilon_greedy", "sharing": "shared"})
RAISING = """
from bandits.agents.context_free.popularity import Popularity

scores = Popularity.scores


def raising(self, round):
    if self.streams.seed == 7200 and round.step >= 150:
        raise ZeroDivisionError("a division by zero")
    return scores(self, round)


Popularity.scores = raising
"""


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    """Have every run handed over after its first steps, and list the pools that are made."""
    made: list[Pool] = []

    class ReadyPool(Pool):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)
            wait_for(lambda: self.ready or self.broken, "its workers")

    monkeypatch.setattr(cores, "Pool", ReadyPool)
    for name, value in {"MEASURED": -1.0, "WORTH_IT": -1.0, "CHUNK_SECONDS": 0.0}.items():
        monkeypatch.setattr(cores, name, value)
    return made


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[WorkerProcess]:
    """List the worker processes that are started."""
    started: list[WorkerProcess] = []

    def start(folder: Path | None = None) -> WorkerProcess:
        started.append(start_worker(folder))
        return started[-1]

    monkeypatch.setattr(supervisor, "start_worker", start)
    return started


@pytest.fixture
def raising(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    path = tmp_path / "raising.py"
    path.write_text(RAISING, encoding="utf-8")
    monkeypatch.setenv(plugins.VARIABLE, os.pathsep.join([os.environ[plugins.VARIABLE], str(path)]))
    # restored after the test
    monkeypatch.setattr(Popularity, "scores", Popularity.scores)
    plugins.load_file(path)
    return experiment("linucb", "lints", "popularity", steps=2000, seed=7200)


def in_this_process(e: Experiment) -> dict[str, Any]:
    return dict(run(e, workers=0).histories)


def test_more_agents_than_workers_have_the_same_bits(
    pools: list[Pool], workers: list[WorkerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    follow, held = cores._follow, list[Lockstep]()

    def look(*arguments: Any) -> bool:
        held.extend(each for each in gc.get_objects() if isinstance(each, Lockstep))
        return follow(*arguments)

    monkeypatch.setattr(cores, "_follow", look)
    e = experiment(*FIVE, steps=2000)
    alone, steps = in_this_process(e), list[int]()
    assert pools == []
    spread = cores.run_to_end(e, 2, lambda step, _: steps.append(step))
    assert len(pools) == 1
    assert len(workers) == 2
    # this process has no simulators and agents beside those of its workers
    assert held == []
    assert list(spread) == list(alone) == list(e.labels)
    for label, history in alone.items():
        same(spread[label], history)
    assert steps[-1] == 2000
    wait_for(
        lambda: all(worker.returncode is not None for worker in workers), "the end of the workers"
    )


@pytest.mark.parametrize("n", [0, 2])
def test_a_finished_run_can_be_kept_with_its_state(n: int, pools: list[Pool]) -> None:
    """Whatever computed it, the state is that of all agents at the last step."""
    e, kept, lockstep = (
        experiment(*FIVE, steps=2000),
        list[Job](),
        Lockstep(experiment(*FIVE, steps=2000)),
    )
    histories = cores.run_to_end(e, n, keep=kept.append)
    assert len(pools) == n // 2
    (job,) = kept
    assert job.histories is histories
    assert (job.experiment, job.status, job.step) == (e, "finished", 2000)
    assert job.seconds > 0
    run_to_end(lockstep)
    expected = lockstep.state_dict()
    assert job.saved.keys() == expected.keys()
    for name, value in expected.items():
        if not name.endswith("seconds"):
            np.testing.assert_array_equal(job.saved[name], value, err_msg=name)


@pytest.mark.parametrize("n", [0, 2])
def test_an_agent_that_raises_ends_the_run_with_its_message(
    n: int, pools: list[Pool], raising: Experiment
) -> None:
    with pytest.raises((ZeroDivisionError, UserError), match="a division by zero"):
        cores.run_to_end(raising, n)
    assert len(pools) == n // 2
    assert all(pool._supervisor.closed for pool in pools)


@pytest.mark.parametrize("step", [20, 100], ids=["while the workers start", "while they compute"])
def test_an_interrupt_ends_the_workers(
    step: int,
    pools: list[Pool],
    workers: list[WorkerProcess],
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate.hold(7100, 100)
    if step < 100:
        monkeypatch.setattr(Pool, "ready", False)
        monkeypatch.setattr(Pool, "broken", property(lambda pool: bool(workers)))

    def interrupt(reached: int, _: int) -> None:
        if reached >= step and pools:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cores.run_to_end(experiment(*FIVE, steps=2000, seed=7100), 2, interrupt)
    assert len(pools) == 1
    wait_for(
        lambda: all(worker.returncode is not None for worker in workers), "the end of the workers"
    )


def test_a_run_whose_workers_keep_dying_ends_in_this_process(
    pools: list[Pool], workers: list[WorkerProcess], gate: Gate
) -> None:
    e = experiment(*FIVE, steps=2000, seed=7101)
    alone = in_this_process(e)
    gate.hold(7101, 100)

    def kill(step: int, _: int) -> None:
        for worker in workers if step == 100 else ():
            worker.kill()

    spread = cores.run_to_end(e, 2, kill)
    assert len(workers) > 2
    for label, history in alone.items():
        same(spread[label], history)


def test_as_many_processes_as_there_are_agents_processors_and_room() -> None:
    eight = experiment(*FIVE, "ucb1", "popularity", {"kind": "linucb", "label": "another"})
    assert [cores.processes_for(eight, n) for n in (0, 1, 2, 5, 8, 16, 64)] == [1, 1, 2, 5, 8, 8, 8]
    many = {"kind": "petshop", "n_products": 400}
    large = experiment("linucb", "lints", simulator=many, replications=16)
    large = experiment(
        "linucb",
        "lints",
        simulator=many,
        replications=int(16 * 0.4 * MEMORY_LIMIT / large.memory()),
    )
    assert large.memory(2) <= MEMORY_LIMIT < 2 * large.memory() + large.memory(2)
    # no room for its checkpoints in this process
    assert cores.processes_for(large, 16) == 1
