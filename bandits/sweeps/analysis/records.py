"""What a landscape states: the result of a point, and the importance of a parameter."""

from __future__ import annotations

from typing import Literal, NamedTuple

from bandits.results.metrics import Estimate
from bandits.sweeps.axis import Value

State = Literal["tied", "unclear", "worse", "dropped"]


class PointResult(NamedTuple):
    """The result of one point.

    Attributes
    ----------
    point : int
    values : tuple
        Of each axis.
    estimate : Estimate
        Mean over replications and its 95 % interval (`Landscape.adjusted`). The estimate of the
        best point is biased upwards by its selection.
    runs : int
        Number of replications behind the estimate; diverged ones are excluded.
    diverged : int
        Number of diverged replications.
    gap : Estimate
        Paired difference to the best point; negative values are worse. The interval agrees with
        ``best``: it is corrected for the choice of the best point by the same data.
    best : bool
        Not significantly worse than the best point.
    state : {"tied", "unclear", "worse", "dropped"}
        tied: not significantly worse, and at most `landscape.EQUIVALENT` worse for sure. unclear:
        not significantly worse, but the interval allows a larger loss. worse: significantly.
        dropped: eliminated by the search before its last replication.
    """

    point: int
    values: tuple[Value, ...]
    estimate: Estimate
    runs: int
    diverged: int
    gap: Estimate
    best: bool
    state: State

    @property
    def dropped(self) -> bool:
        """Whether the search has eliminated the point."""
        return self.state == "dropped"


class Importance(NamedTuple):
    """The importance of one parameter on a grid.

    Attributes
    ----------
    path : str
    best : Value
        Its value at the best point.
    good : tuple
        Its values at the points that are tied with the best.
    worst : Value
        The value with which even the best choice of the other parameters is worst.
    cost : Estimate
        Sensitivity: clicks per 1,000 steps lost with the worst value, paired by replication; the
        interval is corrected for the choice of both points by the same data.
    share : float
        Explained variance between points: the first-order Sobol index on the grid, corrected for
        sampling noise; NaN if there is no other parameter.
    matters : bool
        At least one value is outside the best region. Otherwise the differences may be sampling
        noise.
    """

    path: str
    best: Value
    good: tuple[Value, ...]
    worst: Value
    cost: Estimate
    share: float
    matters: bool


class Explained(NamedTuple):
    """The importance of one parameter among scattered points.

    Attributes
    ----------
    path : str
    best : Value
        Its value at the best point.
    good : tuple
        Smallest and largest tied value for a range, all tied values for a list.
    share : float
        Explained variance between points (`importance.explained_shares`).
    """

    path: str
    best: Value
    good: tuple[Value, ...]
    share: float
