"""Base class of worked examples: small calculations that a reader can change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from bandits.base.params import Params
from bandits.results.figures.style import Spec

Values = Mapping[str, float]


class Table(NamedTuple):
    """A small table of a worked example, as text.

    Attributes
    ----------
    title : str
    columns : tuple of str
    rows : tuple of tuple of str
    results : tuple of int
        Columns that are computed: blanks in a copy without answers.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    results: tuple[int, ...] = ()


class WorkedExample:
    """A calculation with parameters: numbers by name, tables and figures."""

    Params: ClassVar[type[Params]] = Params
    title: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    """What is computed, in LaTeX."""
    known: ClassVar[tuple[str, ...]] = ()
    """Names of the numbers that a question may state: data and parameters, not results."""
    slow: ClassVar[tuple[str, ...]] = ()
    """Names of the numbers that `slow_values` computes: those for which a large library is loaded."""

    groups: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Parameters that belong together: the controls of each group stand below each other."""

    @classmethod
    def values(cls, params: Any) -> Values:
        """Compute the numbers of the example by name, without the `slow` ones; NaN where one does not exist."""
        raise NotImplementedError

    @classmethod
    def slow_values(cls, params: Any) -> Values:  # noqa: ARG003
        """Compute the `slow` numbers; reading a lesson does not."""
        return {}

    @classmethod
    def tables(cls, params: Any) -> list[Table]:  # noqa: ARG003
        """Return the tables to show."""
        return []

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:  # noqa: ARG003
        """Draw the figures to show."""
        return []
