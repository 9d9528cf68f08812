"""Statistical tests with teeth: thresholds from theory, seeds fixed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from bandits.agents.linear.base import LinearAgent
from bandits.base.types import FloatArray
from tests.contract import worlds

SIGMA, RIDGE, D = 0.5, 2.0, 4
RUNS = 2000


def calibration(believed: float) -> float:
    """Distance (Kolmogorov, Smirnov) of the posterior from the truth over runs whose theta comes from the prior.

    If theta ~ N(0, sigma^2 / ridge I), then (theta - mu)' A (theta - mu) / sigma^2 is chi-square whatever the
    policy chose to look at, so its quantile is uniform.
    """
    options = {"layout": "per_row", "reward": "gaussian", "n_arms": 3, "noise": SIGMA, "scale": SIGMA / RIDGE**0.5}
    quantiles: list[FloatArray] = []
    for start in range(0, RUNS, 500):
        lane = worlds.make(
            "lints", rows=range(start, start + 500), options={**options, "n_features": D},
            sharing="shared", ridge=RIDGE, sigma2=believed**2,
        )  # fmt: skip
        lane.advance(200)
        world, agent = lane.simulator, lane.agent
        assert isinstance(world, worlds.Linear)
        assert isinstance(agent, LinearAgent)
        error = world.theta - agent.model.theta[:, 0]
        distance = np.einsum("ri,rij,rj->r", error, agent.model.A[:, 0], error)
        quantiles.append(chi2.cdf(distance / believed**2, D))
    return float(kstest(np.concatenate(quantiles), "uniform").statistic)


def test_lints_knows_how_much_it_knows() -> None:
    assert calibration(SIGMA) < 2.226 / RUNS**0.5


def test_calibration_notices_a_doubled_sigma() -> None:
    assert calibration(2 * SIGMA) > 0.3


def growth(kind: str, **params: float | str) -> float:
    """Slope of log regret against log step over the second half of the decades, mean of the rows."""
    options = {"reward": "gaussian", "n_arms": 5, "noise": 0.5}
    trace = worlds.make(kind, rows=range(8), seed=3, options=options, **params).advance(10_000)
    regret = (trace.best_value - trace.value).cumsum(axis=0).mean(axis=1)
    steps = np.unique(np.geomspace(200, 10_000, 60).astype(int))
    return float(np.polyfit(np.log(steps), np.log(regret[steps - 1]), 1)[0])


@pytest.mark.parametrize("sharing", ["shared", "per_arm", "hybrid"])
def test_regret_of_optimism_and_thompson_flattens(sharing: str) -> None:
    assert growth("linucb", sharing=sharing, alpha=1.0) < 0.6
    assert growth("lints", sharing=sharing, sigma2=0.25) < 0.6


def test_regret_of_chance_is_a_straight_line() -> None:
    assert abs(growth("random") - 1) < 0.05
