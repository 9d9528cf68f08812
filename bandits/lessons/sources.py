"""The numbers that texts, claims and predictions of a lesson may name: of a run, or of a worked
example.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from bandits.agents.neural.static_mlp import StaticMLP
from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import make_lane
from bandits.results import metrics
from bandits.results.change.recovery import before_change, change_span, recovery
from bandits.results.comparison import paired_tests, unpaired
from bandits.results.metric_registry import METRICS
from bandits.results.metrics import Estimate
from bandits.results.result import Result

from .worked import Values, WorkedExample

Found = float | Estimate
# a quantity that this run does not have, for example a break-even step
NONE = float("nan")


class _Kind(NamedTuple):
    """One quantity of runs: the number of agents it names, whether a parameter follows, and how it
    is computed.
    """

    agents: int
    compute: Callable[..., Found]
    parameter: bool = False
    given: bool = False
    """Known before the run."""


class RunSource:
    """Numbers of a run.

    Parameters
    ----------
    experiment : Experiment
    result : Result, optional
        Without it, only the parameters of the experiment are known.
    """

    def __init__(self, experiment: Experiment, result: Result | None = None) -> None:
        self.experiment, self.result = experiment, result

    def check(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Check that a run has a quantity of this name, for these agents."""
        kind = QUANTITIES.get(name)
        if kind is None:
            raise UserError(
                f"'{short(name)}' is not a number of a run; known are {', '.join(QUANTITIES)}"
            )
        if len(arguments) != kind.agents + kind.parameter:
            raise UserError(
                f"'{name}' names {kind.agents} agents{' and a parameter' * kind.parameter}"
            )
        for label in arguments[: kind.agents]:
            if label not in self.experiment.labels:
                raise UserError(
                    f"there is no agent '{short(label)}'; there are "
                    f"{', '.join(self.experiment.labels)}"
                )
        if kind.agents > 1 and len(set(arguments[: kind.agents])) == 1:
            raise UserError(f"'{name}' compares two agents; '{short(arguments[0])}' is named twice")
        if kind.parameter:
            agent = self.experiment.agents[self.experiment.labels.index(arguments[0])]
            if not isinstance(getattr(agent, str(arguments[1]), None), (int, float)):
                raise UserError(
                    f"'{short(arguments[1])}' is not a numeric parameter of {arguments[0]}"
                )

    def given(self, name: str) -> bool:
        """Tell whether the number is known before anything is computed."""
        return QUANTITIES[name].given

    def quantity(self, name: str, arguments: tuple[Any, ...]) -> Found:
        """Return a number of the run."""
        return QUANTITIES[name].compute(self, *arguments)

    @property
    def known(self) -> Result:
        """The result, which the caller has computed."""
        if self.result is None or not self.result.histories:
            raise UserError("this run has not been computed yet")
        return self.result


def _value(source: RunSource, label: str, *, name: str) -> Found:
    return METRICS[name].estimate(source.known.histories[label])


def _mean_of(name: str) -> Callable[[RunSource], Found]:
    """Mean of a reference per step: the oracle, or random choice."""

    def compute(source: RunSource) -> Found:
        history = next(iter(source.known.histories.values()))
        return metrics.estimate(metrics.total(history, name) / history.step)

    return compute


def _early_ctr(source: RunSource, label: str) -> Found:
    """CTR over the first tenth of the steps."""
    history = source.known.histories[label]
    at = int(np.searchsorted(history.grid[: history.size], history.steps / 10))
    at = min(at, history.size - 1)
    return metrics.estimate(metrics.click_rate(history, int(history.grid[at])))


def _end_of(curve: str) -> Callable[[RunSource, str], Found]:
    def compute(source: RunSource, label: str) -> Found:
        band = source.known.curve(curve).get(label)
        if band is None:
            return NONE
        return Estimate(float(band.mid[-1]), float(band.low[-1]), float(band.high[-1]))

    return compute


def _of_pair(attribute: str) -> Callable[[RunSource, str, str], Found]:
    def compute(source: RunSource, a: str, b: str) -> Found:
        found = getattr(source.known.compare(a, b), attribute)
        return NONE if found is None else found

    return compute


def _corrected(source: RunSource, a: str, b: str, *, name: str) -> Found:
    """What the conclusions of the run say of a pair: corrected for all its pairs."""
    histories = source.known.histories
    compare = unpaired.compare if source.experiment.offers("replay") else paired_tests.compare
    found: Found = getattr(
        compare(histories[a], histories[b], family=paired_tests.family_of(source.experiment)), name
    )
    return found


def _variance(source: RunSource, a: str, b: str, *, paired: bool) -> Found:
    """Variance of the difference in clicks of two agents over replications.

    Unpaired: the sum of both variances.
    """
    clicks = [metrics.total(source.known.histories[label], "clicks") for label in (a, b)]
    if paired:
        return float(np.var(clicks[0] - clicks[1], ddof=1))
    return float(sum(np.var(each, ddof=1) for each in clicks))


def _least_and_most(source: RunSource, a: str, b: str, *, most: bool) -> Found:
    """Smallest or largest difference in clicks of a and b among the replications, over the whole
    run.
    """
    gap = np.subtract(*(metrics.total(source.known.histories[label], "clicks") for label in (a, b)))
    return float(gap.max() if most else gap.min())


def _recovery(source: RunSource, label: str) -> Found:
    found = recovery(source.known, label)
    if found is None or found.step is None:
        return NONE
    ends = (NONE if end is None else float(end) for end in (found.low, found.high))
    return Estimate(float(found.step), *ends)


def _share_before(source: RunSource, label: str) -> Found:
    span = change_span(source.experiment.simulator)
    found = None if span is None else before_change(source.known.histories[label], span[0])
    return NONE if found is None else found.share


def _log_loss(source: RunSource, label: str) -> Found:
    """Log loss on held-out data of a network that was trained before the run.

    Its weights are cached.
    """
    agent = make_lane(source.experiment, source.experiment.labels.index(label), (0,)).agent
    if not isinstance(agent, StaticMLP):
        return NONE
    agent.prepare()
    return agent.validation_loss


def _change_step(source: RunSource) -> Found:
    span = change_span(source.experiment.simulator)
    return NONE if span is None else float(span[0])


def _parameter(source: RunSource, label: str, name: str) -> Found:
    return float(getattr(source.experiment.agents[source.experiment.labels.index(label)], name))


QUANTITIES: dict[str, _Kind] = {
    "steps": _Kind(0, lambda source: float(source.experiment.steps), given=True),
    "replications": _Kind(0, lambda source: float(source.experiment.replications), given=True),
    "agents": _Kind(0, lambda source: float(len(source.experiment.agents)), given=True),
    "change_step": _Kind(0, _change_step, given=True),
    "parameter": _Kind(1, _parameter, parameter=True, given=True),
    "oracle": _Kind(0, _mean_of("best_value")),
    "random": _Kind(0, _mean_of("random_value")),
    **{
        name: _Kind(
            1, partial(_value, name=name) if METRICS[name].value is not None else _end_of(name)
        )
        for name in METRICS
        if name != "spectrum"
    },
    "early_ctr": _Kind(1, _early_ctr),
    "final_ctr": _Kind(1, _end_of("ctr")),
    "difference": _Kind(2, partial(_corrected, name="difference")),
    "difference_alone": _Kind(2, _of_pair("difference")),
    "break_even": _Kind(2, _of_pair("break_even_step")),
    "exploration_cost": _Kind(2, _of_pair("exploration_cost")),
    "p_value": _Kind(2, partial(_corrected, name="p_value")),
    "p_value_alone": _Kind(2, _of_pair("p_value")),
    "paired_variance": _Kind(2, lambda source, a, b: _variance(source, a, b, paired=True)),
    "unpaired_variance": _Kind(2, lambda source, a, b: _variance(source, a, b, paired=False)),
    "least_difference": _Kind(2, lambda source, a, b: _least_and_most(source, a, b, most=False)),
    "largest_difference": _Kind(2, lambda source, a, b: _least_and_most(source, a, b, most=True)),
    "recovery": _Kind(1, _recovery),
    "share_before": _Kind(1, _share_before),
    "log_loss": _Kind(1, _log_loss),
}


class ComingRun(RunSource):
    """A run that the reader has not passed yet: what is known before it may be named, its results
    may not.
    """

    def check(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Check that the quantity exists and is known before the run."""
        super().check(name, arguments)
        if not self.given(name):
            raise UserError(f"'{name}' is a result of a run that comes later")


class WorkedSource:
    """Numbers of a worked example."""

    def __init__(self, example: type[WorkedExample], params: Any) -> None:
        self.example, self.params = example, params

    @cached_property
    def values(self) -> Values:
        """The numbers of the example at these parameters that are computed at once."""
        return self.example.values(self.params)

    @cached_property
    def slow_values(self) -> Values:
        """The others, computed when a text shows one."""
        return self.example.slow_values(self.params)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all numbers."""
        return (*self.values, *self.example.slow)

    def check(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Check that the example has a number of this name."""
        if arguments or name not in self.names:
            raise UserError(
                f"'{short(name)}' is not a number of this worked example; known are "
                f"{', '.join(self.names)}"
            )

    def given(self, name: str) -> bool:
        """Tell whether the number is known before anything is computed."""
        return name in self.example.known

    def quantity(self, name: str, arguments: tuple[Any, ...]) -> Found:  # noqa: ARG002
        """Return a number of the example."""
        return float((self.slow_values if name in self.example.slow else self.values)[name])


class TaskSource:
    """Numbers of a task, so that its text states the goal that is checked."""

    def __init__(self, target: float) -> None:
        self.target = target

    def check(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Check that a task has a number of this name."""
        if arguments or name != "target":
            raise UserError(f"'{short(name)}' is not a number of a task; known is target")

    def given(self, name: str) -> bool:  # noqa: ARG002
        """Tell whether the number is known before anything is computed."""
        return True

    def quantity(self, name: str, arguments: tuple[Any, ...]) -> Found:  # noqa: ARG002
        """Return the target."""
        return self.target
