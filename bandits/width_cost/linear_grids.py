"""Time three implementations of LinUCB over grids of sizes, then follow A and its inverse over observations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.width_cost.measure import MEMORY_BUDGET, SETUP_BUDGET, TIME_BUDGET, one_thread, repeat, size_grid
from bandits.width_cost.request import CostAxis
from bandits.width_cost.results import Timing

from .complexity import LINEAR_METHODS
from .methods import LINEAR_REGISTRY, LinearMethod
from .request import LinearRequest, LinearSizes
from .results import Condition, LinearProgress

FEATURES = (5, 10, 20, 50, 100, 200, 500, 1000)
MAX_ARMS = 2000  # that are measured
FEW_ARMS = 20  # of the grid of features where more are requested than can be measured
FOLLOWED_ARMS, FOLLOWED_FEATURES = 20, 100  # of which condition numbers are computed
SHORT_PAST = 3  # observations before timing, which does not depend on their number


def measure_linear(request: LinearRequest) -> Iterator[LinearProgress]:
    """Time every method within the budgets, then compute condition numbers.

    Yields
    ------
    LinearProgress
        After every step: the completed fraction, the current activity, and a result, if there is one.
    """
    todo, steps = _plan(request.sizes), len(condition_grid(request.past))
    total = len(todo) + steps
    last: dict[tuple[str, CostAxis], Timing] = {}
    with one_thread():
        for kind in LINEAR_METHODS:  # compile what is compiled on first use
            _timed(kind, LinearSizes.of(2, 10, 2), request)
    done: set[tuple[str, LinearSizes]] = set()
    for i, (kind, axis, sizes) in enumerate(todo):
        timing = None
        if (kind, sizes) not in done and _fits(kind, sizes) and _affordable(kind, axis, sizes, last.get((kind, axis))):
            with one_thread():
                timing = last[kind, axis] = _timed(kind, sizes, request)
            done.add((kind, sizes))
        name = "d" if axis == "p" else axis
        yield LinearProgress(
            (i + 1) / total, f"{LINEAR_METHODS[kind].title} at {name} = {sizes.along(axis):,.0f}", timing
        )
    yield LinearProgress(len(todo) / total, "Condition numbers", None, timed=True)
    for i, condition in enumerate(follow(request)):
        yield LinearProgress(
            (len(todo) + i + 1) / total, f"Condition numbers at t = {condition.t:,}", condition, timed=True
        )


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


def _plan(base: LinearSizes) -> list[tuple[str, CostAxis, LinearSizes]]:
    K = base.K if base.K <= MAX_ARMS else FEW_ARMS
    grid = sorted({*FEATURES, int(base.d)})
    todo: list[tuple[str, CostAxis, LinearSizes]] = [
        (kind, "p", LinearSizes.of(K, base.t, d)) for d in grid for kind in LINEAR_METHODS
    ]
    arms = size_grid(2, MAX_ARMS, base.K, (1, 2, 5))
    return todo + [(kind, "K", LinearSizes.of(n, base.t, base.d)) for n in arms for kind in LINEAR_METHODS]


def _fits(kind: str, sizes: LinearSizes) -> bool:
    return sizes.K <= MAX_ARMS and LINEAR_METHODS[kind].memory(sizes) <= MEMORY_BUDGET


def _affordable(kind: str, axis: CostAxis, sizes: LinearSizes, last: Timing | None) -> bool:
    """Predict from the steepest growth whether these sizes keep the budget."""
    if last is None:
        return True
    ratio = sizes.along(axis) / last.sizes.along(axis)
    seconds = last.seconds * ratio ** LINEAR_METHODS[kind].exponents[axis]
    return seconds <= TIME_BUDGET and 4 * seconds <= SETUP_BUDGET


def _timed(kind: str, sizes: LinearSizes, request: LinearRequest) -> Timing:
    K, d = int(sizes.K), int(sizes.d)
    generator = Streams(request.seed, (0,)).generator("world")
    method: LinearMethod = LINEAR_REGISTRY[kind](K, d, request.ridge)
    x = features(generator, K, d, request.correlation)
    for arm in range(min(SHORT_PAST, K)):
        method.predict(x)
        method.update(arm, x[arm], 1.0)
    decide, update = repeat(lambda: method.predict(x), lambda arm: method.update(arm, x[arm], 1.0))
    return Timing(kind, sizes, decide, update, method.allocated())
