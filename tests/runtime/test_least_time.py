"""Runs that cannot end within the time limit are refused by arithmetic, and no run that ended would
have been.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from bandits import Experiment, UserError, run
from bandits.experiments.presets import presets
from bandits.runtime.least_time import least_seconds, require_end
from bandits.runtime.supervisor import TIME_LIMIT
from tests.support import experiment

DEEP: dict[str, Any] = {"hidden": [1024] * 4, "every": 1, "updates": 10_000}


@pytest.fixture(autouse=True)
def _without_a_graphics_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITS_DEVICE", "cpu")


@pytest.mark.parametrize(
    "e",
    [
        experiment({"kind": "neural_linear_ts", **DEEP}, steps=1000),
        experiment({"kind": "neural_ucb", **DEEP, "covariance": "diagonal"}, steps=1000),
        experiment("random", "ucb1", steps=10_000_000, replications=4096),
    ],
)
def test_a_run_that_cannot_end_is_refused(e: Experiment) -> None:
    with pytest.raises(UserError, match="cannot end within 30 minutes, the limit for one run"):
        require_end(e, 16, TIME_LIMIT)


def test_presets_and_long_runs_are_accepted() -> None:
    for preset in presets().values():
        require_end(preset.experiment, 1, TIME_LIMIT / 100)
    require_end(experiment("linucb", steps=10_000_000, replications=32), 1, TIME_LIMIT)


@pytest.mark.parametrize("training", ["newest", "replay", "everything"])
def test_no_run_takes_less_than_the_bound(training: str) -> None:
    agent = {
        "kind": "neural_greedy",
        "hidden": [128, 128],
        "training": training,
        "every": 5,
        "updates": 20,
    }
    e = experiment(agent, steps=200, replications=2)
    began = time.process_time()
    run(e)
    assert least_seconds(e, 1) < time.process_time() - began
