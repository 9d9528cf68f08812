"""The first bonuses of a shared model whose features have different units: listing 16.3 of chapter
16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.formatting import number
from bandits.base.params import Params, param
from bandits.base.types import FloatArray
from bandits.results.figures.parts import axis, drawing, line, points
from bandits.results.figures.style import NUMBER, Spec, distinct_styles
from bandits.simulators.articles import ARTICLES, VISITOR, VISITORS

from .base import Table, Values, WorkedExample

ALPHA = 1.5
RIDGE = 1.0
NAMES = ("first", "second", "third")
# places of the features in hours
_HOUR, _AGE = 3, 7


class ArticlesParams(Params):
    """The unit of the features that are times."""

    unit: float = param(
        1.0,
        title="Time unit",
        symbol="u",
        unit="hours",
        ge=1,
        le=48,
        basic=True,
        help=(
            "Hour of the day and age of the article are divided by it. Larger values make these "
            "two features smaller; 24 gives them the size of the others."
        ),
    )


class Articles(WorkedExample):
    """Before the first observation the bonus of a candidate is proportional to the length of its
    features.
    """

    Params = ArticlesParams
    title = "Three articles and a visitor"
    formula = r"\alpha\sqrt{x^\top A^{-1}x},\quad A=\lambda I+\sum x\,x^\top"
    known = ("articles", "unit", "alpha", "hour", "age_first", "age_second", "age_third")

    @classmethod
    def features(cls, visitor: FloatArray, unit: float) -> FloatArray:
        """Return the features of a visitor (5,) with each article, float64 (3, 9)."""
        x = np.concatenate(
            [np.broadcast_to(visitor, (len(ARTICLES), len(visitor))), ARTICLES], axis=1
        )
        x[:, [_HOUR, _AGE]] /= unit
        return np.asarray(x)

    @classmethod
    def bonuses(cls, visitor: FloatArray, unit: float) -> FloatArray:
        """Compute the bonus of each article before the first observation, float64 (3,)."""
        x = cls.features(visitor, unit)
        A = RIDGE * np.eye(x.shape[1])
        return np.asarray(ALPHA * np.sqrt(np.einsum("kd,de,ke->k", x, np.linalg.inv(A), x)))

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return the bonuses, and for which share of all visitors the third article is shown."""
        found, x = cls.bonuses(VISITOR, params.unit), cls.features(VISITOR, params.unit)[2]
        third = np.mean([cls.bonuses(visitor, params.unit).argmax() == 2 for visitor in VISITORS])
        return {
            "articles": float(len(ARTICLES)),
            "unit": params.unit,
            "alpha": ALPHA,
            "hour": float(VISITOR[_HOUR]),
            **{f"age_{name}": float(age) for name, age in zip(NAMES, ARTICLES[:, 2], strict=True)},
            **{f"bonus_{name}": float(bonus) for name, bonus in zip(NAMES, found, strict=True)},
            "ratio": float(found.max() / found.min()),
            "share_third": float(third),
            "share_of_times": float((x[_HOUR] ** 2 + x[_AGE] ** 2) / (x @ x)),
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show the features in hours of each article, and its bonus."""
        x, found = cls.features(VISITOR, params.unit), cls.bonuses(VISITOR, params.unit)
        rows = tuple(
            (name, number(x[i, _HOUR]), number(x[i, _AGE]), f"{found[i]:.2f}")
            for i, name in enumerate(NAMES)
        )
        return [
            Table(
                "The first visit", ("article", "hour feature", "age feature", "bonus"), rows, (3,)
            )
        ]

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:
        """Draw the bonuses against the unit."""
        units, looks = np.linspace(1, 48, 189), distinct_styles(NAMES)
        curves = np.array([cls.bonuses(VISITOR, unit) for unit in units])
        chosen = cls.bonuses(VISITOR, params.unit)
        data = [
            *(
                line(f"{name} article", units, curves[:, i], *looks[name])
                for i, name in enumerate(NAMES)
            ),
            *(
                points(n, [params.unit], [chosen[i]], looks[n].color, size=10, showlegend=False)
                for i, n in enumerate(NAMES)
            ),
        ]
        x, y = (
            axis("hours per unit", hoverformat=NUMBER),
            axis("bonus", hoverformat=NUMBER, rangemode="tozero"),
        )
        note = "Bonuses of the first visit; points: the unit that is chosen."
        return [drawing(data, "Bonus by unit of time", x=x, y=y, note=note, legend=True)]
