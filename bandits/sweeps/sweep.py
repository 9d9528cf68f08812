"""Declare and validate a sweep: an experiment with one agent, and the parameters to vary."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field, ValidationError, model_validator

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.params import Params, hash_content, param
from bandits.base.types import IntArray
from bandits.experiments.experiment import Experiment, require_truth
from bandits.experiments.experiment import read as read_experiment
from bandits.experiments.validation import describe_range, parse, refusal
from bandits.results.metric_registry import Objective, main_metric, objectives

from .axis import Axis, Value, rounded
from .parameters import is_integer, is_numeric, sweepable

MAX_POINTS = 1024  # of one sweep
# points times replications
MAX_ROWS = 65_536
MAX_AXES = 8
# points that Optuna proposes
MAX_PROPOSED = 512
# points proposed by a Gaussian process, whose cost grows with the cube of their number
MAX_GAUSSIAN = 128
# proposals per batch
MAX_BATCH = 64
MAX_REFINEMENTS = 8


def _usual_metric(experiment: Experiment) -> Objective:
    """Name the metric that ranks agents."""
    return cast("Objective", main_metric(experiment).name)


class Sweep(Params):
    """An experiment with one agent, and axes: dotted paths of parameters that take several values.

    A point assigns one value to each axis. It is an experiment of its own and gives the same
    numbers as if it were run alone (neural networks: up to rounding). All points share visitors and
    random numbers (common random numbers). The points form a grid, or are proposed by Optuna where
    there are too many axes for a grid.

    Raises
    ------
    pydantic.ValidationError
        If the sweep is invalid; `read` turns the error into one sentence.
    """

    experiment: Experiment = Field(
        title="Experiment", description="The experiment that all points share."
    )
    axes: tuple[Axis, ...] = param(
        ...,
        title="Axes",
        min_length=1,
        max_length=MAX_AXES,
        strict=False,
        help="The parameters to vary, and their values.",
    )
    search: Literal["grid", "halving", "optuna"] = param(
        "grid",
        title="Search",
        help=(
            "grid: all replications of all points. halving: a quarter of the replications first, "
            "then only points that are not significantly worse than the best. optuna: points "
            "proposed by Optuna, for many axes."
        ),
    )
    metric: Objective = Field(
        default_factory=lambda given: _usual_metric(given["experiment"]),
        title="Metric",
        description="The metric that ranks points; by default the one that ranks agents.",
    )
    number: int = param(
        64,
        title="Points",
        ge=2,
        le=MAX_PROPOSED,
        help=(
            "Number of points that Optuna proposes; more points search more thoroughly and take "
            "longer."
        ),
    )
    batch: int = param(
        8,
        title="Batch size",
        ge=1,
        le=MAX_BATCH,
        help=(
            "Number of points proposed before their results are reported to Optuna; smaller "
            "batches learn sooner, larger ones keep more processors busy."
        ),
    )
    sampler: Literal["tpe", "gp", "random"] = param(
        "tpe",
        title="Sampler",
        help=(
            "Optuna's sampling algorithm. tpe: tree-structured Parzen estimator. gp: Gaussian "
            "process, one to two seconds per point. random: uniform random points."
        ),
    )
    proposed: tuple[Annotated[tuple[Value, ...], Field(strict=False)], ...] = param(
        (),
        title="Proposed",
        max_length=MAX_PROPOSED,
        strict=False,
        exclude_if=lambda points: not points,
        help="Points that Optuna has proposed so far; filled in by the search.",
    )
    refinements: tuple[dict[str, Annotated[tuple[float, ...], Field(strict=False)]], ...] = param(
        (),
        title="Refinements",
        max_length=MAX_REFINEMENTS,
        strict=False,
        exclude_if=lambda added: not added,
        help=(
            "Values added to the grid after a look at the results, by path, one entry per "
            "refinement."
        ),
    )

    @property
    def is_grid(self) -> bool:
        """Whether the points form a grid."""
        return self.search != "optuna"

    @cached_property
    def values(self) -> tuple[tuple[Value, ...], ...]:
        """The values of each axis, refinements included; without a grid, its `Axis.limits`."""
        return tuple(map(self._values, self.axes))

    def _values(self, axis: Axis) -> tuple[Value, ...]:
        owner = type(owner_of(self.experiment, axis))
        integers = len(axis.names) == 1 and is_integer(owner, axis.name)
        if not self.is_grid:
            return axis.limits(integers)
        values, added = (
            axis.grid_values(integers),
            [v for step in self.refinements for v in step.get(axis.path, ())],
        )
        if not added:
            return values
        return tuple(
            sorted({v for v in [*values, *rounded(added, integers)] if isinstance(v, (int, float))})
        )

    @property
    def looks(self) -> int:
        """Number of times that the results were looked at: one more than refinements."""
        return 1 + len(self.refinements)

    @property
    def stages(self) -> tuple[Sweep, ...]:
        """This sweep before each refinement, and itself at the end."""
        return (*self._earlier, self)

    @cached_property
    def _earlier(self) -> tuple[Sweep, ...]:
        fields = dict(self)
        return tuple(
            Sweep.model_construct(**{**fields, "refinements": self.refinements[:n]})
            for n in range(len(self.refinements))
        )

    def points_of(self, stage: Sweep) -> IntArray:
        """Return the number in this sweep of every point of one of its stages, int64 (P,)."""
        at = [
            [ours.index(v) for v in theirs]
            for ours, theirs in zip(self.values, stage.values, strict=True)
        ]
        return (
            np.ravel_multi_index(np.meshgrid(*at, indexing="ij"), self.shape)
            .ravel()
            .astype(np.int64)
        )

    @cached_property
    def new_points(self) -> frozenset[int]:
        """Points that the last refinement added; all points of a sweep without refinements."""
        every = frozenset(range(self.size))
        return every - set(self.points_of(self.stages[-2]).tolist()) if self.refinements else every

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis of the grid."""
        return tuple(map(len, self.values))

    @property
    def size(self) -> int:
        """Number of points; without a grid, the maximum number of proposals."""
        return math.prod(self.shape) if self.is_grid else self.number

    @cached_property
    def points(self) -> tuple[Experiment, ...]:
        """The experiment of every point of the grid; the last axis varies fastest."""
        return tuple(map(self.with_values, itertools.product(*self.values))) if self.is_grid else ()

    def point(self, point: int) -> Experiment:
        """Return the experiment of one point."""
        return self.points[point] if self.is_grid else self.with_values(self.proposed[point])

    def values_at(self, point: int) -> tuple[Value, ...]:
        """Return the axis values of one point."""
        if not self.is_grid:
            return self.proposed[point]
        return tuple(
            v[i] for v, i in zip(self.values, np.unravel_index(point, self.shape), strict=True)
        )

    def with_proposals(self, proposed: Sequence[tuple[Value, ...]]) -> Sweep:
        """Return this sweep with these proposed points; the hash is unchanged."""
        return self.model_copy(update={"proposed": tuple(proposed)})

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what determines the numbers.

        Two ways to write the same range have the same hash.
        """
        e, search = self.experiment, [self.search, self.metric if self.search != "grid" else ""]
        axes: list[list[object]] = [
            [a.path, v] for a, v in zip(self.axes, self.values, strict=True)
        ]
        if not self.is_grid:
            search += [self.sampler, str(self.number), str(self.batch)]
            axes = [
                [*pair, a.scale if a.values is None else ""]
                for pair, a in zip(axes, self.axes, strict=True)
            ]
        refinements = {"refinements": self.refinements} if self.refinements else {}
        content = {
            **refinements,
            "simulator": hash_content(e.simulator),
            "agent": hash_content(e.agents[0]),
            "steps": e.steps,
            "seed": e.seed,
            "replications": e.replications,
            "axes": axes,
            "search": search,
        }
        return hashlib.sha256(
            json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()

    def with_values(self, values: Sequence[Value]) -> Experiment:
        """Return the experiment with these axis values.

        Raises
        ------
        pydantic.ValidationError
            If the values are not valid together.
        """
        data = self.experiment.model_dump(mode="json")
        for axis, value in zip(self.axes, values, strict=True):
            part = data["simulator"] if axis.path.startswith("simulator.") else data["agents"][0]
            (part if axis.guard is None else part["guards"][axis.guard]).update(
                axis.assigned(value)
            )
        return Experiment.model_validate_json(json.dumps(data))

    @model_validator(mode="after")
    def _check_points(self) -> Sweep:
        if (n := len(self.experiment.agents)) != 1:
            raise ValueError(f"a sweep varies one agent; its experiment has {n}")
        require_truth(self.experiment, "a sweep, whose points are compared by pairs,")
        if self.metric not in (known := objectives(self.experiment)):
            raise ValueError(
                f"metric {self.metric} is not known in the simulator "
                f"{self.experiment.simulator_class().title}; known are {', '.join(known)}"
            )
        paths = [axis.path_of(name) for axis in self.axes for name in axis.names]
        if repeated := next((p for p in paths if paths.count(p) > 1), None):
            raise ValueError(f"axes: {repeated} is listed twice")
        for i, axis in enumerate(self.axes):
            _check_parameter(self.experiment, axis, i)
        self._check_refinements()
        for axis, values in zip(self.axes, self.values, strict=True):
            if len(values) < 2:
                raise ValueError(
                    f"axes: {axis.path} has only one value between {axis.low:g} and {axis.high:g}"
                )
        if self.size > MAX_POINTS:
            raise ValueError(
                f"the sweep has {self.size:,} points; at most {MAX_POINTS:,} are allowed"
            )
        if (rows := self.size * self.experiment.replications) > MAX_ROWS:
            raise ValueError(
                f"the sweep has {rows:,} rows (points x replications); at most {MAX_ROWS:,} are "
                "allowed"
            )
        for axis, value in zip(self.axes, self.values, strict=True):
            for v in value:
                self._check_value(axis, v)
        try:
            # not stored: most sweeps are only listed
            for values in itertools.product(*self.values) if self.is_grid else ():
                self.with_values(values)
        except ValidationError as error:
            # values that are valid alone, but not together
            raise ValueError(
                f"the sweep has an invalid point: {refusal(error, Experiment)}"
            ) from None
        if not self.is_grid and self.sampler == "gp" and self.number > MAX_GAUSSIAN:
            raise ValueError(
                f"number is {self.number}; a Gaussian process proposes at most {MAX_GAUSSIAN} "
                "points: use tpe for more"
            )
        if self.proposed and (
            self.is_grid or any(len(values) != len(self.axes) for values in self.proposed)
        ):
            raise ValueError(
                "proposed must be points of a search by Optuna, with a value for each axis"
            )
        return self

    def _check_refinements(self) -> None:
        if self.refinements and not self.is_grid:
            raise ValueError("refinements are for a grid; Optuna refines its search itself")
        if not self.is_grid and (axis := next((axis for axis in self.axes if axis.extra), None)):
            raise ValueError(
                f"axes: {axis.path} has additional values; Optuna searches the range alone"
            )
        known = {
            axis.path: values for axis, values in zip(self.axes, self.stages[0].values, strict=True)
        }
        for position, added in enumerate(self.refinements):
            if not any(added.values()):
                raise ValueError(f"refinements.{position} adds no value")
            for path, values in added.items():
                if path not in known:
                    raise ValueError(
                        f"refinements.{position} names {short(path)}, which is no axis of this "
                        "sweep"
                    )
                numbers = [
                    v
                    for v in known[path]
                    if isinstance(v, (int, float)) and not isinstance(v, bool)
                ]
                if len(numbers) < len(known[path]):
                    raise ValueError(
                        f"refinements.{position}: the values of {path} are not numbers"
                    )
                if repeated := next(
                    (v for i, v in enumerate(values) if v in numbers or v in values[:i]), None
                ):
                    raise ValueError(
                        f"refinements.{position}: {path} has the value {short(repeated)} already"
                    )
                known[path] = (*numbers, *values)

    def _check_value(self, axis: Axis, value: Value) -> None:
        """Raise ValueError for a value that the parameter rejects, whatever the others are."""
        owner = owner_of(self.experiment, axis)
        for name, part in axis.assigned(value).items():
            try:
                type(owner).__pydantic_validator__.validate_assignment(
                    owner.model_copy(), name, part
                )
            except ValidationError as error:
                if any(e["loc"] == (name,) for e in error.errors(include_url=False)):
                    path, allowed = axis.path_of(name), describe_range(type(owner), name)
                    raise ValueError(
                        f"axes: {path} takes the value {short(part)}; it must be {allowed}"
                    ) from None


def owner_of(experiment: Experiment, axis: Axis, agent: int = 0) -> Params:
    """Return the parameters that an axis belongs to: those of the simulator, of an agent or of one
    of its guards.
    """
    params = experiment.agents[agent]
    owner: Params = experiment.simulator if axis.path.startswith("simulator.") else params
    return owner if axis.guard is None else params.guards[axis.guard]


def _check_parameter(experiment: Experiment, axis: Axis, position: int) -> None:
    if axis.guard is not None and axis.guard >= (n := len(experiment.agents[0].guards)):
        has = f"{n} guard{'s' * (n > 1)}, numbered from 0" if n else "no guards"
        raise ValueError(f"axes.{position}.path is {axis.path}; the agent has {has}")
    owner = type(owner_of(experiment, axis))
    for name in axis.names:
        if name not in owner.model_fields:
            kind = owner.model_fields["kind"].default
            raise ValueError(
                f"axes.{position}.path is {axis.path}; {kind} has no such parameter"
                f"{'' if name == axis.name else f' as {name}'}, it has "
                f"{', '.join(sweepable(owner))}"
            )
        if name not in sweepable(owner):
            raise ValueError(
                f"axes.{position}.path is {axis.path}; a sweep needs a number or a choice, and "
                f"{'this' if name == axis.name else name} is neither"
            )
    if axis.values is None and len(axis.names) > 1:
        raise ValueError(
            f"axes: {axis.path} moves several parameters; give its values instead of low and high"
        )
    if axis.values is None and not is_numeric(owner, axis.name):
        raise ValueError(
            f"axes: {axis.path} is not a number; give its values instead of low and high"
        )


def read(source: str | bytes | dict[str, Any]) -> Sweep:
    """Read a sweep from JSON text (a file, link or upload) or from plain data.

    Raises
    ------
    UserError
        One sentence: what is wrong, where, and what is allowed.
    """
    sweep = read_with_proposals(source)
    if sweep.proposed:
        raise UserError("proposed is filled in by the search; leave it out")
    return sweep


def read_with_proposals(source: str | bytes | dict[str, Any]) -> Sweep:
    """Read a sweep that may hold proposed points, as it is sent to workers.

    Raises
    ------
    UserError
        One sentence: what is wrong, where, and what is allowed.
    """
    return parse(source, "sweep", Sweep, _validated)


def _validated(data: Any) -> Sweep:
    if not isinstance(data, dict):
        raise UserError(
            f"the sweep is {short(data)}; it must be an object with experiment and axes"
        )
    if unknown := next((name for name in data if name not in Sweep.model_fields), None):
        raise UserError(
            f"{short(unknown)} is not a known field; known are {', '.join(Sweep.model_fields)}"
        )
    if not isinstance(data.get("experiment"), dict):
        raise UserError("experiment is missing; a sweep is an experiment and axes")
    return Sweep.model_validate({**data, "experiment": read_experiment(data["experiment"])})
