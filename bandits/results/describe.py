"""Describe experiments, agents and guards in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bandits.agents.guards.params import GuardParams
from bandits.base.formatting import count, count_of, listed
from bandits.experiments.experiment import Experiment


def describe_experiment(experiment: Experiment) -> str:
    """Describe an experiment in one line: Pet shop with market shock, 20,000 steps, 16 replications, seed 42."""
    runs = count_of(experiment.replications, "replications")
    return f"{describe_simulator(experiment)}, {count(experiment.steps)} steps, {runs}, seed {experiment.seed}"


def describe_simulator(experiment: Experiment) -> str:
    """Name the simulator and the kinds of its changes: Pet shop with market shock."""
    changes = describe_changes(experiment)
    return experiment.simulator_class().title + (f" with {changes}" if changes else "")


def describe_changes(experiment: Experiment) -> str:
    """Name the kinds of changes that begin before the end of a run: market shock and launch; empty without any."""
    begun = [c for c in experiment.simulator.all_changes.values() if c.begins < experiment.steps]
    titles = dict.fromkeys(getattr(change, "title", "") or change.kind for change in begun)  # a plug-in may have none
    return listed(title if title[:2].isupper() else title[0].lower() + title[1:] for title in titles)


def describe_agents(experiment: Experiment) -> str:
    """List the agents with the parameters that differ from their defaults: LinUCB (alpha 0.4), LinTS."""
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
        changed = [(n, getattr(agent, n)) for n, f in fields if n != "label" and getattr(agent, n) != f.default]
        values = [f"{name.replace('_', ' ')} {plain_value(value)}" for name, value in changed]
        new = ", ".join(v for v in values if not re.search(rf"(?<![\w.]){re.escape(v)}(?![\w.])", label))
        agents.append(f"{label} ({new})" if new else label)
    return agents


def plain_value(value: object) -> str:
    """Write the value of a parameter: 0.5, 64-32, per arm."""
    if isinstance(value, GuardParams):
        return describe_guard(value)
    if isinstance(value, tuple):
        guards = any(isinstance(each, GuardParams) for each in value)
        shares = any(isinstance(each, float) for each in value)
        return (" in " if guards else " / " if shares else "-").join(map(plain_value, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def describe_guard(guard: GuardParams) -> str:
    """Name a guard, its main values, and what differs from the defaults: exploration floor (epsilon 0.05)."""
    fields, idle = type(guard).model_fields, type(guard).idle(guard.model_dump())
    stated = [
        f"{name.replace('_', ' ')} {plain_value(value)}" for name, field in fields.items()
        if name not in ("kind", *idle)
        and ((value := getattr(guard, name)) != field.default or (name in guard.main and value is not None))
    ]  # fmt: skip
    return guard.title.lower() + (f" ({', '.join(stated)})" if stated else "")
