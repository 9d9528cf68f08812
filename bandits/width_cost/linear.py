"""Implement the confidence widths of LinUCB in three ways, time them, and follow the condition
number of A.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.models.linear import ridge_kernels

from .complexity import LINEAR_METHODS, CostAxis, LinearSizes, Sizes
from .request import LinearRequest
from .results import Condition, Timing
from .timing import MEMORY_BUDGET, SHORT_PAST, Grids, GridStep, repeat, size_grid

FEATURES = (5, 10, 20, 50, 100, 200, 500, 1000)
# arms that are measured at most
MAX_ARMS = 2000
# arms of the grid of features where more are requested than can be measured
FEW_ARMS = 20
# arms and features of which condition numbers are computed
FOLLOWED_ARMS, FOLLOWED_FEATURES = 20, 100


class LinearMethod(ABC):
    """Mean x' A^-1 b and width sqrt(x' A^-1 x) of every arm; A = ridge I + sum of x x' per arm.

    Parameters
    ----------
    K, d : int
        Arms and features.
    ridge : float

    References
    ----------
    Li, Chu, Langford, Schapire (2010), A contextual-bandit approach to personalized news article
    recommendation, Algorithm 1."""

    kind: ClassVar[str]

    @abstractmethod
    def __init__(self, K: int, d: int, ridge: float) -> None: ...

    @abstractmethod
    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute means and widths, two of (K,), for the features ``x (K, d)``."""

    @abstractmethod
    def update(self, arm: int, x: FloatArray, reward: float) -> None:
        """Update the model of one arm with its features ``x (d,)``."""

    @abstractmethod
    def inverses(self) -> FloatArray:
        """Return A^-1 of every arm as this method uses it, (K, d, d)."""

    def allocated(self) -> int:
        """Count the bytes of the arrays that learning changes."""
        arrays = [value for name, value in vars(self).items() if not name.startswith("_")]
        return sum(value.nbytes for value in arrays if isinstance(value, np.ndarray))


class InverseAtEachStep(LinearMethod):
    """Every A is inverted at every decision: O(K d^3)."""

    kind = "inverse"

    def __init__(self, K: int, d: int, ridge: float) -> None:
        self.A, self.b = np.tile(ridge * np.eye(d), (K, 1, 1)), np.zeros((K, d))
        self.inverse = np.empty_like(self.A)

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.inverse[...] = np.linalg.inv(self.A)
        return _predicted(self.inverse, self.b, x)

    def update(self, arm: int, x: FloatArray, reward: float) -> None:
        self.A[arm] += x[:, None] * x
        self.b[arm] += reward * x

    def inverses(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self.A))


class ShermanMorrison(LinearMethod):
    """A^-1 is stored and updated by the Sherman-Morrison formula: O(K d^2)."""

    kind = "rank_one"

    def __init__(self, K: int, d: int, ridge: float) -> None:
        self.inverse, self.b = np.tile(np.eye(d) / ridge, (K, 1, 1)), np.zeros((K, d))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _predicted(self.inverse, self.b, x)

    def update(self, arm: int, x: FloatArray, reward: float) -> None:
        u = self.inverse[arm] @ x
        self.inverse[arm] -= u[:, None] * (u / (1 + x @ u))
        self.b[arm] += reward * x

    def inverses(self) -> FloatArray:
        return self.inverse


class Compiled(LinearMethod):
    """The kernels of this package's linear agents (`bandits.models.linear.ridge_kernels`): O(K
    d^2).
    """

    kind = "compiled"

    def __init__(self, K: int, d: int, ridge: float) -> None:
        self.A = np.tile(ridge * np.eye(d), (1, K, 1, 1))
        self.inverse = np.tile(np.eye(d) / ridge, (1, K, 1, 1))
        self.b, self.theta = np.zeros((1, K, d)), np.zeros((1, K, d))
        self.count = np.zeros((1, K), np.int64)
        # arguments of the kernels that stay the same: one context, all features
        self._columns, self._context = np.arange(d)[None, None], np.zeros(1, np.int64)
        self._model, self._slate = np.arange(K)[None], np.zeros((1, 1), np.int64)
        self._examined, self._factor = np.ones((1, 1), np.bool_), np.zeros((1, K, 0, 0))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        # with as many values as features, the kernel does not read the columns
        mean, variance = ridge_kernels.ridge_predict(
            x[None], self._columns, self._context, self._model, self.theta, self.inverse
        )
        return mean[0], np.sqrt(variance[0])

    def update(self, arm: int, x: FloatArray, reward: float) -> None:
        # a slate of one candidate, so that the features of the other arms need not be passed
        ridge_kernels.ridge_update(
            x[None, None],
            self._columns,
            self._context,
            np.array([[arm]]),
            self._slate,
            np.array([[reward]]),
            self._examined,
            self.A,
            self.inverse,
            self.b,
            self.theta,
            self.count,
            self._factor,
        )

    def inverses(self) -> FloatArray:
        return np.asarray(self.inverse[0])


def _predicted(inverse: FloatArray, b: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    u = (inverse @ x[:, :, None])[:, :, 0]
    return np.einsum("kd,kd->k", u, b), np.sqrt(np.einsum("kd,kd->k", u, x))


LINEAR_REGISTRY: dict[str, type[LinearMethod]] = {
    cls.kind: cls for cls in (InverseAtEachStep, ShermanMorrison, Compiled)
}


class LinearGrids(Grids):
    """Growing numbers of features, and of arms."""

    request: LinearRequest
    smallest = LinearSizes.of(2, 10, 2)
    activity = "Condition numbers"

    @property
    def weight(self) -> int:
        return len(condition_grid(self.request.past))

    def plan(self) -> list[tuple[str, CostAxis, Sizes]]:
        base = self.request.sizes
        K = base.K if base.K <= MAX_ARMS else FEW_ARMS
        grid = sorted({*FEATURES, int(base.d)})
        todo: list[tuple[str, CostAxis, Sizes]] = [
            (kind, "p", LinearSizes.of(K, base.t, d)) for d in grid for kind in LINEAR_METHODS
        ]
        arms = size_grid(2, MAX_ARMS, base.K, (1, 2, 5))
        return todo + [
            (kind, "K", LinearSizes.of(n, base.t, base.d)) for n in arms for kind in LINEAR_METHODS
        ]

    def fits(self, kind: str, sizes: Sizes) -> bool:
        return sizes.K <= MAX_ARMS and LINEAR_METHODS[kind].memory(sizes) <= MEMORY_BUDGET

    def timed(self, kind: str, sizes: Sizes) -> tuple[Timing, GridStep]:
        K, d, request = int(sizes.K), int(sizes.d), self.request
        generator = Streams(request.seed, (0,)).generator("world")
        method: LinearMethod = LINEAR_REGISTRY[kind](K, d, request.ridge)
        x = features(generator, K, d, request.correlation)
        for arm in range(min(SHORT_PAST, K)):
            method.predict(x)
            method.update(arm, x[arm], 1.0)
        decide, update = repeat(
            lambda: method.predict(x), lambda arm: method.update(arm, x[arm], 1.0)
        )
        # to be set up takes about three decisions with their updates, and the matrices
        step = GridStep(sizes, decide + update, 4 * (decide + update))
        return Timing(kind, sizes, decide, update, method.allocated()), step

    def comparisons(self) -> Iterator[tuple[int, str, Sequence[Condition]]]:
        for i, condition in enumerate(follow(self.request)):
            yield i + 1, f"{self.activity} at t = {condition.t:,}", [condition]


def condition_grid(past: int) -> list[int]:
    """Return the numbers of observations at which condition numbers are computed, the last one
    ``past``.
    """
    return size_grid(10, past, past, (1, 2, 5))


def follow(request: LinearRequest) -> Iterator[Condition]:
    """Update all methods with the same observations.

    State the condition of A and the errors of A^-1.

    The arms receive the observations in random order. At most `FOLLOWED_ARMS` arms are simulated,
    with their share of the observations, and at most `FOLLOWED_FEATURES` features.

    Yields
    ------
    Condition
        At the numbers of observations of `condition_grid`.
    """
    K, d = min(request.n_arms, FOLLOWED_ARMS), min(request.n_features, FOLLOWED_FEATURES)
    generator = Streams(request.seed, (0,)).generator("world")
    methods = {kind: cls(K, d, request.ridge) for kind, cls in LINEAR_REGISTRY.items()}
    A, eye, seen = np.tile(request.ridge * np.eye(d), (K, 1, 1)), np.eye(d), 0
    for t in condition_grid(request.past):
        # the share of the arms that are simulated
        due = round(t * K / request.n_arms)
        for x in features(generator, due - seen, d, request.correlation):
            arm = int(generator.integers(K))
            A[arm] += x[:, None] * x
            for method in methods.values():
                method.update(arm, x, 0.0)
        seen = max(seen, due)
        eigenvalues = np.linalg.eigvalsh(A)
        condition = eigenvalues[:, -1] / np.maximum(eigenvalues[:, 0], np.finfo(float).tiny)
        errors = {
            kind: float(np.abs(A @ method.inverses() - eye).max())
            for kind, method in methods.items()
        }
        yield Condition(t, d, K, float(np.median(condition)), float(condition.max()), errors)


def features(generator: np.random.Generator, n: int, d: int, correlation: float) -> FloatArray:
    """Draw ``n`` vectors (n, d) from N(0, 1) with the same correlation of any two features."""
    own, common = generator.normal(size=(n, d)), generator.normal(size=(n, 1))
    return np.asarray(np.sqrt(1 - correlation) * own + np.sqrt(correlation) * common)
