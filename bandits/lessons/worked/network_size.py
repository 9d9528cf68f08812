"""How many weights a network has, and what a covariance matrix of all of them takes: chapter 3."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from bandits.base.formatting import count, number
from bandits.base.params import Params, param
from bandits.models.neural.mlp import count_weights
from bandits.results.figures.parts import axis, drawing, line, points
from bandits.results.figures.style import NUMBER, Spec, distinct_styles

from .base import Table, Values, WorkedExample

# features of the pet shop: four personas, five categories
INPUTS = 9
CANDIDATES = 50
# of a number in single precision
BYTES = 4
# of a large shop and a large network
MANY_CANDIDATES, MANY_WEIGHTS = 10**6, 10**5
_LINES = ("matrix of all weights", "gradients of all candidates")


class NetworkSizeParams(Params):
    """Widths of the two hidden layers."""

    first: int = param(
        128,
        title="First layer",
        symbol="m_1",
        unit="units",
        ge=8,
        le=256,
        basic=True,
        help=(
            "Units of the first hidden layer. Larger values give the network more weights; "
            "usually 16 to 256."
        ),
    )
    second: int = param(
        64,
        title="Second layer",
        symbol="m_2",
        unit="units",
        ge=8,
        le=256,
        basic=True,
        help=(
            "Units of the second hidden layer. Larger values give the network more weights; "
            "usually 8 to 128."
        ),
    )


class NetworkSize(WorkedExample):
    """A matrix with one row and column per weight grows with the square of their number, its
    inverse with the cube.
    """

    Params = NetworkSizeParams
    title = "The weights of a network"
    formula = r"p=(d+1)\,m_1+(m_1+1)\,m_2+(m_2+1)"
    known = ("inputs", "first", "second", "candidates", "many_candidates", "many_weights")

    @classmethod
    def values(cls, params: Any) -> Values:
        """Count the weights of each layer, and the bytes of A and of the gradients of all
        candidates.
        """
        widths = (INPUTS, params.first, params.second, 1)
        p = count_weights(widths)
        layers = [float((a + 1) * b) for a, b in itertools.pairwise(widths)]
        return {
            "inputs": float(INPUTS),
            "first": float(params.first),
            "second": float(params.second),
            "candidates": float(CANDIDATES),
            "weights": float(p),
            "weights_first": layers[0],
            "weights_second": layers[1],
            "weights_last": layers[2],
            "matrix_megabytes": BYTES * p**2 / 1e6,
            "inverse_operations": float(p) ** 3,
            "gradients_megabytes": BYTES * CANDIDATES * p / 1e6,
            "many_candidates": float(MANY_CANDIDATES),
            "many_weights": float(MANY_WEIGHTS),
            "many_gigabytes": BYTES * MANY_CANDIDATES * MANY_WEIGHTS / 1e9,
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show the weights layer by layer."""
        found = cls.values(params)
        rows = (
            (
                "first hidden layer",
                f"({INPUTS} + 1) × {params.first}",
                count(found["weights_first"]),
            ),
            (
                "second hidden layer",
                f"({params.first} + 1) × {params.second}",
                count(found["weights_second"]),
            ),
            ("output", f"({params.second} + 1) × 1", count(found["weights_last"])),
            ("all", "", count(found["weights"])),
            ("matrix A, megabytes", "4 × all × all / 1,000,000", number(found["matrix_megabytes"])),
        )
        return [Table("Weights", ("layer", "(inputs + 1) × units", "weights"), rows, (2,))]

    @classmethod
    def figures(cls, params: Any) -> list[Spec]:
        """Draw the memory of the matrix and of the gradients against the number of weights."""
        p, looks = np.geomspace(100, 1e6, 81), distinct_styles(_LINES)
        now = cls.values(params)
        memory = {_LINES[0]: BYTES * p**2 / 1e6, _LINES[1]: BYTES * CANDIDATES * p / 1e6}
        keys = dict(zip(_LINES, ("matrix_megabytes", "gradients_megabytes"), strict=True))
        data = [
            *(line(name, p, y, *looks[name]) for name, y in memory.items()),
            *(
                points(
                    n, [now["weights"]], [now[keys[n]]], looks[n].color, size=10, showlegend=False
                )
                for n in _LINES
            ),
        ]
        x = axis("weights p", type="log", hoverformat=NUMBER, dtick=1)
        y = axis("megabytes", type="log", hoverformat=NUMBER, dtick=2)
        note = f"{CANDIDATES} candidates; points: the network that is chosen."
        return [drawing(data, "Memory by number of weights", x=x, y=y, note=note, legend=True)]
