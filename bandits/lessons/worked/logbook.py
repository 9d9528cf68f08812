"""Ridge regression on a logbook of four visits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.formatting import number
from bandits.base.params import Params, param
from bandits.base.types import FloatArray
from bandits.simulators.petshop_rates import PERSONAS, Persona

from .base import Table, Values, WorkedExample

ROWS = 4
# names of numbers, by persona
SHORT = ("puppy", "cat", "budget", "fish")
COUNTS = tuple(f"{kind}_{name}" for name in SHORT for kind in ("visits", "clicks"))


def _visitor(row: str, default: Persona) -> Any:
    return param(
        default,
        title=f"Visitor {row}",
        help=f"Persona of visitor {row} in the logbook of one product.",
    )


def _click(row: str, default: bool) -> Any:
    return param(default, title=f"Click {row}", help=f"Whether visitor {row} clicked the product.")


class LogbookParams(Params):
    """Who visited, who clicked, and the ridge penalty."""

    visitor_a: Persona = _visitor("A", "new_puppy_parent")
    visitor_b: Persona = _visitor("B", "cat_connoisseur")
    visitor_c: Persona = _visitor("C", "new_puppy_parent")
    visitor_d: Persona = _visitor("D", "budget_shopper")
    click_a: bool = _click("A", True)
    click_b: bool = _click("B", False)
    click_c: bool = _click("C", False)
    click_d: bool = _click("D", True)
    ridge: float = param(
        1.0,
        title="Ridge penalty",
        symbol=r"\lambda",
        ge=0,
        le=100,
        basic=True,
        typical=(0, 10),
        help=(
            "Added to the diagonal of D'D. Larger values shrink the weights more strongly; "
            "usually 0.1 to 10."
        ),
    )


class Logbook(WorkedExample):
    """Count visits and clicks by persona, and divide: what ridge regression does where features are
    one-hot.
    """

    Params = LogbookParams
    title = "Four visits to one product"
    formula = r"\hat\theta=(D^\top D+\lambda I)^{-1}D^\top c"
    known = ("visits", "clicks", "ridge", *COUNTS)
    groups = tuple((f"visitor_{row}", f"click_{row}") for row in "abcd")

    @classmethod
    def data(cls, params: Any) -> tuple[FloatArray, FloatArray]:
        """Return the design matrix D, float64 (4, 4), and the clicks c, float64 (4,)."""
        visitors = (params.visitor_a, params.visitor_b, params.visitor_c, params.visitor_d)
        clicks = (params.click_a, params.click_b, params.click_c, params.click_d)
        return np.eye(len(PERSONAS))[[PERSONAS.index(v) for v in visitors]], np.array(
            clicks, dtype=float
        )

    @classmethod
    def weights(cls, params: Any) -> FloatArray:
        """Solve for theta, float64 (4,); NaN where nothing determines a weight."""
        D, c = cls.data(params)
        gram, b = D.T @ D, D.T @ c
        seen = np.diag(gram) + params.ridge > 0
        theta = np.full(len(b), np.nan)
        kept = np.ix_(seen, seen)
        theta[seen] = np.linalg.solve(gram[kept] + params.ridge * np.eye(int(seen.sum())), b[seen])
        return theta

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return visits, clicks and weight of every persona."""
        D, c = cls.data(params)
        theta = cls.weights(params)
        found: dict[str, float] = {
            "visits": float(len(c)),
            "clicks": float(c.sum()),
            "ridge": params.ridge,
        }
        for i, name in enumerate(SHORT):
            found[f"visits_{name}"], found[f"clicks_{name}"] = (
                float((D.T @ D)[i, i]),
                float((D.T @ c)[i]),
            )
            found[f"weight_{name}"] = float(theta[i])
        return found

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show D with c, then D'D, D'c and theta."""
        D, c = cls.data(params)
        gram, b, theta = D.T @ D, D.T @ c, cls.weights(params)
        log = tuple(
            (f"visitor {'ABCD'[row]}", *(number(x) for x in D[row]), number(c[row]))
            for row in range(ROWS)
        )
        solved = tuple(
            (persona, *(number(x) for x in gram[i]), number(b[i]), number(theta[i]))
            for i, persona in enumerate(SHORT)
        )
        columns = ("", *SHORT, "D'c", "weight θ")
        return [
            Table(
                "The logbook as numbers: D, one row per visit, and c", ("", *SHORT, "click c"), log
            ),
            Table(
                "Added up by persona: D'D, D'c and the weights",
                columns,
                solved,
                tuple(range(1, len(columns))),
            ),
        ]
