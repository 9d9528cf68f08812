"""Describe experiments, agents and guards in words, and what has changed since the previous run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from bandits.agents.guards.params import GuardParams
from bandits.base.formatting import count, count_of, listed
from bandits.experiments.experiment import Experiment
from bandits.results.metrics import Band


def describe_experiment(experiment: Experiment) -> str:
    """Describe an experiment in one line: Pet shop with market shock, 20,000 steps, 16
    replications, seed 42.
    """
    runs = count_of(experiment.replications, "replications")
    return (
        f"{describe_simulator(experiment)}, {count(experiment.steps)} steps, {runs}, seed "
        f"{experiment.seed}"
    )


def describe_simulator(experiment: Experiment) -> str:
    """Name the simulator and the kinds of its changes: Pet shop with market shock."""
    changes = describe_changes(experiment)
    return experiment.simulator_class().title + (f" with {changes}" if changes else "")


def describe_changes(experiment: Experiment) -> str:
    """Name the kinds of changes that begin before the end of a run: market shock and launch.

    Empty without any.
    """
    begun = [c for c in experiment.simulator.all_changes.values() if c.begins < experiment.steps]
    # a plug-in may have none
    titles = dict.fromkeys(getattr(change, "title", "") or change.kind for change in begun)
    return listed(
        title if title[:2].isupper() else title[0].lower() + title[1:] for title in titles
    )


def describe_agents(experiment: Experiment) -> str:
    """List the agents with the parameters that differ from their defaults: LinUCB (alpha 0.4),
    LinTS.
    """
    return ", ".join(_described(experiment))


def describe_rarest_first(experiments: Sequence[Experiment]) -> list[str]:
    """List the agents of each experiment, first those that fewest of the experiments have.

    The end of a long title is cut: experiments that differ in one agent begin with that one.
    """
    each = [_described(experiment) for experiment in experiments]
    count = Counter(agent for agents in each for agent in agents)
    return [", ".join(sorted(agents, key=count.__getitem__)) for agents in each]


def _described(experiment: Experiment) -> list[str]:
    agents = []
    for label, agent in zip(experiment.labels, experiment.agents, strict=True):
        fields = type(agent).model_fields.items()
        changed = [
            (n, getattr(agent, n))
            for n, f in fields
            if n != "label" and getattr(agent, n) != f.default
        ]
        values = [f"{name.replace('_', ' ')} {plain_value(value)}" for name, value in changed]
        new = ", ".join(
            v for v in values if not re.search(rf"(?<![\w.]){re.escape(v)}(?![\w.])", label)
        )
        agents.append(f"{label} ({new})" if new else label)
    return agents


def plain_value(value: object) -> str:
    """Write the value of a parameter: 0.5, 64-32, per arm."""
    if isinstance(value, GuardParams):
        return describe_guard(value)
    if isinstance(value, tuple):
        guards = any(isinstance(each, GuardParams) for each in value)
        shares = any(isinstance(each, float) for each in value)
        return (" in " if guards else " / " if shares else "-").join(
            map(plain_value, value)
        ) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def describe_guard(guard: GuardParams) -> str:
    """Name a guard, its main values, and what differs from the defaults: exploration floor (epsilon
    0.05).
    """
    fields, idle = type(guard).model_fields, type(guard).idle(guard.model_dump())
    stated = [
        f"{name.replace('_', ' ')} {plain_value(value)}"
        for name, field in fields.items()
        if name not in ("kind", *idle)
        and (
            (value := getattr(guard, name)) != field.default
            or (name in guard.main and value is not None)
        )
    ]
    return guard.title.lower() + (f" ({', '.join(stated)})" if stated else "")


class ParameterChange(NamedTuple):
    """The parameters of an agent that differ from those in the previous run."""

    before: str  # alpha 0
    text: str  # alpha 0 to 0.5
    # of the agent in the previous run
    label: str


def parameter_changes(before: Experiment, after: Experiment) -> dict[str, ParameterChange]:
    """Describe by label how agents changed between two runs that are otherwise equal.

    Empty if anything but the agents differs (simulator, seed, steps, replications): the curves
    would then differ for more reasons than the change. Agents that are unchanged, or of another
    kind, are left out. An agent is the same one if it has the same label, or the same place where
    its label states a value that has changed."""
    if before.model_dump(exclude={"agents"}) != after.model_dump(exclude={"agents"}):
        return {}
    earlier = dict(zip(before.labels, before.agents, strict=True))
    found = {}
    for place, (label, agent) in enumerate(zip(after.labels, after.agents, strict=True)):
        was_label = label
        if label not in earlier and len(before.agents) == len(after.agents):
            there = before.labels[place]
            was_label = label if there in after.labels else there
        old = earlier.get(was_label)
        if old is None or old.kind != agent.kind:
            continue
        names = [
            n
            for n in type(agent).model_fields
            if n != "label" and getattr(old, n) != getattr(agent, n)
        ]
        values = [
            (n.replace("_", " "), plain_value(getattr(old, n)), plain_value(getattr(agent, n)))
            for n in names
        ]
        if values:
            was = ", ".join(f"{name} {value}" for name, value, _ in values)
            text = ", ".join(f"{name} {a} to {b}" for name, a, b in values)
            found[label] = ParameterChange(was, text, was_label)
    return found


def relabelled(
    bands: dict[str, dict[str, Band]], changes: dict[str, ParameterChange]
) -> dict[str, dict[str, Band]]:
    """Return the curves of a previous run, of the agents that have changed, under the labels that
    they have now.
    """
    return {
        plot: {label: of[change.label] for label, change in changes.items() if change.label in of}
        for plot, of in bands.items()
    }
