"""Tables of the registered agents and simulators, readable in a terminal and in a notebook."""

from __future__ import annotations

import html
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from bandits.agents import REGISTRY as AGENTS
from bandits.base.formatting import description
from bandits.simulators import REGISTRY as SIMULATORS

if TYPE_CHECKING:
    import pandas as pd

# characters of a line in a terminal
WIDTH = 120


class Kind(NamedTuple):
    """One registered agent or simulator.

    Attributes
    ----------
    kind : str
        Value of the JSON field ``kind``.
    title : str
        Default label.
    family : str
        Model of the rewards ("context free", "linear", "logistic", "neural"); empty for simulators.
    summary : str
    """

    kind: str
    title: str
    family: str
    summary: str


class Kinds(list[Kind]):
    """A list of kinds that prints as a table."""

    def __repr__(self) -> str:
        columns = self._columns()
        widths = {
            name: max(len(name), *(len(getattr(row, name)) for row in self))
            for name in columns[:-1]
        }
        indent = sum(widths.values()) + 2 * len(widths)
        lines = ["  ".join([*(name.ljust(widths[name]) for name in columns[:-1]), columns[-1]])]
        for row in self:
            start = "".join(getattr(row, name).ljust(widths[name] + 2) for name in columns[:-1])
            lines += textwrap.wrap(
                row.summary, WIDTH, initial_indent=start, subsequent_indent=" " * indent
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = self._columns()
        head = "".join(f"<th>{name}</th>" for name in columns)
        rows = [
            "".join(f"<td>{html.escape(getattr(row, name))}</td>" for name in columns)
            for row in self
        ]
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _columns(self) -> list[str]:
        return [
            name for name in Kind._fields if name != "family" or any(row.family for row in self)
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self), columns=list(Kind._fields))[self._columns()]


def agent_kinds() -> Kinds:
    """List the registered agents."""
    return Kinds(
        Kind(kind, cls.title, _family(cls), description(cls)) for kind, cls in AGENTS.items()
    )


def simulator_kinds() -> Kinds:
    """List the registered simulators."""
    return Kinds(Kind(kind, cls.title, "", description(cls)) for kind, cls in SIMULATORS.items())


def _family(cls: type) -> str:
    package = cls.__module__.split(".")
    return package[2].replace("_", " ") if package[:2] == ["bandits", "agents"] else "plug-in"
