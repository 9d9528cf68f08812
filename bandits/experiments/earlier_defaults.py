"""Defaults of earlier versions: what links, files and presets meant by a field that they leave out.

A default may change when a better value is known. What was written before must keep its numbers, so the values of
earlier sets of defaults are never removed, and every text is read with the set that it was written for:

- Stored runs and sweeps, exported files and scripts hold every field, except those added after they were written
  (``later=True``), whose defaults never change. They depend on no set.
- Links leave out fields with the values of set 1 (`link_default`), whatever the defaults are today. A link therefore
  needs no version and opens in all versions with the same numbers.
- A file that is written by hand is read with today's defaults, those of the documentation, unless it names a set:
  ``{"defaults": 1, "agents": [{"kind": "lints"}]}``; on the command line ``--set defaults=1``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.params import Params

CURRENT = 2
"""Number of today's set of defaults."""
LINKS = 1
"""Number of the set that links are written and read with; it never changes."""
EARLIER: Mapping[int, Mapping[str, Mapping[str, Any]]] = {
    1: {
        "linucb": {"alpha": 1.0},
        "lints": {"sigma2": 0.25},
        "epsilon_greedy": {"epsilon": 0.1},
        "logistic_ucb": {"alpha": 1.0},
        "logistic_ts": {"ridge": 1.0, "sigma2": 1.0},
        "sgd_ts": {"learning_rate": 1.0, "batch": 50, "radius": 2.0, "ridge": 1.0, "sharing": "shared"},
        "neural_greedy": {"hidden": (64, 32), "learning_rate": 0.001},
        "neural_ucb": {"hidden": (128, 64), "training": "newest", "alpha": 1.0},
        "neural_ts": {"hidden": (128, 64), "training": "newest", "sigma2": 0.25},
        "neural_linucb": {"hidden": (64, 32), "learning_rate": 0.001, "every": 10, "updates": 5},
        "neural_linear_ts": {"hidden": (64, 32), "learning_rate": 0.001, "every": 100, "updates": 50},
        "neural_click_ts": {
            "sigma2": 0.0001,
            "epsilon": 1e-06,
            "learning_rate": 0.001,
            "batch": 32,
            "inverse": "pseudo",
        },
        "ensemble": {"hidden": (64, 32), "learning_rate": 0.001, "members": 10},
        "mc_dropout": {"hidden": (64, 32), "learning_rate": 0.001},
        "ucb1": {"alpha": 1.0},
    }
}
"""By set, kind and field: the default where it differs from today's."""


def fill(data: Any) -> Any:
    """Write out the defaults of the set that plain data names with ``defaults``; return the data without that name.

    Parameters
    ----------
    data : object
        The parsed JSON of an experiment, not yet validated; nothing is changed in place.

    Raises
    ------
    UserError
        There is no such set.
    """
    if not isinstance(data, dict) or "defaults" not in data:
        return data
    number = data["defaults"]
    if type(number) is not int or not 1 <= number <= CURRENT:
        raise UserError(f"defaults is {short(number)}; it must be a whole number from 1 to {CURRENT}")
    rest = {name: value for name, value in data.items() if name != "defaults"}
    if "simulator" in rest:
        rest["simulator"] = _filled(rest["simulator"], number)
    if isinstance(rest.get("agents"), list):
        rest["agents"] = [_filled(agent, number) for agent in rest["agents"]]
    return rest


def link_default(params: type[Params], name: str) -> Any:
    """Return the value that a link leaves out for a field of a kind."""
    field = params.model_fields[name]
    return EARLIER.get(LINKS, {}).get(params.model_fields["kind"].default, {}).get(name, field.default)


def _filled(part: Any, number: int) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("kind"), str):
        return part
    return {**EARLIER.get(number, {}).get(part["kind"], {}), **part}
