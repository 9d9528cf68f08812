"""The predicted time of a sweep whose rows take longer in one simulator than in another."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bandits import sweeps
from bandits.base.files import Arrays
from bandits.sweeps import Sweep
from bandits.sweeps.blocks import Block, compute
from bandits.sweeps.execution.executors import InProcessExecutor
from bandits.sweeps.manager import SweepJob

SECONDS = {5: 1.0, 50: 9.0}  # of a row, by products


class TimedExecutor(InProcessExecutor):
    """Lets every row take the seconds of its simulator on a clock of its own, and notes what is predicted before."""

    workers = 0  # one block at a time, so that all earlier ones are in the landscape

    def __init__(self) -> None:
        self.clock, self.left = 1000.0, 0.0
        self.predicted: list[tuple[float | None, float]] = []
        self.job: Any = None

    def submit(self, sweep: Sweep, block: Block, on_step: Callable[[int], None]) -> Future[Arrays]:
        self.predicted.append((self.job.seconds_left, self.left))
        simulator: Any = sweep.point(block.rows[0][0]).simulator
        seconds = SECONDS[simulator.n_products] * len(block.rows)
        arrays = compute(sweep, block)
        self.clock += seconds
        self.left -= seconds
        future: Future[Arrays] = Future()
        future.set_result({**arrays, "seconds": np.array(seconds)})
        return future


def run(axes: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TimedExecutor:
    experiment = {"agents": [{"kind": "linucb"}], "steps": 20, "replications": 6,
                  "simulator": {"kind": "petshop", "n_products": 5}}  # fmt: skip
    sweep = sweeps.read({"experiment": experiment, "axes": axes})
    executor = TimedExecutor()
    products: list[Any] = [point.simulator for point in sweep.points]
    executor.left = sum(6 * SECONDS[each.n_products] for each in products)
    clock = SimpleNamespace(monotonic=lambda: executor.clock, time=time.time)
    monkeypatch.setattr("bandits.sweeps.manager.time", clock)
    job = executor.job = SweepJob(sweep, lambda: executor, tmp_path, lambda _: None)
    job.start()
    while job.active:
        time.sleep(0.01)
    assert job.status == "finished", job.error
    assert job.seconds_left is None
    return executor


def test_rows_of_each_simulator_are_expected_to_take_what_they_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = [
        {"path": "agents.0.alpha", "low": 0.1, "high": 10, "number": 9},
        {"path": "simulator.n_products", "values": [5, 50]},
    ]
    predicted = run(axes, tmp_path, monkeypatch).predicted
    known = [(found, left) for found, left in predicted if found is not None]
    assert predicted[0][0] is None
    assert len(known) > 10  # of about 24
    for found, left in known:
        assert found == pytest.approx(left)


def test_one_simulator_is_predicted_from_its_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predicted = run([{"path": "agents.0.alpha", "low": 0.1, "high": 10, "number": 9}], tmp_path, monkeypatch).predicted
    assert predicted[0][0] is None
    assert [found for found, _ in predicted[1:]] == pytest.approx([left for _, left in predicted[1:]])
