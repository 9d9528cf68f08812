"""What a sweep already says of an agent that has not been run: the nearest of its points answers at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bandits.base.params import Params, hash_content
from bandits.experiments.experiment import Experiment
from bandits.results.metrics import Estimate
from bandits.sweeps.sweep import Axis, Sweep, Value

PointLookup = Callable[[int], tuple[Estimate, int] | None]  # a point's click rate, and the runs it rests on


class NearestPoint(NamedTuple):
    """The nearest swept point to an agent.

    Attributes
    ----------
    label : str
        Of the agent.
    point : int
        Of the sweep.
    exact : bool
        The agent is that point.
    estimate : Estimate
        Its click rate.
    runs : int
    """

    label: str
    sweep: Sweep
    point: int
    exact: bool
    estimate: Estimate
    runs: int


def speaks_of(sweep: Sweep, experiment: Experiment, agent: int) -> bool:
    """Whether an agent differs from a sweep's points in nothing but what was swept, and lies among them."""
    swept = sweep.experiment
    if not sweep.is_grid:  # of scattered points the nearest may be far
        return False
    if (swept.seed, swept.steps) != (experiment.seed, experiment.steps):
        return False
    pairs = (
        ("simulator", swept.simulator, experiment.simulator),
        ("agents.0", swept.agents[0], experiment.agents[agent]),
    )
    for prefix, theirs, ours in pairs:
        free = {axis.name for axis in sweep.axes if axis.path.startswith(f"{prefix}.")} | {"label"}
        if _fixed(theirs, free) != _fixed(ours, free):
            return False
    return all(
        _between(axis, values, _value(experiment, agent, axis)) is not None
        for axis, values in zip(sweep.axes, sweep.values, strict=True)
    )


def nearest_points(swept: Sequence[tuple[Sweep, PointLookup]], experiment: Experiment) -> list[NearestPoint]:
    """For every agent that one of these sweeps speaks of: its nearest known point, by steps of the sweep's axes."""
    found: list[NearestPoint] = []
    for agent, label in enumerate(experiment.labels):
        answers = [a for sweep, known in swept if (a := _answer(sweep, known, experiment, agent, label)) is not None]
        if answers:
            found.append(max(answers, key=lambda answer: (answer.exact, answer.runs)))
    return found


def _answer(sweep: Sweep, known: PointLookup, experiment: Experiment, agent: int, label: str) -> NearestPoint | None:
    if not speaks_of(sweep, experiment, agent):
        return None
    places = [
        _between(axis, values, _value(experiment, agent, axis)) or 0.0
        for axis, values in zip(sweep.axes, sweep.values, strict=True)
    ]
    at = [round(place) for place in places]
    point = 0
    for index, size in zip(at, sweep.shape, strict=True):
        point = point * size + index
    if (found := known(point)) is None:
        return None
    exact = all(place == index for place, index in zip(places, at, strict=True))
    return NearestPoint(label, sweep, point, exact, *found)


def _fixed(params: Params, free: set[str]) -> dict[str, object]:
    return {name: value for name, value in hash_content(params).items() if name not in free}


def _value(experiment: Experiment, agent: int, axis: Axis) -> Value:
    owner = experiment.simulator if axis.path.startswith("simulator.") else experiment.agents[agent]
    value: Value = getattr(owner, axis.name)
    return value


def _between(axis: Axis, values: tuple[Value, ...], value: Value) -> float | None:
    """Where a value lies among an axis's, in steps of it; None outside."""
    if value in values:
        return float(values.index(value))
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) < len(values) or not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    log = axis.scale == "log" and axis.values is None
    for i, (low, high) in enumerate(itertools.pairwise(numbers)):
        if min(low, high) < value < max(low, high):
            a, b, v = (math.log(x) if log else float(x) for x in (low, high, value))
            return i + (v - a) / (b - a)
    return None
