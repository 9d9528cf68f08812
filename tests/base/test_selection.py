"""Slates from scores and probabilities equal a plain implementation, candidate by candidate."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.base.randomness import Streams
from bandits.base.selection import (
    TIE,
    best_of_tables,
    best_slots,
    epsilon_slate,
    epsilon_slots,
    explored_share,
    gumbel_scores,
    leading_gumbel_scores,
    mixed_with_uniform,
    redraw_keys,
    shares_of_largest,
    slots_by_rank,
    top_k,
)
from bandits.base.types import BoolArray, FloatArray, IntArray

ROWS, ITEMS, STEP = 200, 7, 5
TIES = Streams(0, range(ROWS)).ties
WORD = 2**64


def hashed(key: int, counter: int) -> int:
    """Return the number of SplitMix64 with the seed ``key`` at a place of its sequence."""
    word = (key + (counter + 1) * 0x9E3779B97F4A7C15) % WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB % WORD
    return word ^ word >> 31


def order(scores: FloatArray, left: list[int], row: int, step: int = STEP) -> list[int]:
    """Order the candidates ``left`` by their scores, ties by their priorities."""
    decision = hashed(int(TIES[row]), step)
    return sorted(left, key=lambda k: (-scores[k], -hashed(decision, k)))


def shown(scores: FloatArray, size: int = 1, step: int = STEP) -> IntArray:
    """Show the best of scores that are the same in all rows, int64 (ROWS, S)."""
    every = np.tile(scores, (ROWS, 1))
    alive = np.ones(ROWS, np.bool_)
    return top_k(every, np.ones(every.shape, np.bool_), alive, size, TIES, step)


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
def test_the_best_available_candidates_are_shown_in_order_and_ties_by_priority(size: int) -> None:
    scores, available = candidates(size)
    alive = np.ones(ROWS, np.bool_)
    actual = top_k(scores, available, alive, size, TIES, STEP)
    for r in range(ROWS):
        expected = order(scores[r], np.flatnonzero(available[r]).tolist(), r)
        assert actual[r].tolist() == expected[:size]
    assert alive.all()


@pytest.mark.parametrize("size", [1, 3])
def test_scores_that_differ_by_rounding_are_tied(size: int) -> None:
    """Noise of the last bits gives no candidate an advantage, wherever it stands."""
    noise = 1 + np.array([0, 3, -2, 1, 2, -1, 4]) * 2.0**-52
    for level in (1.0, -1.0, 1e9, -1e-9):
        assert np.array_equal(shown(level * noise, size), shown(np.full(ITEMS, level), size))
    clear = np.ones(ITEMS)
    clear[4] += 3 * TIE
    assert (shown(clear) == 4).all()


def test_infinite_scores_are_tied_among_themselves_alone() -> None:
    scores = np.array([1e300, np.inf, -np.inf, np.inf, 1.0, np.inf, 0.0])
    assert set(shown(scores)[:, 0].tolist()) == {1, 3, 5}
    assert set(shown(np.full(ITEMS, -np.inf))[:, 0].tolist()) == set(range(ITEMS))


def test_tied_candidates_are_shown_equally_often_in_every_slot() -> None:
    """Chi-square with 6 degrees of freedom exceeds 35 with a probability of 4e-6."""
    shows = np.zeros((3, ITEMS))
    repeated = 0
    for step in range(40):
        slate = shown(np.zeros(ITEMS), 3, step)
        for s in range(3):
            shows[s] += np.bincount(slate[:, s], minlength=ITEMS)
        repeated += int((slate[:, 0] == shown(np.zeros(ITEMS), 3, step + 1)[:, 0]).sum())
    expected = 40 * ROWS / ITEMS
    assert (((shows - expected) ** 2 / expected).sum(axis=1) < 35).all()
    # from step to step as independent draws are: five standard deviations
    assert abs(repeated - expected) < 5 * np.sqrt(expected)


def test_rows_and_redraws_break_ties_of_their_own() -> None:
    assert len(set(TIES.tolist())) == ROWS
    part = Streams(0, [7, 3, 7]).ties
    assert part.tolist() == [TIES[7], TIES[3], TIES[7]]
    keys = redraw_keys(TIES, STEP)
    scores, every, alive = np.zeros((ROWS, ITEMS)), np.ones((ROWS, ITEMS), np.bool_), np.ones(ROWS)
    drawn = [top_k(scores, every, alive > 0, 1, keys, i)[:, 0] for i in range(40)]
    same = sum(int((each == shown(np.zeros(ITEMS))[:, 0]).sum()) for each in drawn)
    assert abs(same - 40 * ROWS / ITEMS) < 5 * np.sqrt(40 * ROWS / ITEMS)


def test_tables_show_at_each_step_what_their_scores_would() -> None:
    generator = np.random.default_rng(1)
    tables = generator.integers(0, 3, (20, ITEMS)).astype(float)
    index = generator.integers(0, 20, (9, ROWS))
    found = best_of_tables(tables, index, TIES, 100)
    every, alive = np.ones((ROWS, ITEMS), np.bool_), np.ones(ROWS, np.bool_)
    for t in range(9):
        expected = top_k(tables[index[t]], every, alive, 1, TIES, 100 + t)
        assert np.array_equal(found[t], expected[:, 0])


@pytest.mark.parametrize("size", [1, 2, 4])
def test_probabilities_of_slots_are_the_frequencies_of_tied_slates(size: int) -> None:
    scores, n = np.array([[2.0, 5.0, 2.0, 1.0, 2.0, 5.0, 9.0]]), 400
    available = np.array([[True, True, True, True, True, True, False]])
    stated = best_slots(scores, available, size)[0]
    shows = np.zeros((size, ITEMS))
    every, alive = np.tile(available, (ROWS, 1)), np.ones(ROWS, np.bool_)
    for step in range(n):
        slate = top_k(np.tile(scores, (ROWS, 1)), every, alive, size, TIES, step)
        for s in range(size):
            shows[s] += np.bincount(slate[:, s], minlength=ITEMS)
    deviation = np.sqrt(stated * (1 - stated) / (n * ROWS))
    assert (np.abs(shows / (n * ROWS) - stated) <= 5 * deviation).all()


def test_tied_candidates_share_the_ranks_that_they_occupy() -> None:
    """The second and third rank of three are tied: each has half of both."""
    by_rank = epsilon_slots(np.array([3]), np.array([0.3]), 2)
    clear = slots_by_rank(by_rank, np.array([[3.0, 2.0, 1.0]]), np.ones((1, 3), np.bool_))[0]
    tied = slots_by_rank(by_rank, np.array([[3.0, 2.0, 2.0]]), np.ones((1, 3), np.bool_))[0]
    np.testing.assert_allclose(tied[:, 0], clear[:, 0], atol=1e-15)
    np.testing.assert_allclose(tied[:, 1], clear[:, 1:].mean(axis=1), atol=1e-15)
    np.testing.assert_allclose(tied[:, 2], tied[:, 1], atol=0)


def test_an_item_tied_with_the_best_is_not_explored() -> None:
    estimates = np.array([[0.5, 0.5, 0.2, np.nan, 9.0]])
    available = np.array([[True, True, True, True, False]])

    def share(*slate: int) -> float:
        return float(explored_share(estimates, available, np.array([slate]))[0])

    assert [share(0), share(1), share(2), share(3)] == [0, 0, 1, 1]
    assert [share(0, 1), share(1, 2), share(3, 2)] == [0, 0.5, 1]


def test_nan_stops_a_row_unless_the_candidate_is_unavailable() -> None:
    scores = np.array([[0.0, np.nan, 2.0], [0.0, np.nan, 2.0], [0.0, 1.0, 2.0]])
    available = np.array([[True, True, True], [True, False, True], [True, True, True]])
    alive = np.array([True, True, False])
    assert top_k(scores, available, alive, 2, TIES[:3], STEP).tolist() == [[0, 0], [2, 0], [0, 0]]
    assert alive.tolist() == [False, True, False]


@pytest.mark.parametrize("size", [1, 3])
def test_slots_explore_among_the_candidates_that_are_left(size: int) -> None:
    scores, available = candidates(10 + size)
    generator = np.random.default_rng(20 + size)
    uniforms, epsilon = generator.random((ROWS, size, 2)), generator.choice([0.0, 0.3, 1.0], ROWS)
    actual = epsilon_slate(scores, available, epsilon, uniforms, TIES, STEP)
    slates = top_k(actual, available, np.ones(ROWS, np.bool_), size, TIES, STEP)
    for r in range(ROWS):
        left, expected = np.flatnonzero(available[r]).tolist(), []
        for s in range(size):
            explores = uniforms[r, s, 0] < epsilon[r]
            best = order(scores[r], left, r)[0]
            expected.append(left[int(uniforms[r, s, 1] * len(left))] if explores else best)
            left.remove(expected[-1])
        assert slates[r].tolist() == expected
        if not (uniforms[r, :, 0] < epsilon[r]).any():
            assert actual[r].tolist() == scores[r].tolist()


def test_exploration_ends_when_no_candidate_is_left() -> None:
    available = np.array([[False, True, True, False]])
    uniforms = np.full((1, 3, 2), 0.999)
    actual = epsilon_slate(np.zeros((1, 4)), available, np.ones(1), uniforms, TIES[:1], STEP)
    assert actual.tolist() == [[0.0, 2.0, 3.0, 0.0]]


def test_gumbel_scores_are_log_probabilities_plus_noise() -> None:
    probabilities = np.array([[0.2, 0.0, 0.8, np.nan]])
    uniforms = np.array([[0.1, 0.5, 0.9, 0.5]])
    actual = gumbel_scores(probabilities, uniforms)[0]
    noise = -np.log(-np.log(1 - uniforms[0]))
    np.testing.assert_allclose(actual[[0, 2]], np.log([0.2, 0.8]) + noise[[0, 2]], rtol=1e-12)
    assert actual[1] == -np.inf
    assert np.isnan(actual[3])


def test_leading_gumbel_scores_are_those_that_may_be_the_best() -> None:
    generator = np.random.default_rng(7)
    K, most = 20, 0
    for _ in range(300):
        p = generator.dirichlet(np.full(K, generator.choice([0.01, 1.0, 100.0])))
        u = generator.random(K)
        u[generator.random(K) < 0.01] = 0.0
        expected, actual = gumbel_scores(p[None], u[None])[0], np.empty(K)
        leading_gumbel_scores(p, u, actual)
        assert actual.argmax() == expected.argmax()
        computed = np.isfinite(actual)
        np.testing.assert_allclose(actual[computed], expected[computed], rtol=1e-12)
        most = max(most, int(computed.sum()))
    # which saves the logarithms of the others
    assert most < K / 2
    leading_gumbel_scores(np.array([0.5, np.nan]), np.array([0.5, 0.5]), actual)
    assert np.isnan(actual[1])


def test_the_largest_share_one() -> None:
    values = np.array([[[1.0, 3.0, 3.0], [-np.inf, -2.0, -5.0]]])
    assert shares_of_largest(values).tolist() == [[[0.0, 0.5, 0.5], [0.0, 1.0, 0.0]]]
    rounded = np.array([[1.0, 1 + 2.0**-52, 1 - 2.0**-50]])
    assert shares_of_largest(rounded).tolist() == [[1 / 3, 1 / 3, 1 / 3]]


def test_shares_of_the_largest_are_those_of_a_plain_count_and_nan_has_all() -> None:
    g = np.random.default_rng(5)
    values = g.integers(0, 3, (200, 2, 4)).astype(float)
    values[g.random(values.shape) < 0.1] = np.nan
    values[g.random(values.shape) < 0.1] = -np.inf
    largest = values == values.max(axis=-1, keepdims=True)
    expected = largest / np.maximum(largest.sum(axis=-1, keepdims=True), 1)
    diverged = np.isnan(values).any(axis=-1)
    expected[diverged] = np.eye(4)[np.isnan(values).argmax(axis=-1)][diverged]
    np.testing.assert_array_equal(shares_of_largest(values), expected)
    np.testing.assert_array_equal(shares_of_largest(values[:, 0]), expected[:, 0])


def test_a_policy_is_mixed_with_uniform_choice_of_what_is_available() -> None:
    p = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    available = np.array([[True, True, False], [True, True, True]])
    mixed = mixed_with_uniform(p, np.array([0.2, 0.3]), available)
    np.testing.assert_allclose(mixed, [[0.5, 0.5, 0.0], [0.1, 0.8, 0.1]], rtol=0, atol=1e-15)
