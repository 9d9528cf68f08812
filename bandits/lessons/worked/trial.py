"""A trial of one product: the share of visitors that clicked, and its confidence interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.formatting import count
from bandits.base.params import Params, param
from bandits.base.types import FloatArray
from bandits.results.figures.parts import axis, drawing, line, points, reference
from bandits.results.figures.style import RATE, STEP, Spec, distinct_styles

from .base import Table, Values, WorkedExample

# 97.5 % quantile
_NORMAL = 1.959963984540054
# visits in the figure
_MOST = 3000


class TrialParams(Params):
    """Visits of the trial, and the share of them with a click."""

    visits: int = param(
        100,
        title="Visits",
        symbol="n",
        ge=1,
        le=100_000,
        basic=True,
        typical=(10, 3_000),
        help=(
            "Number of visits in the trial. More visits give a narrower interval; usually 100 to "
            "10,000."
        ),
    )
    rate: float = param(
        0.53,
        title="Observed CTR",
        symbol="r",
        ge=0,
        le=1,
        basic=True,
        help="Share of the visits with a click. Larger values mean more clicks.",
    )


class Trial(WorkedExample):
    """The normal approximation of a binomial interval."""

    Params = TrialParams
    title = "A trial and its interval"
    formula = r"r\pm1.96\sqrt{r(1-r)/n}"
    known = ("visits", "clicks", "rate")

    @classmethod
    def half_width(cls, rate: float, visits: Any) -> Any:
        """Compute half of the width of the interval, for a number of visits or an array of them."""
        return _NORMAL * np.sqrt(rate * (1 - rate) / visits)

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return the share and the ends of its interval."""
        half = float(cls.half_width(params.rate, params.visits))
        return {
            "visits": float(params.visits),
            "clicks": params.rate * params.visits,
            "rate": params.rate,
            "low": max(0.0, params.rate - half),
            "high": min(1.0, params.rate + half),
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show the interval."""
        found = cls.values(params)
        row = (
            count(found["visits"]),
            count(found["clicks"]),
            *(f"{found[key]:.3f}" for key in ("rate", "low", "high")),
        )
        return [
            Table("The trial", ("visits", "clicks", "share", "interval from", "to"), (row,), (3, 4))
        ]

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:
        """Draw the ends of the interval against the number of visits."""
        visits: FloatArray = np.unique(np.geomspace(20, _MOST, 200).round())
        half = cls.half_width(params.rate, visits)
        look = distinct_styles(("ends",))["ends"]
        data = [
            line("ends of the interval", visits, np.minimum(params.rate + half, 1), look.color),
            line(
                "lower end", visits, np.maximum(params.rate - half, 0), look.color, showlegend=False
            ),
            reference("observed share", visits[[0, -1]], np.full(2, params.rate)),
        ]
        if visits[0] <= params.visits <= _MOST:
            at, width = (
                np.full(2, float(params.visits)),
                float(cls.half_width(params.rate, params.visits)),
            )
            data.append(
                points(
                    "this trial", at, params.rate + np.array([-width, width]), look.color, size=11
                )
            )
        x, y = axis("visits", hoverformat=STEP), axis("click-through rate", hoverformat=RATE)
        note = "Ends of the 95 % confidence interval, if the observed share stays the same."
        return [drawing(data, "Interval by number of visits", x=x, y=y, note=note, legend=True)]
