"""Collect the measurements of LinUCB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

from bandits.width_cost.request import CostAxis
from bandits.width_cost.results import ScalingReport, Timing

from .complexity import LINEAR_METHODS
from .request import LinearRequest


class Condition(NamedTuple):
    """Condition number of A before inversion after t observations, and the errors of A^-1.

    Attributes
    ----------
    t, d, arms : int
        Observations (of all requested arms), features, and arms that were simulated.
    median, largest : float
        Over the arms: ratio of the largest to the smallest eigenvalue of A.
    errors : dict
        Largest entry of |A A^-1 - I| over the arms, by method.
    """

    t: int
    d: int
    arms: int
    median: float
    largest: float
    errors: dict[str, float]


class LinearProgress(NamedTuple):
    """Completed fraction, current activity, new result, and whether timing has ended."""

    fraction: float
    activity: str
    result: Timing | Condition | None
    timed: bool = False


@dataclass(frozen=True)
class LinearReport(ScalingReport[LinearRequest]):
    """All results of a measurement of LinUCB so far.

    Attributes
    ----------
    request, timings, timed
        See `ScalingReport`; axis "p" is the number of features d.
    conditions : tuple of Condition
        In the order of t.
    """

    methods = LINEAR_METHODS
    lowest: ClassVar[Mapping[CostAxis, float]] = {"p": 2, "t": 10, "K": 2}

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def from_progress(cls, request: LinearRequest, steps: Iterable[LinearProgress]) -> Self:
        """Collect all results of a measurement."""
        report = cls(request)
        for progress in steps:
            report = report.updated(progress)
        return report

    def updated(self, progress: LinearProgress) -> Self:
        """Add the result of one more step."""
        timings, conditions = self.timings, self.conditions
        if isinstance(progress.result, Timing):
            timings = (*timings, progress.result)
        elif progress.result is not None:
            conditions = (*conditions, progress.result)
        return replace(self, timings=timings, conditions=conditions, timed=self.timed or progress.timed)
