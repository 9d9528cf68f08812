"""Two levers as posteriors: draws, the lever that they show, and its exact probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.params import Params, param
from bandits.base.types import FloatArray
from bandits.models.largest import beta_largest
from bandits.results.figures.parts import axis, drawing, line
from bandits.results.figures.style import NUMBER, RATE, Spec, distinct_styles

from .base import Table, Values, WorkedExample

KNOWN, NEW = "known lever", "new lever"
# pulls and points of the known lever
PULLS, POINTS = 40, 20
# draws that are counted
DRAWS = 20
# weight of the bonus of UCB1, as in its paper
ALPHA = 1.0


class PosteriorsParams(Params):
    """What is known of the new lever, and the draw that is looked at."""

    pulls: int = param(
        4,
        title="Pulls, new lever",
        symbol="n",
        ge=1,
        le=200,
        basic=True,
        help=(
            "How often the new lever was pulled. More pulls make its posterior narrower; usually "
            "1 to 50."
        ),
    )
    rate: float = param(
        0.25,
        title="Share with a point",
        symbol="r",
        ge=0,
        le=1,
        basic=True,
        help="Share of these pulls that gave a point. Larger values move its posterior right.",
    )
    draw: int = param(
        1,
        title="Draw",
        ge=1,
        le=DRAWS,
        basic=True,
        help="Number of the draw from both posteriors. Each decision of an agent makes a new one.",
    )


class Posteriors(WorkedExample):
    """Thompson sampling and UCB1 between a lever that is known and one that is not.

    A lever with p points in n pulls has the posterior Beta(1 + p, 1 + n - p). Thompson sampling
    draws from both; UCB1 adds a bonus to both shares of points.
    """

    Params = PosteriorsParams
    title = "Two levers"
    formula = r"\tilde p_a\sim\mathrm{Beta}(1+s_a,\,1+n_a-s_a),\quad a=\arg\max_a\tilde p_a"
    known = ("known_pulls", "known_points", "pulls", "points", "draw", "draws")

    @classmethod
    def counts(cls, params: Any) -> tuple[FloatArray, FloatArray]:
        """Return pulls and points of both levers, two of float64 (2,)."""
        points = round(params.rate * params.pulls)
        return np.array([PULLS, params.pulls], np.float64), np.array([POINTS, points], np.float64)

    @classmethod
    def posterior(cls, params: Any) -> tuple[FloatArray, FloatArray]:
        """Return both parameters of the Beta distributions, two of float64 (2,)."""
        pulls, points = cls.counts(params)
        return 1 + points, 1 + pulls - points

    @classmethod
    def draws(cls, params: Any) -> FloatArray:
        """Draw from both posteriors, float64 (DRAWS, 2)."""
        a, b = cls.posterior(params)
        return np.random.default_rng(15).beta(a, b, (DRAWS, 2))

    @classmethod
    def bounds(cls, params: Any) -> FloatArray:
        """Compute the scores of UCB1, float64 (2,)."""
        pulls, points = cls.counts(params)
        return np.asarray(points / pulls + ALPHA * np.sqrt(2 * np.log(pulls.sum()) / pulls))

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return means, scores and the probability that the new lever is shown."""
        pulls, points = cls.counts(params)
        a, b = cls.posterior(params)
        draws, bounds = cls.draws(params), cls.bounds(params)
        chance = beta_largest(a[None], b[None], np.ones((1, 2), np.bool_))[0]
        known, new = draws[params.draw - 1]
        return {
            "known_pulls": float(pulls[0]),
            "known_points": float(points[0]),
            "pulls": float(pulls[1]),
            "points": float(points[1]),
            "draw": float(params.draw),
            "draws": float(DRAWS),
            "mean_known": float(a[0] / (a[0] + b[0])),
            "mean_new": float(a[1] / (a[1] + b[1])),
            "draw_known": float(known),
            "draw_new": float(new),
            "shown": float((draws[:, 1] > draws[:, 0]).sum()),
            "chance": float(chance[1]),
            "bound_known": float(bounds[0]),
            "bound_new": float(bounds[1]),
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show the scores by which each method decides."""
        found = cls.values(params)
        rows = tuple(
            (
                name,
                f"{points:.0f} of {pulls:.0f}",
                *(f"{found[f'{key}_{end}']:.3f}" for key in ("mean", "draw", "bound")),
                f"{chance:.3f}",
            )
            for name, end, points, pulls, chance in zip(
                (KNOWN, NEW),
                ("known", "new"),
                *reversed(cls.counts(params)),
                (1 - found["chance"], found["chance"]),
                strict=True,
            )
        )
        columns = (
            "lever",
            "points",
            "posterior mean",
            "this draw",
            "UCB1",
            "pulled with probability",
        )
        return [Table("What each method looks at", columns, rows, (2, 3, 4, 5))]

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:
        """Draw both posteriors, and this draw as vertical lines."""
        from scipy.special import betaln, xlog1py, xlogy

        looks, x = distinct_styles((KNOWN, NEW)), np.linspace(0, 1, 401)
        data = []
        for name, a, b, drawn in zip(
            (KNOWN, NEW), *cls.posterior(params), cls.draws(params)[params.draw - 1], strict=True
        ):
            density = np.exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b))
            height = float(np.exp(xlogy(a - 1, drawn) + xlog1py(b - 1, -drawn) - betaln(a, b)))
            color = looks[name].color
            data += [
                line(name, x, density, color),
                line(f"draw, {name}", np.full(2, drawn), np.array([0, height]), color, "dot"),
            ]
        note = (
            "Posterior density of each lever's probability of a point. Dotted: one draw from each. "
            "The lever with the larger draw is pulled."
        )
        right, up = (
            axis("probability of a point", hoverformat=RATE),
            axis("density", hoverformat=NUMBER),
        )
        return [drawing(data, "Two posteriors", note, x=right, y=up, legend=True)]
