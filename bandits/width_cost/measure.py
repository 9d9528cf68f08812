"""Time all methods of a request, then compare their widths or follow the condition number."""

from __future__ import annotations

from collections.abc import Iterator

from .linear_grids import LinearGrids
from .neural_grids import NeuralGrids
from .request import CostRequest, LinearRequest
from .results import Progress
from .sizes import CostAxis, Sizes
from .timing import Grids, GridStep, affordable, one_thread


def measure(request: CostRequest) -> Iterator[Progress]:
    """Time every method within the budgets, then compute what is compared beside the times.

    Small sizes come first.

    Yields
    ------
    Progress
        After every step: the completed fraction, the current activity, and a result, if there is one.
    """
    grids: Grids = LinearGrids(request) if isinstance(request, LinearRequest) else NeuralGrids(request)
    todo = grids.plan()
    total = len(todo) + grids.weight
    last_steps: dict[tuple[str, CostAxis, Sizes], GridStep] = {}
    done: set[tuple[str, Sizes]] = set()
    largest: dict[str, float] = {}
    with one_thread():
        for kind in request.methods:
            grids.timed(kind, grids.smallest)
    for i, (kind, axis, planned) in enumerate(todo):
        sizes, timing = grids.anchored(kind, axis, planned, largest.get(kind, 0)), None
        grid = kind, axis, sizes.without(axis)
        new = (kind, sizes) not in done and grids.fits(kind, sizes)
        if new and affordable(request, kind, axis, sizes, last_steps.get(grid)):
            with one_thread():
                timing, last_steps[grid] = grids.timed(kind, sizes)
            done.add((kind, sizes))
            largest[kind] = max(largest.get(kind, 0), sizes.p)
        at = f"{request.axes[axis].symbol} = {sizes.along(axis):,.0f}"
        yield Progress((i + 1) / total, f"{request.methods[kind].title} at {at}", timing)
    yield Progress(len(todo) / total, grids.activity, None, timed=True)
    for part, activity, results in grids.comparisons():
        for result in results:
            yield Progress((len(todo) + part) / total, activity, result, timed=True)
