"""Describe what has changed since the previous run, where the two can be compared."""

from __future__ import annotations

from typing import NamedTuple

from bandits.experiments.experiment import Experiment
from bandits.results.describe import plain_value
from bandits.results.metrics import Band


class ParameterChange(NamedTuple):
    """The parameters of an agent that differ from those in the previous run."""

    before: str  # alpha 0
    text: str  # alpha 0 to 0.5
    label: str  # of the agent in the previous run


def parameter_changes(before: Experiment, after: Experiment) -> dict[str, ParameterChange]:
    """Describe by label how agents changed between two runs that are otherwise equal.

    Empty if anything but the agents differs (simulator, seed, steps, replications): the curves would then differ for
    more reasons than the change. Agents that are unchanged, or of another kind, are left out. An agent is the same one
    if it has the same label, or the same place where its label states a value that has changed.
    """
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
        names = [n for n in type(agent).model_fields if n != "label" and getattr(old, n) != getattr(agent, n)]
        values = [(n.replace("_", " "), plain_value(getattr(old, n)), plain_value(getattr(agent, n))) for n in names]
        if values:
            was = ", ".join(f"{name} {value}" for name, value, _ in values)
            text = ", ".join(f"{name} {a} to {b}" for name, a, b in values)
            found[label] = ParameterChange(was, text, was_label)
    return found


def relabelled(bands: dict[str, dict[str, Band]], changes: dict[str, ParameterChange]) -> dict[str, dict[str, Band]]:
    """Return the curves of a previous run, of the agents that have changed, under the labels that they have now."""
    return {
        plot: {label: of[change.label] for label, change in changes.items() if change.label in of}
        for plot, of in bands.items()
    }
