"""The replay buffer against a plain list of observations."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.models.neural.replay_buffer import ReplayBuffer

R, S, D, M = 2, 3, 4, 2


def filled(capacity: int, slates: int) -> tuple[ReplayBuffer, list[tuple[float, ...]]]:
    """Return a buffer and all that was added to it, oldest first: feature, reward, item, weight of
    row 1.
    """
    buffer, generator, added = ReplayBuffer(R, D, capacity, M), np.random.default_rng(3), []
    for _ in range(slates):
        x, weight = generator.random((R, S, D)), generator.random((R, S, M))
        rewards, items = generator.random((R, S)), generator.integers(0, 9, (R, S))
        buffer.add(x, items, rewards, weight)
        added += [(x[1, s, 2], rewards[1, s], items[1, s], weight[1, s, 1]) for s in range(S)]
    return buffer, added


def stored(buffer: ReplayBuffer) -> np.ndarray:
    n = buffer.size
    x, items, rewards, weight = buffer.batch(np.broadcast_to(np.arange(n), (R, n)))
    return np.stack([x[1, :, 2], rewards[1], items[1], weight[1, :, 1]], axis=1)


@pytest.mark.parametrize("slates", [2, 5, 40, 400])
def test_the_latest_observations_are_kept(slates: int) -> None:
    """The capacity is no multiple of the slate, so that slates lie across the end of the ring."""
    buffer, added = filled(40, slates)
    assert buffer.size == min(40, 3 * slates)
    actual = stored(buffer)
    np.testing.assert_allclose(actual[actual[:, 0].argsort()], sorted(added[-40:]), rtol=1e-6)
    place = (3 * slates - 1) % 40
    np.testing.assert_allclose(actual[place], added[-1], rtol=1e-6)


def test_the_oldest_observations_are_dropped() -> None:
    buffer, added = filled(40, 10)
    buffer.drop(8)
    assert buffer.count == 22
    np.testing.assert_allclose(stored(buffer), added[8:], rtol=1e-6)


def test_batches_are_drawn_from_what_is_stored() -> None:
    buffer, _ = filled(40, 5)
    generators = [np.random.default_rng(r) for r in range(R)]
    drawn = buffer.random_batches(generators, 8, 50)
    assert drawn.shape == (R, 50, 8)
    expected = [np.random.default_rng(r).integers(0, 15, (50, 8)) for r in range(R)]
    np.testing.assert_array_equal(drawn, expected)
    shuffled = buffer.shuffled_batches(generators, 4, 5)
    assert shuffled.shape == (R, 5 * 3, 4)
    # a pass shows no observation twice, and whole batches only
    for one in shuffled.reshape(R * 5, 12):
        assert len(set(one.tolist())) == 12
        assert set(one.tolist()) <= set(range(15))
