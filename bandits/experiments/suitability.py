"""Whether a simulator can run an agent, the closest parameters with which it can, and what was
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import AgentParams
from bandits.agents.guards.stack import check as check_guards
from bandits.base.params import Params
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators import SimulatorParams

from .experiment import Experiment, missing_capabilities

Data = dict[str, Any]
Statement = tuple[str, str]
"""Label of an agent (empty: simulator and length), and what is stated: ("LinTS", "Sharing shared,
not per arm").
"""


class Adaptation(NamedTuple):
    """An experiment that can be run, and how it differs from the one that was asked for.

    Attributes
    ----------
    experiment : Experiment
    left_out : tuple of (label, reason)
        Agents that do not fit.
    changed : tuple of (label, change)
    added : tuple of str
        Labels of agents from the simulator's preset.
    """

    experiment: Experiment
    left_out: tuple[Statement, ...] = ()
    changed: tuple[Statement, ...] = ()
    added: tuple[str, ...] = ()

    def describe(self) -> str:
        """Describe the differences, one sentence for each sort; empty if there are none."""
        left_out = "; ".join(
            f"{_joined(labels)} ({why})" for why, labels in _grouped(self.left_out).items()
        )
        changes = _grouped(self.changed).items()
        changed = "; ".join(
            f"{_joined(labels)}: {what}" if labels != [""] else what for what, labels in changes
        )
        parts = {"Left out": left_out, "Changed": changed, "Added": _joined(self.added)}
        return " ".join(f"{start}: {text}." for start, text in parts.items() if text)


class Setting(NamedTuple):
    """A simulator and the length of a run."""

    simulator: SimulatorParams
    steps: int
    replications: int

    def with_agents(self, agents: Sequence[Data]) -> Data:
        """Return an experiment as plain data."""
        return {
            "simulator": plain(self.simulator),
            "agents": list(agents),
            "steps": self.steps,
            "replications": self.replications,
        }

    def memory(self, *agents: AgentParams) -> int:
        """Estimate the bytes of a run, which may be too large."""
        return Experiment.model_construct(
            simulator=self.simulator,
            agents=agents,
            steps=self.steps,
            replications=self.replications,
        ).memory()


def fit(
    params: AgentParams, setting: Setting, limit: int, *, offered: bool = True
) -> AgentParams | None:
    """Return these parameters, or the first of their alternatives, that can be run within ``limit``
    bytes.

    Parameters
    ----------
    offered : bool
        Also require the capabilities without which forms do not offer the agent.
    """
    cls = AGENTS[params.kind]
    values = plain(params)
    for change in (
        {},
        *cls.alternatives(SIMULATORS[setting.simulator.kind].describe(setting.simulator)),
    ):
        values |= change
        tried = parse(cls.Params, cls.Params.closest(values))
        if tried is not None and not obstacle(tried, setting, limit, offered=offered):
            return params if tried == params else tried
    return None


def obstacle(params: AgentParams, setting: Setting, limit: int, *, offered: bool = True) -> str:
    """Return why an agent cannot be run within ``limit`` bytes; empty if it can. See `fit`."""
    cls, simulator = AGENTS[params.kind], SIMULATORS[setting.simulator.kind]
    required = cls.requires(params) | (cls.offered_for if offered else frozenset())
    missing = missing_capabilities(required, simulator, simulator.describe(setting.simulator))
    if missing:
        return missing
    try:
        check_guards(
            params.guards,
            cls,
            simulator.describe(setting.simulator),
            len(simulator.segment_names()),
            "guards",
        )
    except ValueError as error:
        return str(error)
    need = setting.memory(params)
    return too_large(need) if need > limit else ""


def too_large(need: int) -> str:
    """Return the reason that a number of bytes is too much."""
    return f"would need {need / 2**30:,.1f} GiB of memory"


def differences(label: str, old: Params, new: Params) -> list[Statement]:
    """Describe the fields that differ: "Sharing shared instead of per arm"."""
    return [
        (
            label,
            f"{field.title} {_shown(getattr(new, name))} instead of {_shown(getattr(old, name))}",
        )
        for name, field in type(new).model_fields.items()
        if _comparable(getattr(old, name)) != _comparable(getattr(new, name))
    ]


def parse(model: type[Any], values: Mapping[str, Any]) -> Any:
    """Return the parameters, or None if they are not valid."""
    try:
        return model.model_validate(dict(values))
    except ValidationError:
        return None


def plain(params: Params) -> Data:
    """Return parameters as plain data."""
    return params.model_dump(mode="json")


def distinct_labels(agents: Sequence[Data]) -> list[Data]:
    """Return the agents, without a label where an earlier one has the same."""
    taken: set[str] = set()
    distinct = []
    for agent in agents:
        label = agent.get("label")
        distinct.append({**agent, "label": None} if label in taken else agent)
        taken |= {label} if label else set()
    return distinct


def _comparable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "none" if value is None else str(value).replace("_", " ")


def _grouped(statements: Sequence[Statement]) -> dict[str, list[str]]:
    """Return the labels by what is stated about them."""
    groups: dict[str, list[str]] = {}
    for label, text in statements:
        groups.setdefault(text, []).append(label)
    return groups


def _joined(names: Sequence[str]) -> str:
    """Join names: A, B and C."""
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else "".join(names)
