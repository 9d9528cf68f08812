"""A worker that does not read or write: the others are served, its runs end or go on elsewhere."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from bandits import run
from bandits.experiments.lockstep import Lockstep
from bandits.runtime import supervisor
from bandits.runtime.pool import Pool
from bandits.runtime.worker import HEARTBEAT
from bandits.runtime.worker_handle import WorkerProcess, start_worker
from tests.gate import Gate
from tests.support import experiment, over, same, wait_for, workers_of


def test_a_large_state_for_a_suspended_worker_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers: list[WorkerProcess] = []
    start = start_worker

    def start_and_keep(folder: Path | None = None) -> WorkerProcess:
        workers.append(start(folder))
        return workers[-1]

    monkeypatch.setattr(supervisor, "start_worker", start_and_keep)
    e = experiment(
        "lints",
        "linucb",
        simulator={"kind": "petshop", "n_products": 400},
        replications=8,
        seed=7000,
    )
    lockstep = Lockstep(e)
    list(lockstep.advance(100))
    saved = {k: np.asarray(v) for k, v in lockstep.state_dict().items()}
    # far more than a pipe holds
    for agent in "01":
        assert sum(v.nbytes for k, v in saved.items() if k.startswith(agent)) > 2**20
    with closing(Pool(2)) as pool:
        assert pool.starting == 2
        wait_for(lambda: pool.ready, "both workers")
        assert pool.starting == 0
        suspended, _ = workers
        os.kill(suspended.pid, signal.SIGSTOP)
        try:
            Thread(target=pool.submit, args=(e,), kwargs={"saved": saved}, daemon=True).start()
            wait_for(lambda: e.hash in pool._jobs, "the run")
            job = pool._jobs[e.hash]
            wait_for(
                lambda: max((h.step for h in job.histories.values()), default=0) == 300,
                "the other agent",
            )
            assert pool._change.acquire(timeout=60)
            pool._change.release()
            assert job.status == "running"
            wait_for(lambda: len(workers_of(pool, job)) == 1, "the other worker to be free")
            after = pool.submit(experiment(seed=7001))
            wait_for(lambda: not after.active, "a run after it", over(job))
            assert after.status == "finished"
        finally:
            suspended.kill()
        wait_for(lambda: not job.active, "the end of the run")
        assert (job.status, job.worker_deaths) == ("finished", 1)
    for label, history in run(e).histories.items():
        same(job.histories[label], history)


def test_the_time_limit_ends_a_run_whose_worker_reports_nothing(
    monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    gate.hold(7002, 100)
    with closing(Pool()) as pool:
        job = pool.submit(experiment(seed=7002))
        wait_for(lambda: gate.stands(7002), "the held run", over(job))
        (worker,) = workers_of(pool, job)
        os.kill(worker.pid, signal.SIGSTOP)
        # the run after it may take its time
        with monkeypatch.context() as limited:
            limited.setattr(supervisor, "TIME_LIMIT", 0.5)
            wait_for(lambda: not job.active, "the end of the run")
        assert job.error == "stopped after 0 minutes, the limit for one run"
        # the only worker has been replaced
        after = pool.submit(experiment(seed=7003))
        wait_for(lambda: not after.active, "a run after it")
        assert after.status == "finished"


def test_a_worker_without_a_sign_of_life_is_replaced(
    monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    e = experiment(seed=7004)
    gate.hold(7004, 100)
    with closing(Pool()) as pool:
        job = pool.submit(e)
        wait_for(lambda: gate.stands(7004), "the held run", over(job))
        (worker,) = workers_of(pool, job)
        os.kill(worker.pid, signal.SIGSTOP)
        gate.open(7004)
        monkeypatch.setattr(supervisor, "SILENCE", 4 * HEARTBEAT)
        wait_for(lambda: not job.active, "the end of the run")
        assert (job.status, job.worker_deaths) == ("finished", 1)
    for label, history in run(e).histories.items():
        same(job.histories[label], history)
