"""The metrics by which sweeps rank points, from known histories."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.experiments.history import History
from bandits.experiments.trace import Trace
from bandits.sweeps.analysis.run_metrics import METRICS, final_start, metric_of
from tests.support import experiment

T, R = 1000, 3


def known() -> History:
    """Return a history in which row r is worth r / 10 per step, and every click comes in the last tenth."""
    worth = np.broadcast_to(np.arange(R) / 10, (T, R))
    clicks = np.repeat((np.arange(T) >= 900).astype(float)[:, None], R, axis=1)
    best, random = np.full((T, R), 0.5), np.full((T, R), 0.1)
    found = History(T, R, 5, 0)
    shown, segments = np.zeros((T, R, 1), np.int64), np.zeros((T, R), np.int64)
    alive = np.ones(R, np.bool_)
    found.extend(Trace(0, shown, segments, clicks, best, worth, best, random, alive))
    return found


def test_metrics_of_a_known_history() -> None:
    history = known()
    actual = {name: metric.of(history) for name, metric in METRICS.items()}
    np.testing.assert_allclose(actual["click_rate"], 0.1)
    np.testing.assert_allclose(actual["late_click_rate"], 0.5)  # 100 clicks in the last fifth, 200 steps
    np.testing.assert_allclose(actual["pseudo_regret"], T * (0.5 - np.arange(R) / 10), rtol=1e-9)
    np.testing.assert_allclose(actual["learned"], (np.arange(R) / 10 - 0.1) / 0.4, atol=1e-9)
    assert [metric.sign for metric in METRICS.values()] == [1, 1, -1, 1]


def test_the_final_part_has_at_least_one_interval() -> None:
    assert final_start(np.array([0, 250, 500, 750, 1000])) == 3
    assert final_start(np.array([0, 20])) == 0
    assert final_start(np.arange(0, 1001, 100)) == 8


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("petshop", {name: (metric.title, metric.unit, metric.gap_unit) for name, metric in METRICS.items()}),
        ("wheel", {
            "click_rate": ("Reward per step", "points per step", "points per step"),
            "late_click_rate": ("Final reward per step", "points per step, last fifth of the run", "points per step"),
            "pseudo_regret": ("Cumulative regret", "expected points lost", "expected points"),
        }),
        ("classification", {
            "click_rate": ("Share of right answers", "right answers per step", "right answers per step"),
        }),
    ],
)  # fmt: skip
def test_metrics_have_the_words_of_the_simulator(kind: str, named: dict[str, tuple[str, ...]]) -> None:
    for name, words in named.items():
        metric = metric_of(experiment("random", simulator={"kind": kind}), name)
        assert (metric.title, metric.unit, metric.gap_unit) == words
        assert (metric.sign, metric.of) == (METRICS[name].sign, METRICS[name].of)
