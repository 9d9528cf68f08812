"""Click probabilities of the pet shop, and what a hundred visits show of one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.params import Params, param
from bandits.results.metrics import normalised_entropy
from bandits.simulators.petshop_rates import CATEGORIES, CLICK_RATES, SPOKEN_PERSONAS

from .base import Table, Values, WorkedExample

PRODUCTS = 50  # as in the pet shop's defaults
_NORMAL = 1.959963984540054  # 97.5 % quantile


class ShopParams(Params):
    """A trial: visits and clicks of one product."""

    visits: int = param(
        100, title="Visits", symbol="n", ge=1, le=100_000, basic=True, typical=(10, 10_000), log=True,
        help="Number of visits in the trial. More visits give a narrower interval; usually 100 to 10,000.",
    )  # fmt: skip
    rate: float = param(
        0.53, title="Observed CTR", symbol="r", ge=0, le=1, basic=True,
        help="Share of the visits with a click. Larger values mean more clicks.",
    )  # fmt: skip


class Shop(WorkedExample):
    """The shop in which most lessons take place, with all personas equally frequent."""

    Params = ShopParams
    title = "The shop in numbers"
    formula = r"r\pm1.96\sqrt{r(1-r)/n}"
    known = ("personas", "categories", "products", "visits", "clicks", "rate")

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return the rates of random and best choice, a perfect model's log loss, and the interval of the trial."""
        rates = np.array(CLICK_RATES)
        best = np.bincount(rates.argmax(axis=1), minlength=PRODUCTS)  # how often the best choice shows each product
        half = _NORMAL * float(np.sqrt(params.rate * (1 - params.rate) / params.visits))
        loss = -(rates * np.log(rates) + (1 - rates) * np.log(1 - rates))
        return {
            "personas": float(rates.shape[0]), "categories": float(rates.shape[1]), "products": float(PRODUCTS),
            "random": float(rates.mean()), "best": float(rates.max(axis=1).mean()),
            "best_single": float(rates.mean(axis=0).max()),
            "log_loss": float(loss.mean()), "best_entropy": float(_entropy(best)),
            "visits": float(params.visits), "clicks": params.rate * params.visits, "rate": params.rate,
            "low": max(0.0, params.rate - half), "high": min(1.0, params.rate + half),
        }  # fmt: skip

    @classmethod
    def tables(cls, params: Any) -> list[Table]:  # noqa: ARG003
        """Show the click probabilities."""
        rows = tuple(
            (persona, *(f"{rate:.2f}" for rate in rates))
            for persona, rates in zip(SPOKEN_PERSONAS, CLICK_RATES, strict=True)
        )
        return [Table("Click probabilities", ("persona", *CATEGORIES), rows)]


def _entropy(shown: np.ndarray) -> float:
    """Compute the normalised selection entropy of shares over all products, for a long run."""
    return float(normalised_entropy(shown * 1000))
