"""A linear head whose features change their scale when the network below it is trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.formatting import GLUE, number
from bandits.base.params import Params, param
from bandits.results.figures.parts import axis, drawing, line, points
from bandits.results.figures.style import NUMBER, Spec, distinct_styles

from .base import Table, Values, WorkedExample

BEFORE, RATE, SCALE, RIDGE, MOST = 250, 0.5, 2.0, 1.0, 1000
_HEADS = ("stale head", "rebuilt head")


class StaleHeadParams(Params):
    """What has been observed since the training."""

    after: int = param(
        0,
        title="Observations since the training",
        symbol="m",
        ge=0,
        le=MOST,
        basic=True,
        help="Observations with the new features. Larger values give the old ones less weight.",
    )


class StaleHead(WorkedExample):
    """A head keeps sums of old features.

    A network that doubles its feature doubles the prediction of a stale head.
    """

    Params = StaleHeadParams
    title = "A head after its network was trained"
    formula = r"\hat\omega=\frac{\sum z\,r}{\lambda+\sum z^2},\quad \hat r=\hat\omega\,z"
    known = ("before", "after", "rate", "scale")

    @classmethod
    def predictions(cls, after: float) -> tuple[float, float]:
        """Return the predictions of the stale and of the rebuilt head, where all rewards are `RATE`
        on average.
        """
        stale = (BEFORE * RATE + after * SCALE * RATE) / (RIDGE + BEFORE + after * SCALE**2)
        # all history, encoded anew
        n = BEFORE + after
        rebuilt = n * SCALE * RATE / (RIDGE + n * SCALE**2)
        return SCALE * stale, SCALE * rebuilt

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return both predictions, their relative errors, and the widths of the intervals that the
        heads state.
        """
        stale, rebuilt = cls.predictions(params.after)
        return {
            "before": float(BEFORE),
            "after": float(params.after),
            "rate": RATE,
            "scale": SCALE,
            "stale": stale,
            "rebuilt": rebuilt,
            "stale_error": stale / RATE - 1,
            "rebuilt_error": rebuilt / RATE - 1,
            "stale_width": SCALE / (RIDGE + BEFORE + params.after * SCALE**2) ** 0.5,
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show both predictions."""
        found = cls.values(params)
        rows = tuple(
            (
                name,
                number(found[key]),
                f"{100 * found[f'{key}_error']:+.1f}{GLUE}%".replace("-", "−"),
            )
            for name, key in zip(_HEADS, ("stale", "rebuilt"), strict=True)
        )
        return [Table("Predicted click probability", ("head", "prediction", "error"), rows, (1, 2))]

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:
        """Draw both predictions against the observations since the training."""
        m, looks = np.arange(0, MOST + 1, 10), distinct_styles(_HEADS)
        curves = np.array([cls.predictions(float(each)) for each in m])
        now = dict(zip(_HEADS, cls.predictions(params.after), strict=True))
        data = [
            *(line(name, m, curves[:, i], *looks[name]) for i, name in enumerate(_HEADS)),
            *(
                points(
                    name, [params.after], [now[name]], looks[name].color, size=10, showlegend=False
                )
                for name in _HEADS
            ),
        ]
        x = axis("observations since the training", hoverformat=NUMBER)
        y = axis("predicted click probability", hoverformat=NUMBER, rangemode="tozero")
        note = "Points: the number of observations that is chosen."
        return [drawing(data, "Prediction after the training", x=x, y=y, note=note, legend=True)]
