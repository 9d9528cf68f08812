"""Base class of worked examples: small calculations that a reader can change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandits.base.params import Params
from bandits.results.figures.style import Spec
from bandits.simulators.petshop import PetShop
from bandits.simulators.petshop_rates import CATEGORIES, CLICK_RATES, SPOKEN_PERSONAS

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
    """Names of the numbers that `slow_values` computes: those for which a large library is
    loaded.
    """

    groups: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Parameters that belong together: the controls of each group stand below each other."""

    @classmethod
    def values(cls, params: Any) -> Values:
        """Compute the numbers of the example by name, without the `slow` ones.

        NaN where one does not exist.
        """
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


class Shop(WorkedExample):
    """The shop in which most lessons take place."""

    title = "The shop in numbers"
    known = ("personas", "categories", "products")

    @classmethod
    def values(cls, params: Any) -> Values:  # noqa: ARG003
        """Return the rates of random and best choice, and the log loss of a perfect model."""
        rates = np.array(CLICK_RATES)
        loss = -(rates * np.log(rates) + (1 - rates) * np.log(1 - rates))
        return {
            "personas": float(rates.shape[0]),
            "categories": float(rates.shape[1]),
            "products": float(PetShop.Params().n_products),
            "random": float(rates.mean()),
            "best": float(rates.max(axis=1).mean()),
            "best_single": float(rates.mean(axis=0).max()),
            "log_loss": float(loss.mean()),
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:  # noqa: ARG003
        """Show the click probabilities."""
        rows = tuple(
            (persona, *(f"{rate:.2f}" for rate in rates))
            for persona, rates in zip(SPOKEN_PERSONAS, CLICK_RATES, strict=True)
        )
        return [Table("Click probabilities", ("persona", *CATEGORIES), rows)]
