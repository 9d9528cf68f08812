"""Measure the cost of the confidence widths of a neural bandit.

Seven methods compute the width sqrt(g' A^-1 g), or approximate it, on this machine.

`request` states the network and the sizes; `complexity` gives the memory of each method and the growth of its time;
`methods` implements them; `measure` times them; `agreement` compares their widths at the same decisions; `results` fits
the complexity to the times; `text` and `figures` present them; `background` runs a measurement in a subprocess.

>>> from bandits.width_cost import CostReport, ProfileRequest, measure
>>> request = ProfileRequest(hidden=(8,))
>>> report = CostReport.from_progress(request, measure(request))  # doctest: +SKIP
"""

from .complexity import METHODS
from .measure import measure
from .request import ProfileRequest, Sizes, read
from .results import Agreement, CostReport, Progress, Timing

__all__ = ["METHODS", "Agreement", "CostReport", "ProfileRequest", "Progress", "Sizes", "Timing", "measure", "read"]
