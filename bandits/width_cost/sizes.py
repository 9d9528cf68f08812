"""Define the sizes that determine the cost of a decision: of a network, and of LinUCB."""

from __future__ import annotations

import itertools
from typing import Literal, NamedTuple

CostAxis = Literal["p", "t", "K"]
# defaults of the agents Ensemble and MC dropout
MEMBERS, PASSES = 5, 10


class Sizes(NamedTuple):
    """Sizes that determine the cost of a decision.

    Attributes
    ----------
    K : float
        Candidates of a decision.
    t : float
        Past observations.
    widths : tuple of float
        Features, hidden widths and the single output; not whole numbers where sizes are interpolated.
    members : int
        Networks of an ensemble, M.
    passes : int
        Forward passes of MC dropout, T.
    """

    K: float
    t: float
    widths: tuple[float, ...]
    members: int = MEMBERS
    passes: int = PASSES

    @property
    def p(self) -> float:
        """Weights and biases of the network."""
        return sum((a + 1) * b for a, b in itertools.pairwise(self.widths))

    @property
    def f(self) -> float:
        """Numbers in the factors of one gradient."""
        return sum(self.widths[:-1]) + sum(self.widths[1:])

    @property
    def d(self) -> float:
        """Weights and bias of the last layer."""
        return self.widths[-2] + 1

    def scaled(self, scale: float) -> Sizes:
        """Multiply the widths of the hidden layers."""
        first, *hidden, last = self.widths
        return self._replace(widths=(first, *(width * scale for width in hidden), last))

    def rounded(self) -> Sizes:
        """Round the widths to whole numbers."""
        return self._replace(widths=tuple(max(1, round(width)) for width in self.widths))

    def without(self, axis: CostAxis) -> Sizes:
        """Clear the size of one axis, to group sizes that differ only along it."""
        K, t, widths = self[:3]
        return Sizes(0 if axis == "K" else K, 0 if axis == "t" else t, () if axis == "p" else widths, *self[3:])

    def along(self, axis: CostAxis) -> float:
        """Return the coordinate on one axis of a plot."""
        return {"K": self.K, "t": self.t, "p": self.p}[axis]


class LinearSizes(Sizes):
    """Sizes of LinUCB with one model per arm: ``widths`` is (d, 1), and p = d weights per model."""

    __slots__ = ()

    @classmethod
    def of(cls, K: float, t: float, d: float) -> LinearSizes:
        """Create the sizes from the numbers of arms, observations and features."""
        return cls(K, t, (d, 1))

    @property
    def p(self) -> float:
        """Weights of one model, which has no bias."""
        return self.widths[0]

    @property
    def d(self) -> float:
        """Features."""
        return self.widths[0]

    def scaled(self, scale: float) -> LinearSizes:
        """Multiply the number of features."""
        return self.of(self.K, self.t, self.widths[0] * scale)
