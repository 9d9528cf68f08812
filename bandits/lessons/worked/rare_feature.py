"""A feature that was seen once, with a click: why least squares overrates it, and what
ridge does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.formatting import number
from bandits.base.params import Params, param
from bandits.base.types import FloatArray
from bandits.results.figures.parts import axis, drawing, line, points
from bandits.results.figures.style import NUMBER, REFERENCE, Spec, distinct_styles

from .base import Table, Values, WorkedExample

# visits with the common feature, with the rare one, with both
GRAM = np.array([[100.0, 1.0], [1.0, 1.0]])
# clicks with each feature
CLICKS = np.array([20.0, 1.0])
# a visit with both features
RARE = np.array([1.0, 1.0])
COMMON = np.array([1.0, 0.0])
_AXES = ("weight of banner", "weight of dog owner")
_ANGLES = np.linspace(0, 2 * np.pi, 181)


class RareFeatureParams(Params):
    """The ridge penalty and the exploration coefficient."""

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
    alpha: float = param(
        1.0,
        title="Exploration coefficient",
        symbol=r"\alpha",
        ge=0,
        le=10,
        basic=True,
        help="Of LinUCB: multiplies the confidence width to give the exploration bonus. Larger "
        "values explore more; usually 0.1 to 2.",
    )


class RareFeature(WorkedExample):
    """Two weights from a hundred visits, of which one had the rare feature."""

    Params = RareFeatureParams
    title = "A feature that was seen once"
    formula = r"\hat\theta=(D^\top D+\lambda I)^{-1}D^\top c"
    known = ("visits", "rare_visits", "clicks", "rare_clicks", "ridge", "alpha")

    @classmethod
    def weights(cls, ridge: float) -> FloatArray:
        """Solve for theta, float64 (2,)."""
        return np.asarray(np.linalg.solve(GRAM + ridge * np.eye(2), CLICKS))

    @classmethod
    def error(cls, theta: FloatArray) -> float:
        """Compute the sum of squared errors of weights theta (2,): c'c - 2 theta'D'c + theta'D'D
        theta.
        """
        return float(CLICKS[0] - 2 * theta @ CLICKS + theta @ GRAM @ theta)

    @classmethod
    def width(cls, x: FloatArray, ridge: float) -> float:
        """Compute the confidence width sqrt(x'A^-1 x) of features x (2,)."""
        return float(np.sqrt(x @ np.linalg.solve(GRAM + ridge * np.eye(2), x)))

    @classmethod
    def values(cls, params: Any) -> Values:
        """Return both solutions, their errors, and the widths of a visit with and without the rare
        feature.
        """
        plain, ridged = cls.weights(0.0), cls.weights(params.ridge)
        return {
            "visits": GRAM[0, 0],
            "rare_visits": GRAM[1, 1],
            "clicks": CLICKS[0],
            "rare_clicks": CLICKS[1],
            "ridge": params.ridge,
            "alpha": params.alpha,
            "plain_common": float(plain[0]),
            "plain_rare": float(plain[1]),
            "ridge_common": float(ridged[0]),
            "ridge_rare": float(ridged[1]),
            "plain_error": cls.error(plain),
            "ridge_error": cls.error(ridged),
            "width_common": cls.width(COMMON, params.ridge),
            "width_rare": cls.width(RARE, params.ridge),
            "bonus_common": params.alpha * cls.width(COMMON, params.ridge),
            "bonus_rare": params.alpha * cls.width(RARE, params.ridge),
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show D'D, D'c and both solutions."""
        plain, ridged = cls.weights(0.0), cls.weights(params.ridge)
        rows = tuple(
            (
                name,
                *(number(x) for x in GRAM[i]),
                number(CLICKS[i]),
                f"{plain[i]:.4f}",
                f"{ridged[i]:.4f}",
            )
            for i, name in enumerate(("dog owner", "banner"))
        )
        columns = (
            "feature",
            "D'D: dog owner",
            "D'D: banner",
            "D'c",
            "weight, no penalty",
            f"weight, λ = {number(params.ridge)}",
        )
        return [Table("What the visits add up to, and the weights", columns, rows, (4, 5))]

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:
        """Draw the sum of squared errors around its minimum, and the confidence ellipse with its
        shadow on x.
        """
        return [cls._errors(params), cls._ellipse(params)]

    @classmethod
    def _errors(cls, params: Any) -> Spec:
        plain, ridged = cls.weights(0.0), cls.weights(params.ridge)
        looks = distinct_styles(("least squares", "ridge", "path"))
        data: list[Spec] = []
        for k, excess in enumerate((0.1, 0.5, 1.0, 2.0)):
            name = f"error {number(cls.error(plain) + excess)}"
            level = _level(plain, GRAM, excess)
            error = _line(
                level,
                name,
                REFERENCE,
                width=1.0,
                showlegend=False,
                legendgroup="error",
                opacity=1 - 0.2 * k,
            )
            data.append(error)
        path = np.array([cls.weights(r) for r in np.geomspace(1e-3, 100, 80)]).T
        data.append(_line(path, "penalties from 0.001 to 100", looks["path"].color, dash="dash"))
        data.append(
            _point(plain, "no penalty: the smallest error", looks["least squares"].color, "circle")
        )
        data.append(
            _point(ridged, f"penalty λ = {number(params.ridge)}", looks["ridge"].color, "diamond")
        )
        note = (
            "Every point is a pair of weights. All pairs on one grey curve have the same sum of "
            "squared errors. Both axes have the same scale: the curves are long in the direction "
            "of the banner and narrow in that of dog owners."
        )
        return _plane("Sum of squared errors", data, note)

    @classmethod
    def _ellipse(cls, params: Any) -> Spec:
        A, theta = GRAM + params.ridge * np.eye(2), cls.weights(params.ridge)
        looks = distinct_styles(("ellipse", "lines", "shadow"))
        data = [
            _line(
                _level(theta, A, params.alpha**2),
                "weights considered possible",
                looks["ellipse"].color,
            )
        ]
        middle, bonus = float(RARE @ theta), params.alpha * cls.width(RARE, params.ridge)
        direction = np.linalg.solve(A, RARE) / cls.width(RARE, params.ridge)
        # the prediction stays the same
        along = np.array([1.0, -1.0]) * max(0.65 * bonus, 0.2)
        for sign in (-1, 1):
            touched = theta + sign * params.alpha * direction
            ends = np.stack([touched - along, touched + along], axis=1)
            name = f"prediction {number(middle + sign * bonus)}"
            data.append(_line(ends, name, looks["lines"].color, dash="dash"))
        half = bonus * RARE / (RARE @ RARE)
        shadow = np.stack([theta - half, theta + half], axis=1)
        data.append(_line(shadow, f"shadow: ± {number(bonus)}", looks["shadow"].color, width=4.0))
        data.append(
            _point(
                theta, f"estimate: prediction {number(middle)}", looks["ellipse"].color, "diamond"
            )
        )
        note = (
            "Every point is a pair of weights. All pairs on one dashed line predict the same for "
            "a visit by a dog owner with the banner; the two lines touch the ellipse. The thick "
            "line is the shadow of the ellipse in a light that shines along them: from its middle "
            "to its end the prediction changes by the bonus."
        )
        return _plane("Confidence ellipse", data, note)


def _level(centre: FloatArray, matrix: FloatArray, value: float) -> FloatArray:
    """Return the ellipse (theta - centre)' matrix (theta - centre) = value, float64 (2, 181)."""
    root = np.linalg.cholesky(matrix)
    circle = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    return np.asarray(centre[:, None] + np.sqrt(value) * np.linalg.solve(root.T, circle))


def _line(
    weights: FloatArray,
    name: str,
    color: str,
    dash: str = "solid",
    *,
    width: float = 2.0,
    **more: Any,
) -> Spec:
    """Draw weights (2, n): that of the banner to the right, that of dog owners upwards."""
    return line(name, weights[1], weights[0], color, dash=dash, width=width, **more)


def _point(theta: FloatArray, name: str, color: str, symbol: str) -> Spec:
    return points(name, theta[1:], theta[:1], color, size=11, symbol=symbol)


def _plane(title: str, data: list[Spec], note: str) -> Spec:
    """Lay out a plot of two weights on one scale, so that shapes and right angles are seen as they
    are.
    """
    right, up = (axis(text, hoverformat=NUMBER) for text in _AXES)
    return drawing(data, title, x=right, y={**up, "scaleanchor": "x"}, note=note, legend=True)
