"""Names of the agents of an experiment: in results, on the page, and in messages about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bandits.agents import REGISTRY as AGENTS

_PATH = re.compile(r"(?:experiment\.)?agents\.(\d+)(?:\.[\w.]+)?(?=: | is | has )")
_LABEL = re.compile(r"[\w.-][\w .-]{0,39}")


def unique_labels(named: Sequence[tuple[str | None, str]]) -> tuple[str, ...]:
    """Return a unique name for each agent: its label, or its title, numbered where it is repeated.

    Parameters
    ----------
    named : sequence of tuple (label or None, title)

    Examples
    --------
    >>> unique_labels([(None, "LinUCB"), (None, "LinUCB"), ("Mine", "LinUCB")])
    ('LinUCB', 'LinUCB 2', 'Mine')
    """
    taken = {label for label, _ in named if label}
    names = []
    for label, title in named:
        name, n = label or title, 1
        while not label and name in taken:
            n += 1
            name = f"{title} {n}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def labels_of(agents: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of agents that are plain data, valid or not; one of an unknown kind is "Agent 1"."""
    return unique_labels([(_label(agent), _title(agent, n)) for n, agent in enumerate(agents, 1)])


def name_agent(message: str, data: Any) -> str:
    """Insert the label of the agent that a message is about, after its position.

    "agents.3.alpha is 11; ..." becomes "agents.3.alpha (LinUCB) is 11; ...".

    Parameters
    ----------
    message : str
    data : object
        The plain data that were refused: an experiment, or a sweep with one.
    """
    found = _PATH.match(message)
    if found is None:
        return message
    try:
        agents = (data["experiment"] if message.startswith("experiment.") else data)["agents"]
        label = labels_of(agents)[int(found[1])]
    except (KeyError, IndexError, TypeError, AttributeError):  # not the shape of an experiment
        return message
    return f"{found[0]} ({label}){message[found.end() :]}"


def _label(agent: Mapping[str, Any]) -> str | None:
    label = agent.get("label")
    return label if isinstance(label, str) and _LABEL.fullmatch(label) else None


def _title(agent: Mapping[str, Any], number: int) -> str:
    kind = agent.get("kind")
    return AGENTS[kind].title if isinstance(kind, str) and kind in AGENTS else f"Agent {number}"
