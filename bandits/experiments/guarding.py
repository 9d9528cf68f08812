"""An experiment with a guard around its agents, beside the same agents without it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from bandits.agents import agent_class
from bandits.agents.guards.params import GuardParams
from bandits.base.params import entry_kinds
from bandits.base.types import SimulatorSpec

from .experiment import Experiment, read, require_truth

MAX_LABEL = 40  # characters


def guard_kinds() -> dict[str, type[GuardParams]]:
    """Return the classes of guards by kind."""
    from bandits.agents import AgentParams

    return {
        kind: cls
        for kind, cls in entry_kinds(AgentParams, "guards").items()
        if issubclass(cls, GuardParams)
    }


def suggestion(kind: str, steps: int, spec: SimulatorSpec) -> dict[str, Any]:
    """Return a guard as it is offered for a run of so many steps, as plain data."""
    found = guard_kinds()[kind].suggested(steps)
    if kind == "cap":
        found["share"] = max(0.3, round(spec.slate / spec.n_candidates + 0.05, 2))
    if kind == "fallback":
        found |= {"median_ms": 2.0, "p99_ms": 50.0}
    return found


def with_and_without(
    experiment: Experiment, guard: dict[str, Any], labels: Collection[str]
) -> Experiment:
    """Return the experiment with some of its agents alone, each once as it is and once with a guard
    around it.

    Parameters
    ----------
    experiment : Experiment
    guard : dict
        Plain data of one guard; it is put outside those that an agent has.
    labels : collection of str
        The agents.

    Raises
    ------
    UserError
        The guard is not possible; see `guards.stack.check`.
    """
    require_truth(experiment, "the comparison with and without a guard")
    title = guard_kinds()[guard["kind"]].title.lower()
    bare, guarded, taken = [], [], set(experiment.labels)
    for label, params in zip(experiment.labels, experiment.agents, strict=True):
        if label in labels:
            plain = params.model_dump(mode="json", by_alias=True)
            name = _free(f"{label} {title}", taken)
            bare.append({**plain, "label": label})
            guarded.append({**plain, "label": name, "guards": [*plain["guards"], guard]})
    # an agent keeps its colour: it has as many of its kind before it as in the experiment
    data = {**experiment.model_dump(mode="json", by_alias=True), "agents": bare + guarded}
    return read(data)


def _free(label: str, taken: set[str]) -> str:
    """Return the label, shortened and numbered until it is new, and add it to those taken."""
    name, n = label[:MAX_LABEL].strip(), 1
    while name in taken:
        n += 1
        name = f"{label[: MAX_LABEL - 1 - len(str(n))].strip()} {n}"
    taken.add(name)
    return name


def guardable(experiment: Experiment) -> list[str]:
    """Return the labels of the agents that guards make sense for: not those that know the truth.

    None where a log is replayed, as nothing could be compared.
    """
    if experiment.offers("replay"):
        return []
    pairs = zip(experiment.labels, experiment.agents, strict=True)
    return [
        label
        for label, params in pairs
        if "truth" not in agent_class(params).needs and not params.guards
    ]
