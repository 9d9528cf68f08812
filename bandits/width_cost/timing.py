"""Time a method within budgets, and plan the sizes at which it is timed."""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from .complexity import CostAxis, Sizes
from .request import CostRequest
from .results import Agreement, Condition, Timing

# seconds of a decision with its update, at most
TIME_BUDGET = 0.5
# seconds to reach the state that is measured, at most
SETUP_BUDGET = 1.5
# bytes of a method
MEMORY_BUDGET = 256 * 2**20
# seconds of repetitions
REPEAT_FOR = 0.02
# observations, for methods whose time does not depend on their number
SHORT_PAST = 3

# processor time of this thread, hardly affected by other load; wall time where its resolution is
# too coarse
clock = (
    time.thread_time if time.get_clock_info("thread_time").resolution < 1e-5 else time.perf_counter
)


class GridStep(NamedTuple):
    """Time spent on the last sizes of a grid, to predict that of the next."""

    sizes: Sizes
    seconds: float
    setup: float


class Grids(ABC):
    """The sizes at which the methods of a request are timed, and how.

    Attributes
    ----------
    smallest : Sizes
        Timed first, to import and compile what is needed.
    activity : str
        What is computed after the times.
    """

    smallest: Sizes
    activity: str

    def __init__(self, request: Any) -> None:
        self.request = request

    @abstractmethod
    def plan(self) -> list[tuple[str, CostAxis, Sizes]]:
        """List method, axis and sizes of all timings, small sizes first."""

    def anchored(self, kind: str, axis: CostAxis, sizes: Sizes, largest: float) -> Sizes:  # noqa: ARG002
        """Reduce the other sizes where the requested ones cannot be measured.

        ``largest`` is the largest p so far.
        """
        return sizes

    @abstractmethod
    def fits(self, kind: str, sizes: Sizes) -> bool:
        """Return whether a method may be timed at these sizes."""

    @abstractmethod
    def timed(self, kind: str, sizes: Sizes) -> tuple[Timing, GridStep]:
        """Time a method."""

    @property
    @abstractmethod
    def weight(self) -> int:
        """Part of the comparisons in the progress; a timing is 1."""

    @abstractmethod
    def comparisons(self) -> Iterator[tuple[int, str, Sequence[Agreement | Condition]]]:
        """Compute what comes after the times: completed part of the weight, current activity,
        results.
        """


def affordable(
    request: CostRequest, kind: str, axis: CostAxis, sizes: Sizes, last: GridStep | None
) -> bool:
    """Predict whether these sizes keep the budgets.

    The prediction assumes the steepest growth from the last step of the grid.
    """
    if last is None:
        return True
    ratio = sizes.along(axis) / last.sizes.along(axis)
    exponent = request.methods[kind].exponents[axis]
    setup = last.setup * ratio ** (3 if axis == "t" else exponent)
    return last.seconds * ratio**exponent <= TIME_BUDGET and setup <= SETUP_BUDGET


def size_grid(
    low: float, high: float, include: float, multiples: tuple[int, ...] = (1, 3)
) -> list[int]:
    """Return round numbers from ``low`` to ``high``, and the requested one."""
    grid = {m * 10**e for e in range(7) for m in multiples if low <= m * 10**e <= high}
    return sorted(grid | {round(include)})


def repeat(
    decide_once: Callable[[], object], update_once: Callable[[int], object]
) -> tuple[float, float]:
    """Return the median seconds of a decision and of its update, which receives 0 and 1 in turn."""
    spent: list[tuple[float, float]] = []
    began = clock()
    while len(spent) < 3 or (clock() - began < REPEAT_FOR and len(spent) < 30):
        start = clock()
        decide_once()
        middle = clock()
        update_once(len(spent) % 2)
        spent.append((middle - start, clock() - middle))
        # far slower than predicted
        if spent[0][0] > TIME_BUDGET:
            break
    decide, update = (statistics.median(column) for column in zip(*spent, strict=True))
    return decide, update


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
