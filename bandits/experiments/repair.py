"""Repair an experiment whose parts are valid alone, but cannot be run together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import AgentParams
from bandits.agents.context_free.baselines import Random
from bandits.base.errors import UserError
from bandits.simulators import REGISTRY as SIMULATORS

from .defaults import fill
from .experiment import MEMORY_LIMIT, Experiment, read
from .labels import labels_of
from .suitability import (
    Adaptation,
    Data,
    Setting,
    Statement,
    differences,
    distinct_labels,
    fit,
    obstacle,
    parse,
    plain,
    too_large,
)

MAX_AGENTS = 12
# how a message about a number of the run begins
NUMBERS = ("steps is ", "replications is ", "seed is ")
# fewer give no useful interval: agents are left out first
FEW_REPLICATIONS = 4


def repair(data: Data) -> Adaptation | None:
    """Change an experiment whose parts are valid, but not together, as little as needed to run it.

    In this order: fields of one part that contradict each other, agents that lack a capability,
    settings that take less memory (the largest agent first), fewer replications, fewer agents.

    Parameters
    ----------
    data : dict
        An experiment as plain data.

    Returns
    -------
    Adaptation, optional
        None if the experiment can be run as it is, or if a field has a value that it does not
        accept.
    """
    try:
        read(data)
    except UserError as error:
        if str(error).startswith(NUMBERS):
            return None
        try:
            return _repaired(fill(data))
        except (UserError, KeyError, TypeError, AttributeError):
            # not an experiment, or not valid in its parts
            return None
    return None


def _repaired(data: Data) -> Adaptation:
    if not 0 < len(data["agents"]) <= MAX_AGENTS:
        raise UserError(f"an experiment has 1 to {MAX_AGENTS} agents")
    setting, changed = _possible_setting(data)
    few = setting._replace(replications=min(setting.replications, FEW_REPLICATIONS))
    labels = (*labels_of(data["agents"]), Random.title)
    agents: dict[int, AgentParams] = {}
    left_out: list[Statement] = []
    for i, agent in enumerate(distinct_labels(data["agents"])):
        if agent != data["agents"][i]:
            changed.append((labels[i], "no name, because another agent has the same"))
        valid, changes = _valid(AGENTS[agent["kind"]].Params, agent, labels[i])
        fitting = fit(valid, few, MEMORY_LIMIT, offered=False)
        if fitting is None:
            left_out.append((labels[i], obstacle(valid, few, MEMORY_LIMIT, offered=False)))
        else:
            agents[i] = fitting
            changed += [*changes, *differences(labels[i], valid, fitting)]
    # number of the agent that is added where none remains
    random = len(labels) - 1
    agents = agents or {random: Random.Params()}
    for i in sorted(agents, key=lambda i: setting.memory(agents[i]), reverse=True):
        if setting.memory(*agents.values()) > MEMORY_LIMIT:
            smaller = fit(agents[i], setting, setting.memory(agents[i]) - 1, offered=False)
            if smaller is not None:
                changed += differences(labels[i], agents[i], smaller)
                agents[i] = smaller
    asked = setting.replications
    while (
        setting.memory(*agents.values()) > MEMORY_LIMIT and setting.replications > FEW_REPLICATIONS
    ):
        setting = setting._replace(replications=max(setting.replications // 2, FEW_REPLICATIONS))
    if setting.replications != asked:
        changed.append(("", f"{setting.replications:,} replications instead of {asked:,}"))
    while agents and setting.memory(*agents.values()) > MEMORY_LIMIT:
        largest = max(agents, key=lambda i: setting.memory(agents[i]))
        left_out.append((labels[largest], too_large(setting.memory(agents.pop(largest)))))
    changed.sort(key=lambda change: labels.index(change[0]) if change[0] else -1)
    agents = agents or {random: Random.Params()}
    chosen = [plain(agent) for agent in agents.values()]
    repaired = {
        **setting.with_agents(chosen),
        **{name: data[name] for name in ("seed",) if name in data},
    }
    added = (Random.title,) if random in agents else ()
    return Adaptation(read(repaired), tuple(left_out), tuple(changed), added)


def _possible_setting(data: Data) -> tuple[Setting, list[Statement]]:
    """Return simulator and length.

    The simulator's defaults where it is too large for every agent.
    """
    fields = Experiment.model_fields
    given = data.get("simulator", {"kind": "petshop"})
    simulator, changed = _valid(SIMULATORS[given["kind"]].Params, given, "")
    length = (data.get(name, fields[name].default) for name in ("steps", "replications"))
    setting = Setting(simulator, *length)
    if setting._replace(replications=FEW_REPLICATIONS).memory(Random.Params()) > MEMORY_LIMIT:
        defaults = type(simulator)()
        changed += differences("", simulator, defaults)
        setting = setting._replace(simulator=defaults)
    return setting, changed


def _valid(model: type[Any], values: Mapping[str, Any], label: str) -> tuple[Any, list[Statement]]:
    """Return the closest parameters that are valid, and the changes."""
    params = parse(model, values)
    if params is not None:
        return params, []
    params = parse(model, model.closest(dict(values)))
    if params is None:
        raise UserError("a field has a value that it does not accept")
    return params, differences(label, model.model_construct(**values), params)
