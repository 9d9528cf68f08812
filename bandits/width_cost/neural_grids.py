"""Time the methods over grids of sizes, within a budget."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bandits.base.randomness import Streams
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP

from .complexity import FULL_MATRIX, METHODS, dual_capacity
from .request import CostAxis, ProfileRequest, Sizes
from .results import Progress, Timing

if TYPE_CHECKING:
    from torch import Tensor

TIME_BUDGET = 0.5  # seconds of a decision with its update, at most
SETUP_BUDGET = 1.5  # seconds to reach the state that is measured, at most
MEMORY_BUDGET = 256 * 2**20  # bytes of a method
MATRIX_BUDGET = 128 * 2**20  # bytes of one p x p matrix
REPEAT_FOR = 0.02  # seconds of repetitions
SHORT_PAST = 3  # observations, for methods whose time does not depend on their number
MIN_WEIGHTS = 120  # of the smallest network
FEW_CANDIDATES = 50
MAX_PASSES = 500  # candidates with one backward pass each
MAX_CANDIDATES, MANY_CANDIDATES = (
    5000,
    1000,
)  # that are measured at most; that other grids have where more are requested
_COARSE, _FINE = (1, 3), (1, 2, 3, 5)

# processor time of this thread, hardly affected by other load; wall time where its resolution is too coarse
_clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-5 else time.perf_counter


class GridStep(NamedTuple):
    """Time spent on the last sizes of a grid, to predict that of the next."""

    sizes: Sizes
    seconds: float
    setup: float


def measure(request: ProfileRequest) -> Iterator[Progress]:
    """Time every method within the budgets, then compare their widths.

    Small sizes come first.

    Yields
    ------
    Progress
        After every step: the completed fraction, the current activity, and a result, if there is one.
    """
    from . import agreement

    base = request.sizes
    todo = _plan(base)
    total = len(todo) + len(agreement.CASES) * 10
    last_steps: dict[tuple[str, CostAxis, Sizes], GridStep] = {}
    done: set[tuple[str, Sizes]] = set()
    largest: dict[str, float] = {}
    with one_thread():
        for kind in METHODS:  # import and compile what is needed on first use
            _timed(kind, Sizes(2, 10, (2, 2, 1)), request.seed)
    for i, (kind, axis, sizes) in enumerate(todo):
        sizes = _anchored(kind, axis, sizes, largest.get(kind, 0))
        timing = None
        grid = kind, axis, sizes.without(axis)
        if (kind, sizes) not in done and _fits(kind, sizes) and _affordable(kind, axis, sizes, last_steps.get(grid)):
            with one_thread():
                timing, last_steps[grid] = _timed(kind, sizes, request.seed)
            done.add((kind, sizes))
            largest[kind] = max(largest.get(kind, 0), sizes.p)
        yield Progress((i + 1) / total, f"{METHODS[kind].title} at {axis} = {sizes.along(axis):,.0f}", timing)
    yield Progress(len(todo) / total, "Comparing the widths", None, timed=True)
    for i, case in enumerate(agreement.CASES):
        with one_thread():
            compared = agreement.compare_methods(request, case)
        for each in compared:
            yield Progress((len(todo) + (i + 1) * 10) / total, "Comparing the widths", each, timed=True)


def size_grid(low: float, high: float, include: float, multiples: tuple[int, ...] = _COARSE) -> list[int]:
    """Return round numbers from ``low`` to ``high``, and the requested one."""
    grid = {m * 10**e for e in range(7) for m in multiples if low <= m * 10**e <= high}
    return sorted(grid | {round(include)})


def network_grid(base: Sizes) -> list[Sizes]:
    """Scale the hidden layers of the requested network, narrow ones first."""
    grid, half_steps = [base], 1
    while grid[0].p > MIN_WEIGHTS and len(grid) < 40:
        narrower = base.scaled(2 ** (-half_steps / 2)).rounded()
        if narrower.widths != grid[0].widths:
            grid.insert(0, narrower)
        elif max(narrower.widths[1:-1]) == 1:
            break
        half_steps += 1
    return [*grid, *(base.scaled(2**i).rounded() for i in (1, 2, 3))]


def _plan(base: Sizes) -> list[tuple[str, CostAxis, Sizes]]:
    networks = network_grid(base)
    todo: list[tuple[str, CostAxis, Sizes]] = [(kind, "p", sizes) for sizes in networks for kind in METHODS]
    if base.K > 2 * FEW_CANDIDATES:  # with many candidates, the growth with p would not show
        todo += [(kind, "p", sizes._replace(K=FEW_CANDIDATES)) for sizes in networks for kind in FULL_MATRIX]
    todo += [("dual", "t", base._replace(t=t)) for t in size_grid(50, 5000, base.t, _FINE)]
    return todo + [(kind, "K", base._replace(K=K)) for K in size_grid(10, 2000, base.K) for kind in METHODS]


def _anchored(kind: str, axis: CostAxis, sizes: Sizes, largest: float) -> Sizes:
    """Reduce the other sizes where the requested ones cannot be measured.

    So the growth along ``axis`` is known.
    """
    if axis == "K" and kind in FULL_MATRIX and largest < sizes.p:
        cheap = [step.widths for step in network_grid(sizes) if step.p * 3 <= largest]  # allows many candidates
        return sizes._replace(widths=cheap[-1] if cheap else network_grid(sizes)[0].widths)
    if axis != "K" and sizes.K > MAX_CANDIDATES:
        sizes = sizes._replace(K=MANY_CANDIDATES)
    if kind == "dual" and axis != "t" and not _fits(kind, sizes):
        return sizes._replace(t=1000)
    return sizes


def _fits(kind: str, sizes: Sizes) -> bool:
    most = MAX_PASSES if kind == "passes" else MAX_CANDIDATES
    if most < sizes.K:
        return False
    if kind == "ensemble" and 4 * sizes.members * sizes.K * sum(sizes.widths) > MEMORY_BUDGET:  # while it predicts
        return False
    matrix = 4 * sizes.p**2 if kind in FULL_MATRIX else 8 * dual_capacity(sizes.t + 1) ** 2 if kind == "dual" else 0
    return matrix <= MATRIX_BUDGET and METHODS[kind].memory(sizes) <= MEMORY_BUDGET


def _affordable(kind: str, axis: CostAxis, sizes: Sizes, last: GridStep | None) -> bool:
    """Predict whether these sizes keep the budgets.

    The prediction assumes the steepest growth from the last step of the grid.
    """
    if last is None:
        return True
    ratio = sizes.along(axis) / last.sizes.along(axis)
    exponent = METHODS[kind].exponents[axis]
    setup = last.setup * ratio ** (3 if axis == "t" else exponent)
    return last.seconds * ratio**exponent <= TIME_BUDGET and setup <= SETUP_BUDGET


def _timed(kind: str, sizes: Sizes, seed: int) -> tuple[Timing, GridStep]:
    from .methods import REGISTRY

    began = _clock()
    net, past, x = _inputs(sizes, seed)
    past = past if METHODS[kind].exponents["t"] else past[:SHORT_PAST]
    method = REGISTRY[kind].for_sizes(net, sizes)
    method.replay(past)
    setup = _clock() - began
    method.widths(x)
    memory = method.allocated()
    method.update(0)  # a first decision and update that are not timed
    decide, update = repeat(lambda: method.widths(x), method.update)
    return Timing(kind, sizes, decide, update, memory), GridStep(sizes, decide + update, setup)


def repeat(decide_once: Callable[[], object], update_once: Callable[[int], object]) -> tuple[float, float]:
    """Return the median seconds of a decision and of its update, which receives 0 and 1 in turn."""
    spent: list[tuple[float, float]] = []
    began = _clock()
    while len(spent) < 3 or (_clock() - began < REPEAT_FOR and len(spent) < 30):
        start = _clock()
        decide_once()
        middle = _clock()
        update_once(len(spent) % 2)
        spent.append((middle - start, _clock() - middle))
        if spent[0][0] > TIME_BUDGET:  # far slower than predicted
            break
    decide, update = (statistics.median(column) for column in zip(*spent, strict=True))
    return decide, update


def _inputs(sizes: Sizes, seed: int) -> tuple[BatchedMLP, Tensor, Tensor]:
    """Draw a network, past observations (t, D) and candidates (K, D)."""
    import torch

    streams, widths = Streams(seed, (0,)), [int(width) for width in sizes.widths]
    net = BatchedMLP(initial_weights(streams, widths, part=1), widths)
    generator = streams.generator("world")
    past, x = (torch.from_numpy(generator.normal(size=(int(n), widths[0]))).float() for n in (sizes.t, sizes.K))
    return net, past, x


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread, so that times do not depend on other processes."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
