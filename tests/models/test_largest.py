"""Probabilities of being the largest equal closed forms, plain integrals and frequencies of
draws.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, ndtr
from scipy.stats import beta as beta_law
from scipy.stats import norm

from bandits.base.types import FloatArray
from bandits.models.largest import beta_largest, normal_largest
from tests.support import often


def everything(values: FloatArray) -> Any:
    return np.ones(values.shape, np.bool_)


def scattered(rows: int, K: int, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Means and deviations of very different sizes."""
    generator = np.random.default_rng(seed)
    return generator.normal(size=(rows, K)), np.exp(generator.normal(size=(rows, K)) * 3 - 1)


def beta_parameters(rows: int, K: int, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(seed)
    a, b = np.exp(3 * generator.normal(size=(2, rows, K)))
    return a + 0.1, b + 0.5


def test_two_normals_equal_the_closed_form() -> None:
    mean, deviation = scattered(300, 2)
    expected = ndtr((mean[:, 0] - mean[:, 1]) / np.hypot(*deviation.T))
    actual = normal_largest(mean, deviation, everything(mean))
    np.testing.assert_allclose(actual, np.stack([expected, 1 - expected], axis=1), atol=1e-11)


def beta_above(a: int, b: int, c: float, d: float) -> float:
    """P(Beta(a, b) > Beta(c, d)), b an integer: 1 - sum over i < b of B(c + a + i, d + b - 1 - i)
    n_i / B(c, d).
    """
    n = a + b - 1
    below = sum(
        comb(n, j) * np.exp(betaln(c + j, d + n - j) - betaln(c, d)) for j in range(a, n + 1)
    )
    return float(1 - below)


@pytest.mark.parametrize("first", [(1, 1), (2, 5), (30, 3), (1, 80)])
@pytest.mark.parametrize("second", [(1, 1), (3, 2), (0.1, 0.5), (200, 7)])
def test_two_betas_equal_the_closed_form(
    first: tuple[int, int], second: tuple[float, float]
) -> None:
    """P(X <= y) is a binomial tail where the parameters of X are integers.

    Its mean over y ~ Beta(c, d) is a sum.
    """
    a, b = np.array([[first[0], second[0]]], float), np.array([[first[1], second[1]]], float)
    actual = beta_largest(a, b, everything(a))
    np.testing.assert_allclose(
        actual[0], [beta_above(*first, *second), 1 - beta_above(*first, *second)], atol=1e-9
    )


@pytest.mark.parametrize("K", [1, 2, 10, 60])
def test_probabilities_sum_to_one_before_they_are_divided_by_their_sum(K: int) -> None:
    (mean, deviation), (a, b) = scattered(50, K), beta_parameters(50, K)
    for actual in (
        normal_largest(mean, deviation, everything(mean), normalised=False),
        beta_largest(a, b, everything(a), normalised=False),
    ):
        assert (actual >= 0).all()
        np.testing.assert_allclose(actual.sum(axis=1), 1, rtol=0, atol=1e-10)
    a, b = np.random.default_rng(1).random((2, 50, K)) * 1e6 + 1
    np.testing.assert_allclose(
        beta_largest(a, b, everything(a), normalised=False).sum(axis=1), 1, rtol=0, atol=1e-7
    )
    np.testing.assert_allclose(beta_largest(a, b, everything(a)).sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("K", [2, 20, 200])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_probabilities_of_similar_variables_sum_to_one(K: int, spread: float) -> None:
    """Their maximum rises steeply, the more of them there are."""
    mean = spread * np.random.default_rng(K).normal(size=(5, K))
    actual = normal_largest(mean, np.ones((5, K)), everything(mean), normalised=False)
    np.testing.assert_allclose(actual.sum(axis=1), 1, rtol=0, atol=1e-9)


@pytest.mark.parametrize("law", ["normal", "beta"])
def test_probabilities_equal_a_plain_integral(law: str) -> None:
    for seed in range(2):
        mean, deviation = np.random.default_rng(seed).uniform(0.3, 1.5, (2, 1, 5))
        if law == "normal":
            laws: list[Any] = [norm(m, s) for m, s in zip(mean[0], deviation[0], strict=True)]
            actual = normal_largest(mean, deviation, everything(mean))
        else:
            mean, deviation = 4 * mean, 9 * deviation
            laws = [beta_law(a, b) for a, b in zip(mean[0], deviation[0], strict=True)]
            actual = beta_largest(mean, deviation, everything(mean))
        low, high = (-12.0, 14.0) if law == "normal" else (0.0, 1.0)
        for a, own in enumerate(laws):
            others = [each for j, each in enumerate(laws) if j != a]
            expected = quad(
                lambda x: own.pdf(x) * np.prod([o.cdf(x) for o in others]),  # noqa: B023
                low,
                high,
                limit=200,
            )[0]
            assert actual[0, a] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("law", ["normal", "beta"])
def test_identical_variables_have_equal_probabilities(law: str) -> None:
    ones = np.ones((1, 40))
    for p, q in ((0.1, 0.5), (1, 1), (1e4, 3), (1e-3, 1e-9)):
        if law == "beta" and q < 0.1:
            continue
        largest = normal_largest if law == "normal" else beta_largest
        np.testing.assert_allclose(largest(p * ones, q * ones, everything(ones)), 1 / 40, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "beta"])
@pytest.mark.parametrize("K", [2, 10, 50])
def test_probabilities_are_the_frequencies_of_draws(law: str, K: int) -> None:
    """100,000 draws in 4 rows, 400,000 under ``make stress``: |z| < 5 for each of up to 200
    frequencies, all 24 cells together included.
    """
    n, generator = often(100_000, 400_000), np.random.default_rng(K)
    first, second = scattered(4, K, seed=K) if law == "normal" else beta_parameters(4, K, seed=K)
    p = (normal_largest if law == "normal" else beta_largest)(first, second, everything(first))
    for r in range(4):
        counts = np.zeros(K)
        for _ in range(8):
            shape = (n // 8, K)
            drawn = generator.normal(first[r], second[r], shape) if law == "normal" else None
            drawn = generator.beta(first[r], second[r], shape) if drawn is None else drawn
            counts += np.bincount(drawn.argmax(axis=1), minlength=K)
        error = np.sqrt(n * p[r] * (1 - p[r]))
        assert (np.abs(counts - n * p[r]) <= 5 * error + 5).all()


def test_unavailable_variables_take_no_part() -> None:
    mean, deviation = scattered(20, 6)
    a, b = beta_parameters(20, 6)
    available = np.random.default_rng(3).random((20, 6)) < 0.5
    available[:, 2] = True
    bad_mean, bad_a = np.where(available, mean, np.nan), np.where(available, a, np.nan)
    for actual, largest, x, y in (
        (normal_largest(bad_mean, deviation, available), normal_largest, mean, deviation),
        (beta_largest(bad_a, b, available), beta_largest, a, b),
    ):
        for r in range(20):
            (left,) = np.nonzero(available[r])
            alone = largest(
                x[r : r + 1, left], y[r : r + 1, left], np.ones((1, len(left)), np.bool_)
            )
            assert np.array_equal(actual[r, left], alone[0])
            assert not np.delete(actual[r], left).any()


def test_constants_win_where_nothing_exceeds_them_and_equal_ones_share() -> None:
    mean = np.array(
        [
            [1.0, 2, 2, 0],
            [1, 1, 1, 1],
            [np.inf, 1, 1, 1],
            [-np.inf, 1, 1, 1],
            [1, 1, 1, 1],
            [3, 3, 3, 3],
        ]
    )
    deviation = np.array(
        [[0.0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1], [1e-30] * 4]
    )
    available = np.ones((6, 4), np.bool_)
    available[1, 0] = False
    actual = normal_largest(mean, deviation, available)
    third, eighth = 1 / 3, 0.125
    expected = [
        [0, ndtr(2) / 2, ndtr(2) / 2, ndtr(-2)],
        [0, third, third, third],
        [1, 0, 0, 0],
        [0, third, third, third],
        [eighth, *(3 * [(1 - eighth) / 3])],
        [0.25, 0.25, 0.25, 0.25],
    ]
    np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_rows_that_are_not_numbers_have_none_and_leave_the_others_alone() -> None:
    mean, deviation = scattered(3, 4)
    alone = normal_largest(mean, deviation, everything(mean))
    for place in (mean, deviation):
        kept, place[1, 2] = place[1, 2], np.nan
        actual = normal_largest(mean, deviation, everything(mean))
        assert np.isnan(actual[1]).all()
        assert np.isnan(
            normal_largest(mean, deviation, everything(mean), normalised=False)[1]
        ).all()
        assert np.array_equal(actual[[0, 2]], alone[[0, 2]])
        place[1, 2] = kept
    a, b = beta_parameters(3, 4)
    a[1, 2] = 0.0
    actual = beta_largest(a, b, everything(a))
    assert np.isnan(actual[1]).all()
    assert np.isfinite(actual[[0, 2]]).all()


def test_rows_have_the_bits_that_they_have_alone() -> None:
    for largest, (x, y) in (
        (normal_largest, scattered(9, 12)),
        (beta_largest, beta_parameters(9, 12)),
    ):
        together = largest(x, y, everything(x))
        for r in range(9):
            assert np.array_equal(
                largest(x[r : r + 1], y[r : r + 1], everything(x[:1])), together[r : r + 1]
            )


def test_scales_that_differ_beyond_double_precision_end() -> None:
    mean = np.array([[0.0, np.sqrt(72.0)], [0.0, 1e8]])
    actual = normal_largest(mean, np.array([[1e-18, 1.0], [1e-300, 1.2e7]]), everything(mean))
    np.testing.assert_allclose(actual.sum(axis=1), 1, rtol=1e-12)
