"""Names of the agents of an experiment: in results, on the page, and in messages about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import AgentParams
from bandits.base.params import declaration

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
    """Return the names of agents that are plain data, valid or not.

    One of an unknown kind is "Agent 1".
    """
    return unique_labels([(_label(agent), _title(agent, n)) for n, agent in enumerate(agents, 1)])


def following_label(
    label: str | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> str | None:
    """Return a label with the values that it states, taken from an agent's parameters, as they are
    now.

    A label states a number by the parameter's name next to it ("LinUCB alpha 1.5", "LinUCB 40
    Fourier"), an option by its words ("LinUCB per arm") and a list of numbers by dashes ("NeuralUCB
    exact 16-8").

    Parameters
    ----------
    label : str or None
    before, after : mapping
        The agent's parameters as plain data; missing ones have their defaults.

    Examples
    --------
    >>> following_label("LinUCB alpha 1.5", {"kind": "linucb", "alpha": 1.5}, {"kind": "linucb",
    ...     "alpha": 0.3})
    'LinUCB alpha 0.3'
    >>> following_label("Mine", {"kind": "linucb", "alpha": 1.5}, {"kind": "linucb", "alpha": 0.3})
    'Mine'
    """
    fields, now = AGENTS[after["kind"]].Params.model_fields, label
    for name in sorted(fields.keys() - {"kind", "label"}):
        old, new = (_words(values.get(name, fields[name].default)) for values in (before, after))
        if now and old and new and old != new:
            now = re.sub(_statement(name, old), partial(_as_written, new), now, flags=re.I)
    return now if now and (now == label or _LABEL.fullmatch(now)) else None


def states(label: str, name: str, value: Any) -> bool:
    """Return whether a label states the value of a parameter, as `following_label` reads it.

    Examples
    --------
    >>> states("LinUCB alpha 1.5", "alpha", 1.5), states("LinUCB", "alpha", 1.5)
    (True, False)
    """
    words = _words(value)
    return bool(words) and re.search(_statement(name, words), label, re.I) is not None


def main_parameter(kind: str) -> str | None:
    """Return the name of an agent's main parameter: the first with a symbol that its card shows.

    Its own come before those of its base class: the exploration parameter before the ridge.
    """
    params = AGENTS[kind].Params
    shown = [
        name
        for name, field in params.model_fields.items()
        if declaration(field)["basic"] and declaration(field)["symbol"]
    ]
    return next(iter(sorted(shown, key=lambda name: name not in params.__annotations__)), None)


def spoken_name(label: str, agent: AgentParams) -> str:
    """Name an agent in a sentence: its label, with a main parameter that is not the default.

    A comparison may hold for that value only.

    Examples
    --------
    >>> from bandits.agents import REGISTRY
    >>> agent = REGISTRY["linucb"].Params(alpha=1.5)
    >>> spoken_name("LinUCB", agent), spoken_name("LinUCB alpha 1.5", agent)
    ('LinUCB (alpha 1.5)', 'LinUCB alpha 1.5')
    """
    name = main_parameter(agent.kind)
    if name is None:
        return label
    value = getattr(agent, name)
    if value == type(agent).model_fields[name].default or states(label, name, value):
        return label
    return f"{label} ({name.replace('_', ' ')} {_words(value)})"


def _statement(name: str, words: str) -> str:
    """Return the regular expression of a parameter's value in a label."""
    stated = re.escape(words)
    if re.fullmatch(r"[\d.e-]+", words) and not re.fullmatch(r"\d+(-\d+)+", words):  # a number
        written, spoken = (
            stated + ("0*" if "." in words else r"(?:\.0+)?"),
            name.replace("_", "[ _]"),
        )
        stated = f"(?<={spoken} ){written}|{written}(?= {spoken})"
    return rf"(?<![\w.-])({stated})(?![\w.-])"


def _words(value: Any) -> str:
    """Return a value as labels write it; empty for values that they do not state."""
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, (tuple, list)):
        return "-".join(map(_words, value))
    return f"{value:g}" if isinstance(value, (int, float)) else str(value).replace("_", " ")


def _as_written(new: str, old: re.Match[str]) -> str:
    """Return the new words, with a capital where the old ones had one."""
    return new[0].upper() + new[1:] if old[0][0].isupper() else new


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
    except (KeyError, IndexError, TypeError, AttributeError):
        # not the shape of an experiment
        return message
    return f"{found[0]} ({label}){message[found.end() :]}"


def _label(agent: Mapping[str, Any]) -> str | None:
    label = agent.get("label")
    return label if isinstance(label, str) and _LABEL.fullmatch(label) else None


def _title(agent: Mapping[str, Any], number: int) -> str:
    kind = agent.get("kind")
    return AGENTS[kind].title if isinstance(kind, str) and kind in AGENTS else f"Agent {number}"
