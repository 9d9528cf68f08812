"""Refine a grid around its best point, until the best value of every parameter is enclosed by near
ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bandits.agents.guards.params import GuardParams
from bandits.base.formatting import number
from bandits.base.params import Params

from .analysis.landscape import Landscape
from .axis import Axis, Value, rounded
from .parameters import allows, bounds, is_integer, is_scale
from .sweep import Sweep, owner_of, read

# of the best value and its neighbours
MAX_RATIO = 2.0
# values added beyond an edge of the grid
EDGE_VALUES = 3
# of a ratio: values are rounded to six digits
TOLERANCE = 1e-4


class Unresolved(NamedTuple):
    """A parameter of which a better value may lie between or beyond the values of the grid.

    Attributes
    ----------
    path, title : str
    best : float
        Value at the best point.
    edge : str
        "smallest" or "largest" if the best value is at that edge of the grid; else empty.
    neighbours : tuple of float
        The next values, if one is farther away than a factor `MAX_RATIO`.
    added : tuple of float
        Values that a refinement adds.
    """

    path: str
    title: str
    best: float
    edge: str
    neighbours: tuple[float, ...]
    added: tuple[float, ...]

    def sentence(self) -> str:
        """State in one sentence where a better value may lie."""
        best = f"The best {self.title[:1].lower() + self.title[1:]}, {number(self.best)},"
        if self.edge:
            where = "below" if self.edge == "smallest" else "above"
            return f"{best} is the {self.edge} of the grid: a better value may lie {where} it."
        near = " and ".join(map(number, self.neighbours))
        far = (
            f"is more than a factor of {MAX_RATIO:g} from its "
            f"neighbour{'s' * (len(self.neighbours) > 1)} {near}"
        )
        return f"{best} {far}: a better value may lie between."


def refinable_axes(sweep: Sweep) -> list[int]:
    """Return the positions of the axes between whose values there are others: numbers of
    the agent.
    """
    return [
        i
        for i, axis in enumerate(sweep.axes)
        if axis.path.startswith("agents.") and all(_is_number(v) for v in sweep.values[i])
    ]


def unresolved(landscape: Landscape, metric: str) -> list[Unresolved]:
    """Find the agent's numeric parameters whose best value is at an edge of the grid or beside a
    wide gap.

    A gap is wide from a factor `MAX_RATIO`. The gap between 0 and a positive value has no factor:
    it is wide unless the two are statistically tied. An edge that is a limit of the parameter is
    none.

    Parameters
    ----------
    landscape : Landscape
        Of a grid, finished.
    metric : str

    Returns
    -------
    list of Unresolved
        In the order of the axes; empty if nothing is unresolved or there is no best point.
    """
    sweep, leader = landscape.sweep, landscape.leader(metric)
    if leader is None or not sweep.is_grid:
        return []
    region, at = (
        landscape.best_region(metric).reshape(sweep.shape),
        np.unravel_index(leader, sweep.shape),
    )
    found = []
    for i in refinable_axes(sweep):
        values = sweep.values[i]
        line = region[tuple(slice(None) if j == i else int(k) for j, k in enumerate(at))]
        tied = {float(v) for v, same in zip(values, line.tolist(), strict=True) if same}  # type: ignore[arg-type]
        numbers = [float(v) for v in values]  # type: ignore[arg-type]
        found.append(_of_axis(sweep, sweep.axes[i], numbers[int(at[i])], sorted(numbers), tied))
    return [one for one in found if one is not None]


def refine(landscape: Landscape, metric: str | None = None) -> Sweep | None:
    """Return the sweep with values added around the best point.

    None if every parameter is resolved.

    Raises
    ------
    UserError
        If the refined grid has too many points, or was refined too often.
    """
    metric = metric or landscape.sweep.metric
    sweep, found = landscape.sweep, unresolved(landscape, metric)
    if not found:
        return None
    added = {one.path: list(one.added) for one in found}
    data = sweep.model_dump(mode="json", exclude={"proposed"})
    return read({**data, "refinements": [*data.get("refinements", []), added]})


def _of_axis(
    sweep: Sweep, axis: Axis, best: float, values: list[float], tied: set[float]
) -> Unresolved | None:
    params = owner_of(sweep.experiment, axis)
    owner, at = type(params), values.index(best)
    integers, edge, neighbours, added = (
        is_integer(owner, axis.name),
        "",
        list[float](),
        list[float](),
    )
    for neighbour, inner in ((at - 1, at + 1), (at + 1, at - 1)):
        if 0 <= neighbour < len(values):
            if between := _between(best, values[neighbour], tied):
                neighbours.append(values[neighbour])
                added += between
        elif beyond := _beyond(owner, axis, best, values[inner]):
            edge = "smallest" if neighbour < 0 else "largest"
            added += beyond
    new = tuple(v for v in map(float, rounded(sorted(added), integers)) if v not in values)
    if not new:
        return None
    title = str(owner.model_fields[axis.name].title)
    # several guards may have a parameter of this name
    if isinstance(params, GuardParams):
        title += f" of guard {axis.guard} ({params.title.lower()})"
    return Unresolved(axis.path, title, best, edge, tuple(neighbours), new)


def _between(best: float, neighbour: float, tied: set[float]) -> list[float]:
    """Return values that divide a wide gap into ratios of at most `MAX_RATIO`."""
    low, high = sorted((best, neighbour))
    if low <= 0 <= high or low < 0:  # no ratio
        if neighbour in tied or low < 0:
            return []
        return [high / 4, high / 2]
    parts = math.ceil(math.log(high / low) / math.log(MAX_RATIO) - TOLERANCE)
    return [low * (high / low) ** (k / parts) for k in range(1, parts)]


def _beyond(owner: type[Params], axis: Axis, edge: float, inner: float) -> list[float]:
    """Return allowed values beyond an edge of the grid: at equal ratios for a scale, else at equal
    steps.
    """
    integer, step = is_integer(owner, axis.name), edge - inner
    if edge > 0 and (axis.scale == "log" or is_scale(owner, axis.name)):
        wanted = [edge * MAX_RATIO ** (k if step > 0 else -k) for k in range(1, EDGE_VALUES + 1)]
    else:
        wanted = [edge + k * step for k in range(1, EDGE_VALUES + 1)]
    limit = bounds(owner, axis.name)[step > 0]
    if limit is not None:
        wanted = [max(v, limit) if step < 0 else min(v, limit) for v in wanted]
    return [
        v
        for v in dict.fromkeys(wanted)
        if v != edge and allows(owner, axis.name, round(v) if integer else v)
    ]


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
