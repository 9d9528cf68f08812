"""Measure the cost of confidence widths on this machine: of neural bandits and of LinUCB.

Seven methods compute the width sqrt(g' A^-1 g) of a network, or approximate it; three implement
LinUCB.

`request` states what is measured; `complexity` describes each method, with its memory and the
growth of its time; `neural_methods` and `linear` implement them; `measurement` times them, here or
in a child process, at the sizes of `neural_grids` or `linear` and within the budgets of `timing`;
`neural_grids` also compares the widths for networks at the same decisions; `results` fits the
complexity to the times; `text` and `figures` present them.

>>> from bandits.width_cost import CostReport, NeuralRequest, measure
>>> request = NeuralRequest(hidden=(8,))
>>> report = CostReport.from_progress(request, measure(request))  # doctest: +SKIP
"""

from .complexity import LINEAR_METHODS, NEURAL_METHODS, LinearSizes, Sizes
from .measurement import measure
from .request import CostRequest, LinearRequest, NeuralRequest, read
from .results import Agreement, Condition, CostReport, Progress, Timing

__all__ = [
    "LINEAR_METHODS",
    "NEURAL_METHODS",
    "Agreement",
    "Condition",
    "CostReport",
    "CostRequest",
    "LinearRequest",
    "LinearSizes",
    "NeuralRequest",
    "Progress",
    "Sizes",
    "Timing",
    "measure",
    "read",
]
