"""Measure the cost of LinUCB: inversion at each step, Sherman-Morrison updates, and compiled loops.

`request` states the sizes; `complexity` gives memory and growth of the time; `methods` implements the three ways;
`measure` times them and follows the condition number of A; `results` fits the complexity to the times; `text` and
`figures` present them; `background` runs a measurement in a subprocess.
"""

from .complexity import LINEAR_METHODS
from .measure import measure_linear
from .request import LinearRequest, LinearSizes, read
from .results import Condition, LinearProgress, LinearReport

__all__ = [
    "LINEAR_METHODS", "Condition", "LinearProgress", "LinearReport", "LinearRequest", "LinearSizes", "measure_linear",
    "read",
]  # fmt: skip
