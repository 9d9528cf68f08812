"""The statistics of monitors equal plain implementations and keep their levels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, norm

from bandits.base.types import FloatArray
from bandits.monitoring.feature_monitors import binned, divergence
from tests.monitoring.support import make, run, sampled


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


def test_calibration_and_weights_keep_their_levels() -> None:
    """Of 400 rows with calibrated predictions and exact weights, at the level of 5 %: between 2 %
    and 9 %.
    """
    g, R, n = np.random.default_rng(5), 400, 500
    p = g.uniform(0.1, 0.9, (n, R))
    rewards: FloatArray = (g.random((n, R)) < p).astype(np.float64)
    shown = make(5000, R)
    assert shown.samples is not None
    steps = sampled(shown, means=p, rewards=rewards, weights=g.gamma(2.0, 0.5, (n, R)))
    for kind in ("calibration", "importance_weight"):
        assert 0.02 < len(run(kind, steps, level=0.05)) / R < 0.09
    alarm = run("importance_weight", steps, level=0.9)[0]
    weights = steps.samples.weights[:, alarm.row]  # type: ignore[union-attr,index]
    assert alarm.statistic == pytest.approx(
        abs(weights.mean() - 1) / (weights.std(ddof=1) / n**0.5)
    )
    assert alarm.threshold == pytest.approx(norm.ppf(1 - 0.9 / 2))


def test_the_calibration_statistic_is_that_of_hosmer_and_lemeshow() -> None:
    steps = make(1000, 1)
    assert steps.samples is not None
    (alarm,) = run("calibration", steps, window=1000, level=1.0)
    order = np.argsort(steps.samples.means[:, 0], kind="stable")  # type: ignore[index]
    means, rewards = (
        np.split(c[order, 0], 10) for c in (steps.samples.means, steps.samples.rewards)
    )  # type: ignore[index]
    expected = sum(
        10 * (y.mean() - m.mean()) ** 2 / (m.mean() * (1 - m.mean()))
        for m, y in zip(means, rewards, strict=True)
    )
    assert alarm.statistic == pytest.approx(expected)


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
