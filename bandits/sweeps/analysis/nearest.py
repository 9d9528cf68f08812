"""Find results for an agent in finished sweeps: the nearest computed point to its settings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bandits.base.params import Params, hash_content
from bandits.experiments.experiment import Experiment
from bandits.results.metrics import Estimate
from bandits.sweeps.axis import Axis, Value
from bandits.sweeps.sweep import Sweep, owner_of

# of the range of every parameter, within which a scattered point stands for a setting
NEAR = 0.1
# point -> click-through rate and replications
PointLookup = Callable[[int], tuple[Estimate, int] | None]


class NearestPoint(NamedTuple):
    """The computed point of a sweep that is nearest to an agent.

    Attributes
    ----------
    label : str
        Label of the agent.
    sweep : Sweep
    point : int
        Number of the point in the sweep.
    exact : bool
        The agent has exactly the values of the point.
    estimate : Estimate
        Click-through rate of the point.
    runs : int
        Number of replications behind the estimate.
    """

    label: str
    sweep: Sweep
    point: int
    exact: bool
    estimate: Estimate
    runs: int


def _positions(sweep: Sweep, experiment: Experiment, agent: int) -> list[float] | None:
    """Return an agent's position on every axis, in steps between its values.

    None if it differs in anything else.
    """
    swept = sweep.experiment
    if (swept.seed, swept.steps) != (experiment.seed, experiment.steps):
        return None
    pairs = (
        ("simulator", swept.simulator, experiment.simulator),
        ("agents.0", swept.agents[0], experiment.agents[agent]),
    )
    for prefix, theirs, ours in pairs:
        free = [axis for axis in sweep.axes if axis.path.startswith(f"{prefix}.")]
        if _fixed(theirs, free) != _fixed(ours, free):
            return None
    found = [
        _grid_position(axis, values, _value(experiment, agent, axis))
        for axis, values in zip(sweep.axes, sweep.values, strict=True)
    ]
    known = [position for position in found if position is not None]
    return known if len(known) == len(found) else None


def nearest_points(
    swept: Sequence[tuple[Sweep, PointLookup]], experiment: Experiment
) -> list[NearestPoint]:
    """Find the nearest computed point for every agent that one of these sweeps covers, in grid
    steps.
    """
    found: list[NearestPoint] = []
    for agent, label in enumerate(experiment.labels):
        candidates = [
            point
            for sweep, lookup in swept
            if (point := _nearest(sweep, lookup, experiment, agent, label)) is not None
        ]
        if candidates:
            found.append(max(candidates, key=lambda point: (point.exact, point.runs)))
    return found


def _nearest(
    sweep: Sweep, lookup: PointLookup, experiment: Experiment, agent: int, label: str
) -> NearestPoint | None:
    if not sweep.is_grid or (positions := _positions(sweep, experiment, agent)) is None:
        return None
    at = [round(position) for position in positions]
    point = 0
    for index, size in zip(at, sweep.shape, strict=True):
        point = point * size + index
    if (found := lookup(point)) is None:
        return None
    exact = all(position == index for position, index in zip(positions, at, strict=True))
    return NearestPoint(label, sweep, point, exact, *found)


def nearest_proposed(
    sweep: Sweep, lookup: PointLookup, experiment: Experiment, agent: int = 0
) -> NearestPoint | None:
    """Find the computed point of scattered ones that is nearest to an agent.

    None if the agent differs in more than the swept parameters, or if every point differs from it
    by more than `NEAR` of the range of a parameter, or in a parameter that takes values of a list.
    """
    if sweep.is_grid or (ours := _positions(sweep, experiment, agent)) is None:
        return None
    near = list[tuple[float, int]]()
    for point, values in enumerate(sweep.proposed):
        theirs = [
            _grid_position(a, ends, v)
            for a, ends, v in zip(sweep.axes, sweep.values, values, strict=True)
        ]
        gaps = [math.inf if t is None else abs(t - o) for t, o in zip(theirs, ours, strict=True)]
        if max(gaps) <= NEAR:
            near.append((max(gaps), point))
    for gap, point in sorted(near):
        if (found := lookup(point)) is not None:
            return NearestPoint(experiment.labels[agent], sweep, point, gap == 0, *found)
    return None


def _fixed(params: Params, free: list[Axis]) -> dict[str, Any]:
    """Return what no axis varies; the label does not matter."""
    content = hash_content(params)
    content.pop("label", None)
    for axis in free:
        for name in axis.names:
            if axis.guard is None:
                content.pop(name, None)
            elif axis.guard < len(content.get("guards", ())):
                content["guards"][axis.guard].pop(name, None)
    return content


def _value(experiment: Experiment, agent: int, axis: Axis) -> Value:
    owner = owner_of(experiment, axis, agent)
    if len(axis.names) > 1:
        equal = (
            v
            for v in axis.values or ()
            if all(getattr(owner, n) == x for n, x in axis.assigned(v).items())
        )
        return next(equal, None)
    value: Value = getattr(owner, axis.name)
    return value


def _grid_position(axis: Axis, values: tuple[Value, ...], value: Value) -> float | None:
    """Return the position of a value among an axis's values, in grid steps; None outside."""
    if value in values:
        return float(values.index(value))
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) < len(values) or not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    for i, (low, high) in enumerate(itertools.pairwise(numbers)):
        if min(low, high) < value < max(low, high):
            log = axis.scale == "log" and axis.values is None and min(low, high) > 0
            a, b, v = (math.log(x) if log else float(x) for x in (low, high, value))
            return i + (v - a) / (b - a)
    return None
