"""Click probabilities of the pet shop, with all personas equally frequent."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.simulators.petshop import PetShop
from bandits.simulators.petshop_rates import CATEGORIES, CLICK_RATES, SPOKEN_PERSONAS

from .base import Table, Values, WorkedExample


class Shop(WorkedExample):
    """The shop in which most lessons take place."""

    title = "The shop in numbers"
    known = ("personas", "categories", "products")

    @classmethod
    def values(cls, params: Any) -> Values:  # noqa: ARG003 - it has none
        """Return the rates of random and best choice, and the log loss of a perfect model."""
        rates = np.array(CLICK_RATES)
        loss = -(rates * np.log(rates) + (1 - rates) * np.log(1 - rates))
        return {
            "personas": float(rates.shape[0]), "categories": float(rates.shape[1]),
            "products": float(PetShop.Params().n_products),
            "random": float(rates.mean()), "best": float(rates.max(axis=1).mean()),
            "best_single": float(rates.mean(axis=0).max()), "log_loss": float(loss.mean()),
        }  # fmt: skip

    @classmethod
    def tables(cls, params: Any) -> list[Table]:  # noqa: ARG003
        """Show the click probabilities."""
        rows = tuple(
            (persona, *(f"{rate:.2f}" for rate in rates))
            for persona, rates in zip(SPOKEN_PERSONAS, CLICK_RATES, strict=True)
        )
        return [Table("Click probabilities", ("persona", *CATEGORIES), rows)]
