"""Tables of the registered agents and simulators, readable in a terminal and in a notebook."""

from __future__ import annotations

import html
import re
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import Agent
from bandits.base.formatting import description, references, spelled
from bandits.simulators import REGISTRY as SIMULATORS

if TYPE_CHECKING:
    import pandas as pd

# characters of a line in a terminal
WIDTH = 120
# what a family is called besides
FAMILY_WORDS = {
    "linear": "features, ridge regression",
    "logistic": "features, logistic regression, clicks",
    "trees": "features, decision trees, boosting",
    "neural": "features, neural networks, deep learning",
    "planning": "reinforcement learning, visits",
    "context free": "no features, without features, K-armed",
}
# a question has them, an agent is not found by them
FILLING = frozenset({"a", "an", "as", "by", "for", "from", "in", "like", "of", "the", "with"})
# characters of a query that are read
LONGEST = 200


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
    words : str
        What finds it besides, for `Kinds.search`.
    """

    kind: str
    title: str
    family: str
    summary: str
    words: str


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
            name
            for name in Kind._fields[:-1]
            if name != "family" or any(row.family for row in self)
        ]

    def search(self, query: str) -> Kinds:
        """Return the rows that contain a query, or else all of its words, in any field.

        Words such as "as" and "in" are left out, case does not matter, and Greek letters may be
        spelled. Up to three letters must begin a word, more may stand within one.

        Parameters
        ----------
        query : str
            For example "no features", "trees" or "as in VW".

        Examples
        --------
        >>> import bandits
        >>> [agent.kind for agent in bandits.list_agents().search("trees")]
        ['tree_ts', 'oracle_based']
        """
        words = [word for word in spelled(query[:LONGEST]).split() if word not in FILLING]
        texts = [spelled(" ".join(row)) for row in self]
        phrase = " ".join(words)
        if len(words) > 1 and any(phrase in text for text in texts):
            return Kinds(row for row, text in zip(self, texts, strict=True) if phrase in text)
        wanted = [_pattern(word) for word in words]
        return Kinds(
            row
            for row, text in zip(self, texts, strict=True)
            if all(pattern.search(text) for pattern in wanted)
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self), columns=list(Kind._fields))[self._columns()]


def agent_kinds() -> Kinds:
    """List the registered agents."""
    return Kinds(
        Kind(kind, cls.title, family := _family(cls), description(cls), _words(cls, family))
        for kind, cls in AGENTS.items()
    )


def simulator_kinds() -> Kinds:
    """List the registered simulators."""
    return Kinds(
        Kind(kind, cls.title, "", description(cls), cls.family) for kind, cls in SIMULATORS.items()
    )


def _words(cls: type[Agent], family: str) -> str:
    """Return what finds an agent besides its title, family and summary."""
    # LinTS is a TS
    parts = re.sub("(?<=[a-z])(?=[A-Z])", " ", cls.title)
    # titles of papers name what their authors compare with
    authors = [reference.partition(")")[0] for reference in references(cls)]
    return ", ".join([parts, FAMILY_WORDS.get(family, ""), cls.keywords, *authors])


def _pattern(word: str) -> re.Pattern[str]:
    """Match a word anywhere, or a short one at the beginning of a word."""
    literal = re.escape(word.removesuffix("s") if len(word) > 4 else word)
    return re.compile(literal if len(word) > 3 else rf"\b{literal}")


def _family(cls: type) -> str:
    package = cls.__module__.split(".")
    return package[2].replace("_", " ") if package[:2] == ["bandits", "agents"] else "plug-in"
