"""Time all methods of a request, then compare their widths or follow the condition number.

Here or in a child process.

One measurement runs at a time, because two would slow each other down; others wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bandits.base.processes import ChildTask, Line

from .complexity import CostAxis, Sizes
from .linear import LinearGrids
from .neural_grids import NeuralGrids
from .request import CostRequest, LinearRequest
from .results import CostReport, Progress
from .timing import Grids, GridStep, affordable, one_thread


def measure(request: CostRequest) -> Iterator[Progress]:
    """Time every method within the budgets, then compute what is compared beside the times.

    Small sizes come first.

    Yields
    ------
    Progress
        After every step: the completed fraction, the current activity, and a result, if there is
        one.
    """
    grids: Grids = (
        LinearGrids(request) if isinstance(request, LinearRequest) else NeuralGrids(request)
    )
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


LINE = Line("measurements", waiting=8, seconds=300.0, variables={"BANDITS_DEVICE": "cpu"})


class Measurement(ChildTask):
    """One measurement, started when it is created.

    Attributes
    ----------
    report : CostReport
        Results so far.
    fraction : float
        Completed fraction.
    activity : str
        What is measured at present.
    """

    def __init__(self, request: CostRequest) -> None:
        self.report = CostReport(request)
        self.fraction, self.activity = 0.0, ""
        super().__init__(LINE, measured, request)

    def receive(self, message: Progress) -> None:
        self.report = self.report.updated(message)
        self.fraction, self.activity = message.fraction, message.activity


def measured(request: CostRequest, send: Callable[[Progress], None]) -> None:
    """Measure and send every step."""
    for progress in measure(request):
        send(progress)
