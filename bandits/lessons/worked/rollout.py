"""The first step of a rollout: how long a worse version serves before the gate stops it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bandits.base.params import Params, param
from bandits.base.types import FloatArray
from bandits.offpolicy.anytime import confidence_sequence
from bandits.results.figures.parts import axis, drawing, line, reference
from bandits.results.figures.style import RATE, STEP, Spec, distinct_styles

from .base import Table, Values, WorkedExample

CHAMPION = 0.3
DECISIONS, EVERY = 30_000, 500
ROLLOUTS = 20
SEED = 11
LEVEL = 0.95
LOOKS = list(range(EVERY, DECISIONS + 1, EVERY))


class RolloutParams(Params):
    """The new version, and how many users it gets."""

    share: float = param(
        0.05,
        title="Share of users",
        symbol="p",
        ge=0.01,
        le=0.5,
        basic=True,
        help=(
            "Share of the users that the new version gets. A larger share finds a difference "
            "sooner, and more users meet a bad version; usually 0.05."
        ),
    )
    worse: float = param(
        0.2,
        title="Loss",
        ge=0.0,
        le=0.6,
        basic=True,
        help="Share of its clicks that the new version loses. 0: it is as good as the old one.",
    )


class Found(NamedTuple):
    """Rollouts that were simulated: decisions until each was stopped, and the interval of the
    first at each look, float64 (looks, 2).
    """

    stopped: FloatArray
    first: FloatArray


class Rollout(WorkedExample):
    """A new version beside the old one, stopped where an anytime-valid interval is below 0.

    A decision counts (r - c) / p if the new version made it and -(r - c) / (1 - p) otherwise, where
    c is the mean of the rewards before.
    """

    Params = RolloutParams
    title = "A rollout"
    formula = (
        r"\hat\Delta_n=\frac1n\sum_{t\le n}(r_t-c_t)\Big(\frac{\mathbf 1\{\text{new}\}}{p}"
        r"-\frac{\mathbf 1\{\text{old}\}}{1-p}\Big)"
    )
    slow = ("stopped_equal",)
    known = ("share", "worse", "champion", "decisions", "rollouts", "level")

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return when rollouts are stopped, and what that costs."""
        found = simulated(params.share, params.worse)
        loss = CHAMPION * params.worse
        ends = np.minimum(found.stopped, DECISIONS)
        return {
            "share": params.share,
            "worse": params.worse,
            "champion": CHAMPION,
            "decisions": float(DECISIONS),
            "rollouts": float(ROLLOUTS),
            "level": LEVEL,
            "stopped": float(np.median(ends)),
            "caught": float(np.isfinite(found.stopped).mean()),
            "lost": float(ends.mean() * params.share * loss),
            "swapped": float(ends.mean() * loss),
        }

    @classmethod
    def slow_values(cls, params: Any) -> Values:
        """Return how many rollouts of a version without a loss are stopped."""
        equal = simulated(params.share, 0.0).stopped
        return {"stopped_equal": float(np.isfinite(equal).sum())}

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Count the rollouts that are stopped."""
        stopped = simulated(params.share, params.worse).stopped
        middle = np.median(stopped)
        median = f"{middle:,.0f}" if np.isfinite(middle) else f"beyond {DECISIONS:,}"
        row = f"{ROLLOUTS}", f"{np.isfinite(stopped).sum()}", median
        columns = ("rollouts", "stopped", "median decisions")
        return [Table("How many the gate stops", columns, (row,), (1, 2))]

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:
        """Draw the interval of one rollout against the decisions."""
        found, looks = simulated(params.share, params.worse), np.array(LOOKS, np.float64)
        color = distinct_styles(("new minus old",))["new minus old"].color
        # before the first thousand it is wider than the plot
        shown = looks >= 2 * EVERY
        data = [
            line("upper end", looks[shown], found.first[shown, 1], color),
            line("lower end", looks[shown], found.first[shown, 0], color, "dot"),
            reference("no difference", looks[[0, -1]], np.zeros(2)),
        ]
        end = found.stopped[0]
        note = "Interval of new minus old, in clicks per decision, of one rollout. "
        if np.isfinite(end):
            drawn = found.first[shown]
            ends = np.array([drawn.min(), drawn.max()])
            data.append(reference("stopped", np.full(2, end), ends, "dashdot"))
            note += (
                f"The gate stops it after {end:,.0f} decisions, where the upper end is below 0. "
                "Right of this line: the interval if both versions had served on."
            )
        else:
            note += f"The gate does not stop it within {DECISIONS:,} decisions."
        x, y = axis("decisions", hoverformat=STEP), axis("new minus old", hoverformat=RATE)
        return [drawing(data, "The gate of a rollout", x=x, y=y, note=note, legend=True)]


@lru_cache(maxsize=64)
def simulated(share: float, worse: float) -> Found:
    """Simulate rollouts of a version that loses a share of its clicks."""
    generator = np.random.default_rng(SEED)
    stopped = np.full(ROLLOUTS, np.inf)
    first = np.empty((len(LOOKS), 2))
    bound = max(1 / share, 1 / (1 - share))
    for i in range(ROLLOUTS):
        new, clicks = generator.random((2, DECISIONS))
        new, clicks = new < share, clicks < np.where(new < share, CHAMPION * (1 - worse), CHAMPION)
        signed = signed_rewards(clicks.astype(np.float64), new, share)
        found = confidence_sequence(
            np.ones(DECISIONS), signed, looks=LOOKS, low=-bound, high=bound, level=LEVEL
        )
        if i == 0:
            first = found
        below = np.flatnonzero(found[:, 1] < 0)
        if len(below):
            stopped[i] = LOOKS[below[0]]
    return Found(stopped, first)


def signed_rewards(rewards: FloatArray, new: Any, share: float) -> FloatArray:
    """Return what each decision counts, float64 (n,)."""
    before = np.arange(len(rewards))
    centre = np.where(before, (rewards.cumsum() - rewards) / np.maximum(before, 1), 0.5)
    return np.asarray((rewards - centre) * np.where(new, 1 / share, -1 / (1 - share)))
