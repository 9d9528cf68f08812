"""The sizes at which the methods for LinUCB are timed, and its condition numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray

from .complexity import LINEAR_METHODS
from .linear_methods import LINEAR_REGISTRY, LinearMethod
from .request import LinearRequest
from .results import Condition, Timing
from .sizes import CostAxis, LinearSizes, Sizes
from .timing import MEMORY_BUDGET, SHORT_PAST, Grids, GridStep, repeat, size_grid

FEATURES = (5, 10, 20, 50, 100, 200, 500, 1000)
# arms that are measured at most
MAX_ARMS = 2000
# arms of the grid of features where more are requested than can be measured
FEW_ARMS = 20
# arms and features of which condition numbers are computed
FOLLOWED_ARMS, FOLLOWED_FEATURES = 20, 100


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
        return todo + [(kind, "K", LinearSizes.of(n, base.t, base.d)) for n in arms for kind in LINEAR_METHODS]

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
        decide, update = repeat(lambda: method.predict(x), lambda arm: method.update(arm, x[arm], 1.0))
        # to be set up takes about three decisions with their updates, and the matrices
        step = GridStep(sizes, decide + update, 4 * (decide + update))
        return Timing(kind, sizes, decide, update, method.allocated()), step

    def comparisons(self) -> Iterator[tuple[int, str, Sequence[Condition]]]:
        for i, condition in enumerate(follow(self.request)):
            yield i + 1, f"{self.activity} at t = {condition.t:,}", [condition]


def condition_grid(past: int) -> list[int]:
    """Return the numbers of observations at which condition numbers are computed, the last one ``past``."""
    return size_grid(10, past, past, (1, 2, 5))


def follow(request: LinearRequest) -> Iterator[Condition]:
    """Update all methods with the same observations; state the condition of A and the errors of A^-1.

    The arms receive the observations in random order. At most `FOLLOWED_ARMS` arms are simulated, with their share of
    the observations, and at most `FOLLOWED_FEATURES` features.

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
        due = round(t * K / request.n_arms)  # the share of the arms that are simulated
        for x in features(generator, due - seen, d, request.correlation):
            arm = int(generator.integers(K))
            A[arm] += x[:, None] * x
            for method in methods.values():
                method.update(arm, x, 0.0)
        seen = max(seen, due)
        eigenvalues = np.linalg.eigvalsh(A)
        condition = eigenvalues[:, -1] / np.maximum(eigenvalues[:, 0], np.finfo(float).tiny)
        errors = {kind: float(np.abs(A @ method.inverses() - eye).max()) for kind, method in methods.items()}
        yield Condition(t, d, K, float(np.median(condition)), float(condition.max()), errors)


def features(generator: np.random.Generator, n: int, d: int, correlation: float) -> FloatArray:
    """Draw ``n`` vectors (n, d) from N(0, 1) with the same correlation of any two features."""
    own, common = generator.normal(size=(n, d)), generator.normal(size=(n, 1))
    return np.asarray(np.sqrt(1 - correlation) * own + np.sqrt(correlation) * common)
