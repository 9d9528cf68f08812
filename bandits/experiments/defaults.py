"""Defaults by version: what links and files mean by a field that they leave out.

A default may change when a better value is known. What was written before must keep its numbers:

- Stored runs and sweeps, exported files and scripts hold every field, except those added after they
  were written (``later=True``), whose defaults never change. They depend on no version.
- Links leave out fields with the defaults of set 1 (`link_default`), whatever the defaults are
  today.
- A file that is written by hand is read with today's defaults, those of the documentation, unless
  it names a set: ``{"defaults": 1, "agents": [{"kind": "lints"}]}``; on the command line ``--set
  defaults=1``.

To change a default, raise `CURRENT` and state the former value for every earlier set in `FORMER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.params import Params

# number of today's set of defaults; set 1 is that of version 1.0
CURRENT = 1
# number of the set that links are written and read with; it never changes
LINKS = 1
FORMER: Mapping[int, Mapping[str, Mapping[str, Any]]] = {}
"""By set, kind and field: the default where it differs from today's."""


def fill(data: Any) -> Any:
    """Write out the defaults of the set that plain data names with ``defaults``.

    Return the data without that name.

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
        allowed = f"a whole number from 1 to {CURRENT}" if CURRENT > 1 else "1"
        raise UserError(f"defaults is {short(number)}; it must be {allowed}")
    rest = {name: value for name, value in data.items() if name != "defaults"}
    if "simulator" in rest:
        rest["simulator"] = _filled(rest["simulator"], number)
    if isinstance(rest.get("agents"), list):
        rest["agents"] = [_filled(agent, number) for agent in rest["agents"]]
    return rest


def link_default(params: type[Params], name: str) -> Any:
    """Return the value that a link leaves out for a field of a kind."""
    fields = params.model_fields
    return _former(LINKS, fields["kind"].default).get(name, fields[name].default)


def _filled(part: Any, number: int) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("kind"), str):
        return part
    return {**_former(number, part["kind"]), **part}


def _former(number: int, kind: str) -> Mapping[str, Any]:
    return FORMER.get(number, {}).get(kind, {})
