"""Find stored runs that equal an experiment except for one number of one agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from bandits.base.params import hash_content
from bandits.experiments.experiment import Experiment

MOST = 32  # values of a parameter


class StoredValue(NamedTuple):
    """A value that a parameter has in a stored run.

    Attributes
    ----------
    value : float
    run : str
        The run's hash.
    label : str
        The agent's name in that run.
    """

    value: float
    run: str
    label: str


def stored_values(
    experiment: Experiment, label: str, name: str, kept: Iterable[tuple[str, Experiment]], most: int = MOST
) -> list[StoredValue]:
    """List the other values that a parameter of an agent has in stored runs, in ascending order.

    Simulator, seed, steps, replications and all other parameters of this agent are the same. The run's other agents may
    differ: they do not influence this one.

    Parameters
    ----------
    label, name : str
        The agent and its parameter.
    kept : iterable of (str, Experiment)
        Hashes and experiments of runs; of several with the same value, the first one counts.
    most : int
        The first so many values are listed.
    """
    agent = experiment.agents[experiment.labels.index(label)]
    rest, surroundings = _rest(agent, name), _surroundings(experiment)
    found: dict[float, StoredValue] = {}
    for run, other in kept:
        if _surroundings(other) != surroundings:
            continue
        for its_label, candidate in zip(other.labels, other.agents, strict=True):
            if candidate.kind != agent.kind or (value := getattr(candidate, name)) == getattr(agent, name):
                continue
            if value not in found and len(found) < most and _rest(candidate, name) == rest:
                found[value] = StoredValue(value, run, its_label)
    return [found[value] for value in sorted(found)]


def _rest(agent: Any, name: str) -> dict[str, Any]:
    return {key: value for key, value in hash_content(agent).items() if key not in ("label", name)}


def _surroundings(experiment: Experiment) -> tuple[Any, ...]:
    return experiment.simulator, experiment.seed, experiment.steps, experiment.replications
