"""docs/REPRODUCED.md on formulas and listings of the sources: verdicts follow from the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.results.metrics import Estimate
from benchmarks.reproduction import sources
from benchmarks.reproduction.sources import (
    Equality,
    better,
    estimate,
    printed_objective,
    rows,
    within,
)


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(60, 4)), generator.integers(0, 2, size=60).astype(float)


def test_verdicts_follow_from_the_differences() -> None:
    assert within("a", "b", 1e-9, 1e-8).holds
    assert not within("a", "b", 2e-8, 1e-8).holds
    assert [
        row[-1] for row in rows([Equality("a", "b", "c", True), Equality("a", "b", "c", False)])
    ] == [
        "holds",
        "**differs**",
    ]
    assert sources.difference(np.array([1e3, 0.0]), np.array([1.001e3, 0.01])) == pytest.approx(
        0.01
    )


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(1.0, 9.0, "the log loss"), (-9.0, -1.0, "the squared loss"), (-1.0, 9.0, "undecided")],
)
def test_the_better_loss_follows_from_the_interval(low: float, high: float, expected: str) -> None:
    assert better(Estimate((low + high) / 2, low, high)) == expected


def test_the_rewards_cancel_in_the_printed_estimate_alone() -> None:
    x, rewards = data()
    theta = estimate(x, rewards)
    p = 1 / (1 + np.exp(-x @ theta))
    np.testing.assert_allclose(x.T @ (rewards - p), sources.RIDGE * theta, atol=1e-10)
    at = np.ones(4)
    assert printed_objective(at, x, rewards) == pytest.approx(
        printed_objective(at, x, 1 - rewards), abs=1e-12
    )
    assert np.abs(theta - estimate(x, 1 - rewards)).max() > 0.01


def test_figures_that_the_sources_print() -> None:
    assert sources.listing_bonuses().holds
    assert sources.gradient_memory().holds
