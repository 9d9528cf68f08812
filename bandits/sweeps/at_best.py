"""Tune every agent of an experiment by a small sweep, and compare all at their best.

The sweeps choose on the visitors of the experiment's seed, with the same budget for every agent.
The comparison is the same experiment with the chosen values and the next seed: its visitors took
part in no choice, and no earlier look at the experiment has shown them. The largest of several
means is biased upwards; on the visitors that chose it, every difference to an agent with fewer
values would be biased too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import AgentParams
from bandits.base.errors import UserError
from bandits.base.formatting import listed
from bandits.base.params import Params, hash_content
from bandits.experiments.experiment import Experiment, require_truth
from bandits.experiments.experiment import read as read_experiment
from bandits.experiments.labels import following_label, main_parameter, states
from bandits.results.comparison.run_title import preset_title
from bandits.results.describe import describe_simulator, plain_value
from bandits.results.metric_registry import main_metric

from .analysis.landscape import Landscape
from .axis import Axis, Value
from .not_worse import not_worse
from .parameters import is_integer, suggest_axis
from .runner import run
from .sweep import Sweep, read

# values of each agent's parameter that are tried
VALUES = 9
# replications that choose, at least (with fewer, halving drops nothing) and at most
CHOOSING = 4, 16
# the largest seed
LARGEST = 2**53 - 1


class Tuning(NamedTuple):
    """The sweep of one agent.

    Attributes
    ----------
    agents : list of int
        Positions in the experiment of the agent, and of those that differ from it in the tuned
        parameter alone: at their best they are one.
    sweep : Sweep or None
        None for an agent without a parameter to tune.
    """

    agents: list[int]
    sweep: Sweep | None


class AtBest(NamedTuple):
    """The comparison of all agents at their best.

    Attributes
    ----------
    experiment : Experiment
        With the chosen values, on new visitors.
    title : str
    sentence : str
        Which values were chosen, from how many, which others are not significantly worse, and on
        which visitors.
    """

    experiment: Experiment
    title: str
    sentence: str


def at_best(experiment: Experiment, choose: Callable[[Sweep], Landscape] = run) -> AtBest:
    """Tune every agent by one parameter, and return the comparison of all at their best.

    Parameters
    ----------
    experiment : Experiment
    choose : callable, optional
        Runs a sweep; by default in this process.

    Raises
    ------
    UserError
        Fewer than two agents are left to compare, no agent has a parameter to tune, or the
        simulator does not know the true rewards.

    Examples
    --------
    >>> from bandits import at_best, read
    >>> tuned = at_best(read({"agents": [{"kind": "linucb"}, {"kind": "random"}], "steps": 200,
    ...     "replications": 4}))
    >>> tuned.experiment.seed
    43
    """
    found = tunings(experiment)
    return compared(experiment, [choose(sweep) if sweep else None for _, sweep in found])


def tunings(experiment: Experiment, number: int = VALUES) -> list[Tuning]:
    """Return the sweep of each agent; agents that differ in the tuned parameter alone are one.

    Raises
    ------
    UserError
        As `at_best`.
    """
    return [Tuning(alike, _sweep(experiment, alike, number)) for alike in families(experiment)]


def families(experiment: Experiment) -> list[list[int]]:
    """Return the positions of the agents that are one at their best, for each of these.

    Raises
    ------
    UserError
        As `at_best`.
    """
    require_truth(experiment, "a comparison of agents at their best")
    found: dict[str, list[int]] = {}
    for i, agent in enumerate(experiment.agents):
        found.setdefault(_family(agent), []).append(i)
    if len(found) < 2:
        raise UserError(
            "a comparison of agents at their best needs two agents that differ in more than the "
            "parameter that is tuned; sweep that parameter instead"
        )
    if not any(tuned_parameter(agent) for agent in experiment.agents):
        raise UserError("none of these agents has a parameter to tune")
    return [*found.values()]


def tuned_parameter(agent: AgentParams) -> str | None:
    """Return the parameter that is tuned: the one that sets how much an agent explores, or else its
    main parameter; None where it has neither, or its other parameters make it idle.
    """
    idle = type(agent).idle(agent.model_dump())
    names = AGENTS[agent.kind].exploration_param, main_parameter(agent.kind)
    return next((name for name in names if name and name not in idle), None)


def _family(agent: AgentParams) -> str:
    """Return a text that is equal for agents that are equal at their best."""
    content = hash_content(agent)
    return json.dumps(
        {k: content[k] for k in content.keys() - {"label", tuned_parameter(agent)}},
        sort_keys=True,
    )


def _sweep(experiment: Experiment, alike: list[int], number: int) -> Sweep | None:
    """Return the sweep of agents that differ in the tuned parameter alone, over its suggested
    range with the default and the values that they have.
    """
    agent = experiment.agents[alike[0]]
    name = tuned_parameter(agent)
    if name is None:
        return None
    owner = type(agent)
    own = [getattr(experiment.agents[i], name) for i in alike]
    named = {value: None for value in [owner.model_fields[name].default, *own] if value is not None}
    # every agent may try as many values, those that must be among them included
    counts = range(number, 1, -1)
    grids = [{**dict.fromkeys(_grid(owner, name, count)), **named} for count in counts]
    values = next((grid for grid in grids if len(grid) <= number), grids[-1])
    base = {**experiment.model_dump(mode="json"), "agents": [agent.model_dump(mode="json")]}
    base["replications"] = _replications(experiment)
    # in order, unless they are words
    ordered = sorted(values) if all(isinstance(v, (int, float)) for v in values) else [*values]
    axis = {"path": f"agents.0.{name}", "values": ordered}
    metric = main_metric(experiment).name
    return read({"experiment": base, "axes": [axis], "search": "halving", "metric": metric})


def _grid(owner: type[Params], name: str, number: int) -> list[Value]:
    """Return so many values of the suggested range, as short numbers, or all choices."""
    axis = Axis(path=f"agents.0.{name}", **suggest_axis(owner, name, number))
    values = axis.grid_values(is_integer(owner, name))
    return [float(f"{v:.2g}") if isinstance(v, float) else v for v in values]


def compared(experiment: Experiment, landscapes: list[Landscape | None]) -> AtBest:
    """Return the comparison of all agents at the best values of their sweeps.

    Parameters
    ----------
    experiment : Experiment
    landscapes : list of Landscape or None
        The results of `tunings`, in their order.
    """
    data, labels = experiment.model_dump(mode="json"), experiment.labels
    agents, tuned, others, merged = [], [], [], []
    for (alike, sweep), landscape in zip(tunings(experiment), landscapes, strict=True):
        agent, label = data["agents"][alike[0]], labels[alike[0]]
        best = landscape.best(landscape.sweep.metric) if landscape else None
        if sweep is None or landscape is None or best is None:
            others.append(label)
        else:
            name, value = sweep.axes[0].name, best.values[0]
            now = {**agent, name: value}
            now["label"] = following_label(agent["label"], agent, now)
            label = now["label"] or (AGENTS[agent["kind"]].title if agent["label"] else label)
            stated = (
                ""
                if states(label, name, value)
                else f" with {name.replace('_', ' ')} {plain_value(value)}"
            )
            alike_values = not_worse(landscape, landscape.sweep.metric)
            tuned.append(f"{label}{stated} (best of {sweep.size}; {alike_values})")
            agent = now
        if len(alike) > 1:
            merged.append(f" {listed(labels[i] for i in alike)} are one agent at their best.")
        agents.append(agent)
    seed = experiment.seed + 1 if experiment.seed < LARGEST else 0
    sentence = (
        f"Tuned by a sweep, one parameter each: {listed(tuned)}. Up to "
        f"{_replications(experiment)} replications with seed {experiment.seed} chose the values; "
        f"the visitors of this comparison (seed {seed}) took part in no choice."
    )
    if others:
        sentence += f" Not tuned: {listed(others)}."
    title = f"Each at its best: {preset_title(experiment) or describe_simulator(experiment)}"
    return AtBest(
        read_experiment({**data, "agents": agents, "seed": seed}), title, sentence + "".join(merged)
    )


def _replications(experiment: Experiment) -> int:
    return int(np.clip(experiment.replications, *CHOOSING))
