"""Look at a comparison of two equal agents again and again until it seems significant."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from bandits.base.params import Params, param
from bandits.base.types import FloatArray
from bandits.results.figures.parts import axis, drawing, line, points, reference
from bandits.results.figures.style import RATE, STEP, Spec, distinct_styles

from .base import Values, WorkedExample

TRIALS = 20_000
SEED = 42
LEVEL = 0.05
# 97.5 % quantile
_NORMAL = 1.959963984540054
MOST = 200


class PeekingParams(Params):
    """How often one looks."""

    looks: int = param(
        100,
        title="Looks",
        symbol="k",
        ge=1,
        le=MOST,
        basic=True,
        help=(
            "Number of times that the comparison is tested while data comes in. More looks give "
            "more false alarms; usually 1 to 100."
        ),
    )


class Peeking(WorkedExample):
    """Test two equal agents after each batch of visits.

    Stop at the first p-value below the level.
    """

    Params = PeekingParams
    title = "Looking again and again"
    formula = (
        r"P\Big(\max_{j\le k}\big|S_j\big|/\sqrt j>1.96\Big),\quad S_j=\sum_{i\le j}\varepsilon_i"
    )
    known = ("looks", "trials", "level")

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return the share of false alarms with one look, and with all looks."""
        curve = false_alarms()
        found = {"looks": float(params.looks), "trials": float(TRIALS), "level": LEVEL}
        return {
            **found,
            "once": float(curve[0]),
            "ever": float(curve[params.looks - 1]),
            "ten": float(curve[9]),
        }

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:
        """Draw the share of false alarms against the number of looks."""
        looks, color = (
            np.arange(1, MOST + 1, dtype=float),
            distinct_styles(("alarms",))["alarms"].color,
        )
        shares, at = false_alarms(), slice(params.looks - 1, params.looks)
        data = [
            line("at least one false alarm", looks, shares, color),
            reference("the level of one test", looks[[0, -1]], np.full(2, LEVEL)),
            points(f"{params.looks} looks", looks[at], shares[at], color, size=11),
        ]
        note = (
            f"Share of {TRIALS:,} comparisons of two equal agents that seemed significant at one "
            "look or more."
        )
        x, y = (
            axis("looks", hoverformat=STEP),
            axis("false alarms", hoverformat=RATE, rangemode="tozero"),
        )
        return [drawing(data, "False alarms by number of looks", x=x, y=y, note=note, legend=True)]


@lru_cache(maxsize=1)
def false_alarms() -> FloatArray:
    """Compute the share of comparisons with a false alarm within 1, 2, ...

    looks, float64 (looks,).
    """
    generator = np.random.default_rng(SEED)
    alarms = np.zeros(MOST)
    # in parts, to use little memory
    for _ in range(10):
        sums = generator.standard_normal((TRIALS // 10, MOST)).cumsum(axis=1)
        crossed = np.abs(sums) > _NORMAL * np.sqrt(np.arange(1, MOST + 1))
        alarms += np.logical_or.accumulate(crossed, axis=1).sum(axis=0)
    return np.asarray(alarms / TRIALS)
