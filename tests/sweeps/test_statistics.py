"""Statistics of sweeps against their definitions, computed point by point."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.sweeps.analysis.best_region import compare_with_leader
from bandits.sweeps.analysis.importance import position
from bandits.sweeps.analysis.statistics import noise_variance, row_mean, row_variance, sobol_index
from bandits.sweeps.axis import Axis


def incomplete() -> np.ndarray:
    """Return numbers of 5 points and 6 replications, of which some are missing."""
    numbers = np.random.default_rng(1).normal(size=(5, 6))
    numbers[1, 2:], numbers[2, 1:], numbers[3] = np.nan, np.nan, np.nan
    return numbers


def test_means_and_variances_ignore_missing_replications() -> None:
    numbers = incomplete()
    for actual, known in zip(
        zip(row_mean(numbers), row_variance(numbers), strict=True), numbers, strict=True
    ):
        found = known[np.isfinite(known)]
        mean = found.mean() if len(found) else np.nan
        variance = found.var(ddof=1) if len(found) > 1 else np.nan
        assert actual == pytest.approx((mean, variance), nan_ok=True)


def test_noise_is_the_mean_squared_standard_error_without_common_effects() -> None:
    numbers = incomplete() + 10 * np.arange(6)
    centred = numbers - np.nanmean(numbers, axis=0)
    known = [row[np.isfinite(row)] for row in centred]
    expected = np.mean([row.var(ddof=1) / len(row) for row in known if len(row) > 1])
    assert noise_variance(numbers) == pytest.approx(expected)
    assert noise_variance(np.full((2, 3), np.nan)) == 0


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_sobol_index_is_the_variance_of_the_profile_less_its_noise(noise: float) -> None:
    grid = np.random.default_rng(2).normal(size=(3, 4, 5)) + 3 * np.arange(4)[:, None]
    profile = np.array([grid[:, j].mean() for j in range(4)])
    # each of 4 means is one of 15 points, and one degree of freedom is lost
    of_profile = noise / 15 * 3 / 4
    of_grid = noise * 59 / 60
    expected = (profile.var() - of_profile) / (grid.var() - of_grid)
    assert sobol_index(grid, (0, 2), noise) == pytest.approx(expected)
    assert sobol_index(np.ones((3, 4)), (1,), noise) == 0


def test_a_point_that_is_better_than_the_leader_stays_in_the_region() -> None:
    """The leader has the most replications; another point can be better in the shared ones."""
    gaps = np.array(
        [[0.0] * 8, [1.0, 1.1, 0.9, 1.0, np.nan, np.nan, np.nan, np.nan], [-1.0, -1.1] * 4]
    )
    actual = compare_with_leader(gaps, 0, np.ones(3, np.bool_), 0.05)
    assert actual.region.tolist() == [True, True, False]
    assert actual.half[0] == 0
    # the interval excludes zero
    assert actual.half[1] < 1.0


def test_positions_run_from_the_low_to_the_high_end_on_the_scale_of_a_range() -> None:
    log = Axis(path="agents.0.alpha", low=0.1, high=10, scale="log")
    linear = Axis(path="agents.0.alpha", low=2, high=10)
    assert [position(log, v) for v in (0.1, 1, 10)] == pytest.approx([0, 0.5, 1])
    assert [position(linear, v) for v in (2, 4, 10)] == pytest.approx([0, 0.25, 1])
    assert position(Axis(path="agents.0.alpha", values=(3, 1, 2)), 1) == 1
