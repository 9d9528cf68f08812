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


def seconds(products: int) -> float:
    """Return what a row takes: 1 s with 5 products, 9 s with 50."""
    return 1 + 8 * (products - 5) / 45


class TimedExecutor(InProcessExecutor):
    """Lets every row take the seconds of its simulator on a clock of its own, and notes what is
    predicted before.
    """

    # one block at a time, so that all earlier ones are in the landscape
    workers = 0

    def __init__(self) -> None:
        self.clock = 1000.0
        # seconds left, and the clock
        self.notes: list[tuple[float | None, float]] = []
        self.job: Any = None
        # number of the block after which the sweep is stopped
        self.stop_at = 0

    def submit(self, sweep: Sweep, block: Block, on_step: Callable[[int], None]) -> Future[Arrays]:
        self.notes.append((self.job.seconds_left, self.clock))
        simulator: Any = sweep.point(block.rows[0][0]).simulator
        taken = seconds(simulator.n_products) * len(block.rows)
        arrays = compute(sweep, block)
        self.clock += taken
        if len(self.notes) == self.stop_at:
            self.job.stop()
        future: Future[Arrays] = Future()
        future.set_result({**arrays, "seconds": np.array(taken)})
        return future


def run(
    axes: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> list[tuple[float | None, float]]:
    """Run a sweep; return at the beginning of each block what was predicted, and what was left."""
    search, stop_at = more.pop("search", "grid"), more.pop("stop_at", 0)
    experiment = {
        "agents": [{"kind": "linucb"}],
        "steps": 20,
        "replications": 8,
        **more,
        "simulator": {"kind": "petshop", "n_products": 5},
    }
    sweep = sweeps.read({"experiment": experiment, "axes": axes, "search": search})
    executor = TimedExecutor()
    executor.stop_at = stop_at
    clock = SimpleNamespace(monotonic=lambda: executor.clock, time=time.time)
    monkeypatch.setattr("bandits.sweeps.manager.time", clock)
    job = executor.job = SweepJob(sweep, lambda: executor, tmp_path, lambda _: None, lambda _: None)
    for status in ("stopped", "finished") if stop_at else ("finished",):
        job.start()
        while job.active:
            time.sleep(0.01)
        assert job.status == status, job.error
    assert job.seconds_left is None
    assert executor.notes[0][0] is None
    return [(predicted, executor.clock - then) for predicted, then in executor.notes]


ALPHA = {"path": "agents.0.alpha", "low": 0.1, "high": 10, "number": 9}


def test_rows_of_each_simulator_are_expected_to_take_what_they_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run([ALPHA, {"path": "simulator.n_products", "values": [5, 50]}], tmp_path, monkeypatch)
    known = [(predicted, left) for predicted, left in found if predicted is not None]
    assert len(known) > 10  # of about 24
    for predicted, left in known:
        assert predicted == pytest.approx(left)


def test_simulators_without_rows_are_expected_to_take_what_others_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(
        [ALPHA, {"path": "simulator.n_products", "low": 5, "high": 50, "number": 5}],
        tmp_path,
        monkeypatch,
    )
    total = found[0][1]
    early = [
        (predicted, left)
        for predicted, left in found
        if predicted is not None and left > 0.5 * total
    ]
    assert early[0][1] > 0.8 * total
    for predicted, left in early:
        assert predicted == pytest.approx(left, rel=0.35)
    assert found[-1][0] == pytest.approx(found[-1][1])


def test_points_that_early_stopping_drops_take_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = [{**ALPHA, "number": 30}, {"path": "agents.0.ridge", "values": [0.01, 1000.0]}]
    found = run(axes, tmp_path, monkeypatch, search="halving", steps=200, replications=16)
    # some were dropped
    assert found[0][1] < 0.9 * 16 * 60 * seconds(5)
    assert found[-1][0] == pytest.approx(found[-1][1])


def test_one_simulator_is_predicted_from_its_first_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run([ALPHA], tmp_path, monkeypatch)
    assert [predicted for predicted, _ in found[1:]] == pytest.approx(
        [left for _, left in found[1:]]
    )


def test_what_was_computed_before_a_stop_does_not_count_as_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run([ALPHA], tmp_path, monkeypatch, stop_at=6)
    # the first block after the stop
    assert found[6][0] is None
    assert [predicted for predicted, _ in found[7:]] == pytest.approx(
        [left for _, left in found[7:]]
    )
    assert len(found) > 10
