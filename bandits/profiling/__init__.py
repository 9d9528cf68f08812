"""What confidence costs: five ways to the width sqrt(g' A^-1 g) of a network's answer, timed on this machine.

`question` says for which network and how many candidates; `theory` knows by arithmetic what each way holds and how its
time grows; `ways` are the ways themselves; `measure` times them; `agreement` lets them look at the same decisions;
`answer` puts lines through what was measured; `words` says it; `process` does it in a process of its own.

>>> from bandits.profiling import Costs, Question, measure
>>> costs = Costs.of(Question(hidden=(8,)), measure(Question(hidden=(8,))))  # doctest: +SKIP
"""

from .complexity import WAYS
from .measure import measure
from .request import ProfileRequest, Sizes, read
from .results import Agreement, CostReport, Point, Step

__all__ = ["WAYS", "Agreement", "CostReport", "Point", "ProfileRequest", "Sizes", "Step", "measure", "read"]
