"""A posterior draw that sees the visitor but not the item: listing 16.4 of chapter 16, printed and
corrected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.params import Params, param
from bandits.base.types import FloatArray

from .base import Table, Values, WorkedExample

ITEMS, WIDTH, SHOWN = 5, 4, 60


class SameScoreParams(Params):
    """Which posterior draw is looked at."""

    draw: int = param(
        1,
        title="Draw",
        ge=1,
        le=20,
        basic=True,
        help=(
            "Number of the draw from the posterior. Every draw is another possible head of the "
            "network."
        ),
    )


class SameScore(WorkedExample):
    """A score that depends on the visitor alone is the same for every item."""

    Params = SameScoreParams
    title = "One draw, scored two ways"
    formula = r"\tilde w^\top\phi(x)\ \text{against}\ \tilde w^\top\phi(x,a)"
    known = ("items", "draw")

    @classmethod
    def scores(cls, params: Any) -> tuple[FloatArray, FloatArray]:
        """Return the scores of the items as printed and with their features, two of float64
        (n_items,).
        """
        g = np.random.default_rng(16)
        visitor, items = g.standard_normal(WIDTH), g.standard_normal((ITEMS, WIDTH))
        body = g.standard_normal((WIDTH, 2 * WIDTH)) / np.sqrt(2 * WIDTH)
        phi = np.tanh(
            np.concatenate([np.broadcast_to(visitor, items.shape), items], axis=1) @ body.T
        )
        past = np.tanh(g.standard_normal((SHOWN, 2 * WIDTH)) @ body.T)
        A = np.eye(WIDTH) + past.T @ past
        mean = np.linalg.solve(A, past.T @ (g.random(SHOWN) < 0.3))
        draw = np.random.default_rng([16, params.draw]).multivariate_normal(mean, np.linalg.inv(A))
        # features of the visitor only
        alone = np.tanh(np.concatenate([visitor, np.zeros(WIDTH)]) @ body.T)
        return np.array([draw @ alone for _ in items]), phi @ draw

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return which item each way shows, and how far apart its scores are."""
        printed, corrected = cls.scores(params)
        corrected_items = {
            int(cls.scores(SameScoreParams(draw=d))[1].argmax()) for d in range(1, 21)
        }
        return {
            "items": float(ITEMS),
            "draw": float(params.draw),
            "shown_printed": float(printed.argmax() + 1),
            "shown_corrected": float(corrected.argmax() + 1),
            "spread_printed": float(np.ptp(printed)),
            "spread_corrected": float(np.ptp(corrected)),
            "items_of_all_draws": float(len(corrected_items)),
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show the scores of every item."""
        printed, corrected = cls.scores(params)
        scores = np.stack([printed, corrected], axis=1)
        rows = tuple(
            (f"{k + 1}", *(f"{score:.4f}".replace("-", "−") for score in scores[k]))
            for k in range(ITEMS)
        )
        return [
            Table(
                "Scores of one draw",
                ("item", "as printed", "with features of the item"),
                rows,
                (1, 2),
            )
        ]
