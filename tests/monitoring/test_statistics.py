"""The statistics of monitors equal plain implementations and keep their levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, entropy

from bandits import alarms
from bandits import run as execute
from bandits.base.types import FloatArray
from bandits.monitoring.feature_monitors import binned, divergence
from tests.monitoring.support import make, run, sampled
from tests.support import experiment


def test_bins_keep_distinct_values_apart() -> None:
    values = np.repeat([0.0, 1.0, 2.0], [50, 30, 20])[:, None, None]
    edges = np.moveaxis(np.quantile(values, np.arange(1, 10) / 10, axis=0), 0, -1)
    counts = binned(values, edges)[0, 0]
    assert sorted(counts[counts > 0].tolist()) == [20, 30, 50]
    other = binned(np.array([-1.0, 0.5, 1.5, 3.0])[:, None, None], edges)[0, 0]
    assert (other[counts > 0] == 0).all()
    assert other.sum() == 4


def test_the_divergence_is_that_of_smoothed_shares() -> None:
    now, before = np.array([[[10, 30, 0, 0]]]), np.array([[[40, 20, 20, 0]]])
    kl, statistic, bound = divergence(now, before, 1e-4)
    p, q = np.array([10.5, 30.5, 0.5]) / 41.5, np.array([40.5, 20.5, 20.5]) / 81.5
    expected = float((p * np.log(p / q)).sum())
    assert kl[0, 0] == pytest.approx(expected)
    assert statistic[0, 0] == pytest.approx(2 * 40 * 80 / 120 * expected)
    assert bound[0, 0] == pytest.approx(chi2.ppf(1 - 1e-4, 2))


def test_features_are_compared_with_the_first_windows() -> None:
    """With two windows of 500 steps as the reference, the third is the first that is judged."""
    steps = make(1500, 1)
    assert steps.samples is not None
    context = steps.samples.context
    assert context is not None
    (alarm,) = run("feature_drift", steps, window=500, level=1.0)
    edges = np.moveaxis(np.quantile(context[:100], np.arange(1, 10) / 10, axis=0), 0, -1)
    kl, statistic, _ = divergence(binned(context[100:], edges), binned(context[:100], edges), 0.5)
    assert (alarm.step, alarm.threshold) == (1500, 0.0)
    assert alarm.statistic in statistic
    assert f": KL {kl[statistic == alarm.statistic][0]:.3g}, " in alarm.sentence


def test_features_without_drift_raise_alarms_at_about_the_level() -> None:
    """Of 20,000 windows and features, at the level of 1 %: between 0.3 % and 2 %."""
    g = np.random.default_rng(3)
    before, now = g.normal(size=(200, 20_000, 1)), g.normal(size=(100, 20_000, 1))
    edges = np.moveaxis(np.quantile(before, np.arange(1, 10) / 10, axis=0), 0, -1)
    _, statistic, bound = divergence(binned(now, edges), binned(before, edges), 0.01)
    assert 0.003 < (statistic > bound).mean() < 0.02


@pytest.mark.parametrize("share", [0.02, 0.05, 0.3])
def test_rare_values_raise_no_more_than_three_times_the_level(share: float) -> None:
    """Of 30,000 windows of a feature that is 1 in a share of the steps, at the level of 0.1 %."""
    g = np.random.default_rng(4)
    before, now = ((g.random((n, 30_000, 1)) < share).astype(float) for n in (200, 100))
    edges = np.moveaxis(np.quantile(before, np.arange(1, 10) / 10, axis=0), 0, -1)
    _, statistic, bound = divergence(binned(now, edges), binned(before, edges), 0.001)
    assert (statistic > bound).mean() < 0.003


@pytest.mark.parametrize("rate", [0.005, 0.02, 0.3, 0.97])
def test_calibration_keeps_its_level_for_rare_clicks_too(rate: float) -> None:
    """Of 600 rows with right predictions, at the level of 5 %: at most that, plus three standard
    errors; most rows with predictions that are wrong by .15.
    """
    g, R, n = np.random.default_rng(5), 600, 500
    p = rate * g.uniform(0.5, 1.0, (n, R))
    rewards: FloatArray = (g.random((n, R)) < p).astype(np.float64)
    steps = make(5000, R)
    most = 0.05 + 3 * (0.05 * 0.95 / R) ** 0.5
    assert len(run("calibration", sampled(steps, means=p, rewards=rewards), level=0.05)) / R < most
    wrong = sampled(steps, means=np.abs(p - 0.15), rewards=rewards)
    assert len(run("calibration", wrong, level=0.05)) / R > 0.5


def test_the_calibration_statistic_is_the_divergence_of_each_tenth() -> None:
    steps = make(1000, 1)
    assert steps.samples is not None
    steps = sampled(steps, means=steps.samples.means - 0.4)  # type: ignore[operator]
    assert steps.samples is not None
    (alarm,) = run("calibration", steps, window=1000)
    order = np.argsort(steps.samples.means[:, 0], kind="stable")  # type: ignore[index]
    means, rewards = (
        np.split(c[order, 0], 10) for c in (steps.samples.means, steps.samples.rewards)
    )  # type: ignore[index]
    expected = sum(
        10 * entropy([y.mean(), 1 - y.mean()], [m.mean(), 1 - m.mean()])
        for m, y in zip(means, rewards, strict=True)
    )
    assert alarm.statistic == pytest.approx(expected)


@pytest.mark.parametrize(("K", "epsilon"), [(50, 0.01), (50, 0.05), (10, 0.02), (5, 0.5)])
def test_importance_weights_keep_their_level_for_rare_large_ones_too(
    K: int, epsilon: float
) -> None:
    """Of 1,500 rows with right probabilities, at the level of 1 %: at most that, plus three
    standard errors.
    """
    g, R, n = np.random.default_rng(6), 1500, 500
    p = np.array([1 - epsilon + epsilon / K, epsilon / K])
    explores = g.random((n, R)) >= p[0]
    law = [1.0, (1 / p[0] + (K - 1) / p[1]) / K**2 - 1, 1 / (K * p[1])]
    weights = 1 / (K * p[explores.astype(int)])
    columns = {"weights": weights, "weight_law": np.broadcast_to(law, (n, R, 3))}
    steps = sampled(make(5000, R), **columns)
    found = run("importance_weight", steps, level=0.01)
    assert len(found) / R < 0.01 + 3 * (0.01 * 0.99 / R) ** 0.5


def test_the_bound_of_importance_weights_is_that_of_freedman() -> None:
    """The probability of the largest weight is stated five times too small."""
    n, steps = 500, make(5000, 1)
    weights = np.where(np.arange(n) % 5 == 0, 4.0, 0.25)[:, None]
    law = np.broadcast_to([1.0, 0.75, 4.0], (n, 1, 3))
    (alarm,) = run("importance_weight", sampled(steps, weights=2 * weights, weight_law=law))
    part = 3 * math.log(2e4) / 3
    bound = (part + math.sqrt(part**2 + 2 * 0.75 * n * math.log(2e4))) / n
    assert alarm.statistic == pytest.approx(1.0)
    assert alarm.threshold == pytest.approx(bound)
    assert alarm.sentence.startswith(
        "The mean importance weight is 2, 1 above its expected value 1 (bound 0."
    )


def test_candidates_with_probability_0_raise_no_alarm() -> None:
    """A fallback to one item around an agent that does not draw: others are never shown."""
    agent = {"kind": "linucb", "guards": [{"kind": "fallback", "to": "default", "p99_ms": 50}]}
    e = experiment(agent, steps=2000, replications=4)
    result = execute(e, workers=0)
    assert alarms(result, "LinUCB", [{"kind": "importance_weight", "window": 1000}]) == []


def test_the_correlation_is_the_largest_of_all_features() -> None:
    steps = make(2000, 1)
    assert steps.samples is not None
    g = np.random.default_rng(2)
    y = steps.samples.rewards[:, 0]
    features = np.stack([np.ones(200), -y + g.normal(size=200), g.normal(size=200)], axis=1)
    (alarm,) = run(
        "correlation", sampled(steps, features=features[:, None]), window=2000, lowest=1.0
    )
    assert alarm.statistic == pytest.approx(abs(np.corrcoef(features[:, 1], y)[0, 1]))
