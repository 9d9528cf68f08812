"""Agents without context as a reader of their papers would write them, for docs/LEVERS.md.

Nothing of `bandits` is used: ten arms with means U(0, 1), clicks, and the regret after some pulls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Choose = Callable[[np.random.Generator, Array, Array, int], Array]


def regrets(choose: Choose, runs: int, pulls: int, arms: int = 10, seed: int = 1) -> Array:
    """Play ``runs`` independent games; return the expected regret of each.

    ``choose`` gets the pulls and clicks so far (runs, arms) and the number of pulls, and returns an
    index per arm; the largest is pulled, ties at random."""
    generator = np.random.default_rng(seed)
    means, rows = generator.random((runs, arms)), np.arange(runs)
    pulled, clicks, regret = np.zeros((runs, arms)), np.zeros((runs, arms)), np.zeros(runs)
    for t in range(pulls):
        index = choose(generator, pulled, clicks, t)
        ties = index == index.max(axis=1, keepdims=True)
        arm = np.where(ties, generator.random(index.shape), -1).argmax(axis=1)
        regret += means.max(axis=1) - means[rows, arm]
        pulled[rows, arm] += 1
        clicks[rows, arm] += generator.random(runs) < means[rows, arm]
    return regret


def _averages(pulled: Array, clicks: Array, unknown: float) -> Array:
    return np.where(pulled > 0, clicks / np.maximum(pulled, 1), unknown)


def thompson(generator: np.random.Generator, pulled: Array, clicks: Array, _: int) -> Array:
    """Draw from Beta(1 + clicks, 1 + misses)."""
    return generator.beta(1 + clicks, 1 + pulled - clicks)


def ucb1(_: np.random.Generator, pulled: Array, clicks: Array, t: int) -> Array:
    """Add the root of 2 ln t / n; unknown arms first."""
    bonus = np.sqrt(2 * np.log(max(t, 1)) / np.maximum(pulled, 1))
    return np.where(pulled > 0, _averages(pulled, clicks, 0.0) + bonus, np.inf)


def kl_ucb(_: np.random.Generator, pulled: Array, clicks: Array, t: int) -> Array:
    """Take the largest q with n KL(mean, q) <= ln t; unknown arms first."""
    mean = _averages(pulled, clicks, 0.0)
    low, high = mean.copy(), np.ones_like(mean)
    for _half in range(30):
        q = np.clip((low + high) / 2, 1e-12, 1 - 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            divergence = np.where(mean > 0, mean * np.log(mean / q), 0.0)
            divergence += np.where(mean < 1, (1 - mean) * np.log((1 - mean) / (1 - q)), 0.0)
        inside = pulled * divergence <= np.log(max(t, 1))
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return np.where(pulled > 0, low, np.inf)


def epsilon_greedy(unknown: float) -> Choose:
    """Explore at a rate of .1; ``unknown`` is the estimate of an arm that was never pulled."""

    def choose(generator: np.random.Generator, pulled: Array, clicks: Array, _: int) -> Array:
        explored = generator.random((len(pulled), 1)) < 0.1
        return np.where(
            explored, generator.random(pulled.shape), _averages(pulled, clicks, unknown)
        )

    return choose


def uniform(_: np.random.Generator, pulled: Array, __: Array, ___: int) -> Array:
    """Let all arms tie."""
    return np.zeros_like(pulled)
