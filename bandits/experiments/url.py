"""Encode an experiment as the query of a URL, and read it back with full validation.

The names are those of the JSON file and of ``--set``:
``simulator=petshop&simulator.shock_step=10000&
agents.0=linucb&agents.0.alpha=1.5&steps=20000&replications=16&seed=42&check=1a2b3c4d5e6f``. Omitted
fields have the values of `defaults.LINKS`, those of version 1.0, which never change; ``check``, the
beginning of the experiment's hash, shows whether the link was edited."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from bandits import agents, simulators
from bandits.base.params import Params, schemas

from .defaults import LINKS, link_default
from .experiment import MAX_TEXT, Experiment, UserError, read
from .labels import name_agent

MAX_FIELDS = 400
# hexadecimal digits of the hash
_CHECK = 12
_FIELD = re.compile(r"^(simulator|agents\.([0-9]{1,2}))(?:\.([a-z0-9_]{1,40}))?$")
_TOP = ("steps", "replications", "seed")


class Shared(NamedTuple):
    """An experiment read from a link, and whether its hash is that of the experiment the link was
    made from.
    """

    experiment: Experiment
    same: bool


def to_query(experiment: Experiment) -> dict[str, str]:
    """Return the query fields by name, in order."""
    out = {"simulator": experiment.simulator.kind, **_changed("simulator", experiment.simulator)}
    for i, agent in enumerate(experiment.agents):
        out |= {f"agents.{i}": agent.kind, **_changed(f"agents.{i}", agent)}
    out |= {name: str(getattr(experiment, name)) for name in _TOP}
    return {**out, "check": experiment.hash[:_CHECK]}


def query(experiment: Experiment) -> str:
    """Return the encoded query: the part of the URL after the question mark."""
    return urlencode(to_query(experiment))


def _changed(prefix: str, params: Params) -> dict[str, str]:
    """Return the fields that differ from the defaults of links, as text."""
    values = params.model_dump(mode="json")
    changed = {}
    for name in type(params).model_fields:
        if name != "kind" and getattr(params, name) != link_default(type(params), name):
            value = values[name]
            changed[f"{prefix}.{name}"] = (
                value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            )
    return changed


def holds_experiment(given: Mapping[str, str]) -> bool:
    """Return whether a query contains an experiment."""
    return any(_FIELD.match(name) for name in given)


def parse_query(given: Mapping[str, str]) -> Shared:
    """Read the experiment from a query; other fields, such as those of a page, are ignored.

    Raises
    ------
    UserError
        One sentence: what is wrong, where, and what is allowed.
    """
    experiment = read(plain_data(given))
    return Shared(experiment, given.get("check", "") in ("", experiment.hash[:_CHECK]))


def plain_data(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the experiment of a query as plain data, not validated yet.

    Raises
    ------
    UserError
        It is too long, a value cannot be parsed, or the agents are not numbered from 0.
    """
    named = {name: text for name, text in given.items() if _FIELD.match(name) or name in _TOP}
    if len(named) > MAX_FIELDS:
        raise UserError(f"the link names {len(named):,} fields; at most {MAX_FIELDS} are allowed")
    if (size := sum(len(n) + len(t) for n, t in named.items())) > MAX_TEXT:
        raise UserError(f"the link has {size:,} characters; at most {MAX_TEXT:,} are allowed")
    data: dict[str, Any] = {name: _number(name, named[name]) for name in _TOP if name in named}
    simulator: dict[str, Any] = {}
    parts: dict[int, dict[str, Any]] = {}
    for name, text in named.items():
        if (match := _FIELD.match(name)) is None:
            continue
        part, position, field = match.groups()
        registry: Mapping[str, Any] = (
            simulators.REGISTRY if part == "simulator" else agents.REGISTRY
        )
        target = simulator if part == "simulator" else parts.setdefault(int(position), {})
        try:
            target[field or "kind"] = (
                text if field is None else _value(registry, named.get(part, ""), field, name, text)
            )
        except UserError as error:
            several = [
                {"kind": named.get(f"agents.{i}"), "label": named.get(f"agents.{i}.label")}
                for i in range(100)
            ]
            raise UserError(name_agent(str(error), {"agents": several})) from None
    if sorted(parts) != list(range(len(parts))):
        raise UserError(
            f"the link's agents are numbered {', '.join(map(str, sorted(parts)))}; they must count "
            "from 0"
        )
    if simulator:
        data["simulator"] = simulator
    return {**data, "agents": [parts[i] for i in sorted(parts)], "defaults": LINKS}


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise UserError(f"{name} is '{text}'; it must be a whole number")
    return int(text)


def _value(registry: Mapping[str, Any], kind: str, field: str, name: str, text: str) -> Any:
    """Parse the text of a field: plain text where the field takes text, JSON elsewhere."""
    properties = schemas(registry[kind].Params) if kind in registry else {}
    schema = properties.get(field, {})
    if "string" in {
        schema.get("type"),
        *(option.get("type") for option in schema.get("anyOf", [])),
    }:
        return text
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except json.JSONDecodeError:
        # validation reports what the field accepts
        return text
    except RecursionError:
        raise UserError(f"{name} is nested too deeply") from None
    except ValueError:
        raise UserError(
            f"{name} is '{text}'; numbers must be finite and of a sensible length"
        ) from None
    return value
