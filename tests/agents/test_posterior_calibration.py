"""Statistical tests of posteriors and regret: thresholds from theory, fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from bandits.agents.linear.base import LinearAgent
from bandits.base.types import FloatArray
from tests.contract import worlds

SIGMA, RIDGE, D = 0.5, 2.0, 4
RUNS = 1000


def calibration(assumed_sigma: float) -> float:
    """Return the Kolmogorov-Smirnov distance of posterior quantiles from uniform.

    Theta is drawn from the prior.

    If theta ~ N(0, sigma^2 / ridge I), then (theta - mu)' A (theta - mu) / sigma^2 is chi-square
    whatever the policy chose to observe, so its quantile is uniform."""
    options = {
        "layout": "per_row",
        "reward": "gaussian",
        "n_arms": 3,
        "noise": SIGMA,
        "scale": SIGMA / RIDGE**0.5,
    }
    quantiles: list[FloatArray] = []
    for start in range(0, RUNS, 500):
        lane = worlds.make(
            "lints",
            rows=range(start, start + 500),
            options={**options, "n_features": D},
            sharing="shared",
            ridge=RIDGE,
            sigma2=assumed_sigma**2,
        )
        lane.advance(200)
        simulator, agent = lane.simulator, lane.agent
        assert isinstance(simulator, worlds.Linear)
        assert isinstance(agent, LinearAgent)
        error = simulator.theta - agent.model.theta[:, 0]
        distance = np.einsum("ri,rij,rj->r", error, agent.model.A[:, 0], error)
        quantiles.append(chi2.cdf(distance / assumed_sigma**2, D))
    return float(kstest(np.concatenate(quantiles), "uniform").statistic)


def test_the_posterior_of_lints_is_calibrated() -> None:
    assert calibration(SIGMA) < 2.226 / RUNS**0.5


@pytest.mark.slow
def test_calibration_detects_a_doubled_sigma() -> None:
    assert calibration(2 * SIGMA) > 0.3


def growth(kind: str, **params: float | str) -> float:
    """Return the slope of log regret against log step between steps 200 and 10,000, averaged over
    rows.
    """
    options = {"reward": "gaussian", "n_arms": 5, "noise": 0.5}
    trace = worlds.make(kind, rows=range(8), seed=3, options=options, **params).advance(10_000)
    regret = (trace.best_value - trace.value).cumsum(axis=0).mean(axis=1)
    steps = np.unique(np.geomspace(200, 10_000, 60).astype(int))
    return float(np.polyfit(np.log(steps), np.log(regret[steps - 1]), 1)[0])


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["shared", "per_arm", "hybrid"])
def test_regret_of_ucb_and_thompson_sampling_is_sublinear(sharing: str) -> None:
    assert growth("linucb", sharing=sharing, alpha=1.0) < 0.6
    assert growth("lints", sharing=sharing, sigma2=0.25) < 0.6


def test_regret_of_random_choice_is_linear() -> None:
    assert abs(growth("random") - 1) < 0.05
