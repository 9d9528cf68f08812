"""Slates from scores and probabilities equal a plain implementation, candidate by candidate."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.base.selection import (
    epsilon_slate,
    epsilon_slots,
    gumbel_scores,
    indicator_of_largest,
    mixed_with_uniform,
    top_k,
)
from bandits.base.types import BoolArray, FloatArray

ROWS, ITEMS = 200, 7


def candidates(seed: int) -> tuple[FloatArray, BoolArray]:
    """Return scores with many ties, and candidates of which at least three are available."""
    generator = np.random.default_rng(seed)
    available = generator.random((ROWS, ITEMS)) < 0.6
    available[:, -3:] = True
    return generator.integers(0, 4, (ROWS, ITEMS)).astype(float), available


@pytest.mark.parametrize(("n", "size"), [(1, 1), (3, 3), (5, 1), (5, 3), (6, 4)])
def test_probabilities_of_slots_are_those_of_all_slates(n: int, size: int) -> None:
    """Every slate of `epsilon_slate`, candidate by candidate, with its probability."""
    epsilon = 0.35
    expected = np.zeros((size, n))

    def follow(shown: list[int], probability: float) -> None:
        if len(shown) == size:
            return
        left = [rank for rank in range(n) if rank not in shown]
        for rank in left:
            p = probability * (epsilon / len(left) + (1 - epsilon) * (rank == left[0]))
            expected[len(shown), rank] += p
            follow([*shown, rank], p)

    follow([], 1.0)
    found = epsilon_slots(np.array([n, n]), np.array([epsilon, 0.0]), size)
    np.testing.assert_allclose(found[0][:, np.minimum(np.arange(n), size)], expected, atol=1e-15)
    np.testing.assert_array_equal(found[1][:, :size], np.eye(size))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_best_available_candidates_are_shown_in_order_and_ties_go_to_the_lowest(
    size: int,
) -> None:
    scores, available = candidates(size)
    alive = np.ones(ROWS, np.bool_)
    actual = top_k(scores, available, alive, size)
    for r in range(ROWS):
        order = sorted(np.flatnonzero(available[r]), key=lambda k: -scores[r, k])
        assert actual[r].tolist() == order[:size]
    assert alive.all()


def test_nan_stops_a_row_unless_the_candidate_is_unavailable() -> None:
    scores = np.array([[0.0, np.nan, 2.0], [0.0, np.nan, 2.0], [0.0, 1.0, 2.0]])
    available = np.array([[True, True, True], [True, False, True], [True, True, True]])
    alive = np.array([True, True, False])
    assert top_k(scores, available, alive, 2).tolist() == [[0, 0], [2, 0], [0, 0]]
    assert alive.tolist() == [False, True, False]


@pytest.mark.parametrize("size", [1, 3])
def test_slots_explore_among_the_candidates_that_are_left(size: int) -> None:
    scores, available = candidates(10 + size)
    generator = np.random.default_rng(20 + size)
    uniforms, epsilon = generator.random((ROWS, size, 2)), generator.choice([0.0, 0.3, 1.0], ROWS)
    actual = epsilon_slate(scores, available, epsilon, uniforms)
    shown = top_k(actual, available, np.ones(ROWS, np.bool_), size)
    for r in range(ROWS):
        left, expected = np.flatnonzero(available[r]).tolist(), []
        for s in range(size):
            explores = uniforms[r, s, 0] < epsilon[r]
            best = max(left, key=lambda k: scores[r, k])
            expected.append(left[int(uniforms[r, s, 1] * len(left))] if explores else best)
            left.remove(expected[-1])
        assert shown[r].tolist() == expected
        if not (uniforms[r, :, 0] < epsilon[r]).any():
            assert actual[r].tolist() == scores[r].tolist()


def test_exploration_ends_when_no_candidate_is_left() -> None:
    available = np.array([[False, True, True, False]])
    actual = epsilon_slate(np.zeros((1, 4)), available, np.ones(1), np.full((1, 3, 2), 0.999))
    assert actual.tolist() == [[0.0, 2.0, 3.0, 0.0]]


def test_gumbel_scores_are_log_probabilities_plus_noise() -> None:
    probabilities = np.array([[0.2, 0.0, 0.8, np.nan]])
    uniforms = np.array([[0.1, 0.5, 0.9, 0.5]])
    actual = gumbel_scores(probabilities, uniforms)[0]
    noise = -np.log(-np.log(1 - uniforms[0]))
    np.testing.assert_allclose(actual[[0, 2]], np.log([0.2, 0.8]) + noise[[0, 2]], rtol=1e-12)
    assert actual[1] == -np.inf
    assert np.isnan(actual[3])


def test_the_indicator_is_one_at_the_first_of_the_largest() -> None:
    values = np.array([[[1.0, 3.0, 3.0], [-np.inf, -2.0, -5.0]]])
    assert indicator_of_largest(values).tolist() == [[[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]]


def test_the_indicator_is_that_of_numpys_argmax() -> None:
    g = np.random.default_rng(5)
    values = g.integers(0, 3, (200, 2, 4)).astype(float)
    values[g.random(values.shape) < 0.1] = np.nan
    values[g.random(values.shape) < 0.1] = -np.inf
    expected = np.eye(4)[values.argmax(axis=-1)]
    np.testing.assert_array_equal(indicator_of_largest(values), expected)
    np.testing.assert_array_equal(indicator_of_largest(values[:, 0]), expected[:, 0])


def test_a_policy_is_mixed_with_uniform_choice_of_what_is_available() -> None:
    p = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    available = np.array([[True, True, False], [True, True, True]])
    mixed = mixed_with_uniform(p, np.array([0.2, 0.3]), available)
    np.testing.assert_allclose(mixed, [[0.5, 0.5, 0.0], [0.1, 0.8, 0.1]], rtol=0, atol=1e-15)
