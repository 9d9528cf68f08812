"""Describe the sizes of a decision and each method: its name and colour, its memory, and the growth
of its time.

K candidates or arms, p weights, t observations, d weights of the last layer (of LinUCB: features),
f numbers in the factors of a gradient, M networks of an ensemble, T passes of dropout. torch is not
imported."""

from __future__ import annotations

import itertools
from collections.abc import Callable
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
        Features, hidden widths and the single output; not whole numbers where sizes are
        interpolated.
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
        return Sizes(
            0 if axis == "K" else K,
            0 if axis == "t" else t,
            () if axis == "p" else widths,
            *self[3:],
        )

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


# observations allocated by the dual at first; doubled when full
INITIAL_CAPACITY = 64


class Method(NamedTuple):
    """Cost of one method that computes the widths of all candidates.

    Attributes
    ----------
    title, description : str
    growth : str
        Growth of the time of a decision with its update (LaTeX).
    exact : bool
        Whether it computes the width of NeuralUCB's A, not an approximation.
    memory : callable
        Bytes allocated beside the network after a decision.
    decide, update : callable
        Terms of the time, each to be multiplied by a constant of the machine: an overhead and the
        terms that dominate for large sizes. More terms would fit the noise.
    exponents : dict
        Exponent of the steepest term along each axis.
    colour, symbol : str
        Colour (Okabe and Ito) and marker in all plots.
    """

    title: str
    exact: bool
    description: str
    growth: str
    memory: Callable[[Sizes], float]
    decide: Callable[[Sizes], tuple[float, ...]]
    update: Callable[[Sizes], tuple[float, ...]]
    exponents: dict[CostAxis, int]
    colour: str
    symbol: str


def dual_capacity(t: float) -> int:
    """Return the observations for which a dual of t observations has memory."""
    capacity = INITIAL_CAPACITY
    while capacity < t:
        capacity *= 2
    return capacity


def _dual_memory(s: Sizes) -> float:
    capacity = dual_capacity(s.t)
    return 8 * (capacity**2 + capacity * s.f + 1) + 4 * s.K * s.f


NEURAL_METHODS: dict[str, Method] = {
    "passes": Method(
        "Backward passes",
        True,
        "One backward pass of autograd per arm gives its gradient g. The p × p matrix A = λI + "
        "Σgg′ is inverted (by Cholesky) at every decision. This is the naive implementation.",
        r"K\,p^2 + p^3",
        lambda s: 8 * s.p**2 + 4 * s.K * s.p,
        # operations of the inverse and of its products
        lambda s: (s.K, s.K * s.p, s.p**3 + 2 * s.K * s.p**2),
        lambda s: (1, s.p**2),
        {"p": 3, "t": 0, "K": 1},
        "#D55E00",
        "circle",
    ),
    "jacobian": Method(
        "Vectorised Jacobian",
        True,
        "torch.func (vmap of grad) computes all gradients at once. A⁻¹ is stored and updated by "
        "the Sherman–Morrison formula instead of a new inversion. It still has p × p entries.",
        r"K\,p + K\,p^2",
        lambda s: 4 * s.p**2 + 4 * s.K * s.p,
        lambda s: (1, s.K * s.p, s.K * s.p**2),
        lambda s: (1, s.p**2),
        {"p": 2, "t": 0, "K": 1},
        "#E69F00",
        "square",
    ),
    "dual": Method(
        "Factored dual",
        True,
        "g′A⁻¹g = (g·g − k′(λI + GG′)⁻¹k)/λ with k = Gg and the past gradients as rows of G: a t "
        "× t matrix instead of p × p. The gradient of a layer is the outer product δh′, so inner "
        "products need only h and δ; no vector of length p is computed.",
        r"K\,p + K\,t\,f + K\,t^2",
        _dual_memory,
        lambda s: (1, s.K * s.p, s.K * s.t * s.f, s.K * s.t**2),
        lambda s: (1, s.t * s.f, s.t**2),
        {"p": 1, "t": 2, "K": 1},
        "#0072B2",
        "diamond",
    ),
    "diagonal": Method(
        "Diagonal",
        False,
        "Only the diagonal of A is stored, so that its inverse takes p divisions. An "
        "approximation: it treats all weights as independent.",
        r"K\,p",
        lambda s: 4 * s.p + 4 * s.K * s.f,
        lambda s: (1, s.p, s.K * s.p),
        lambda s: (1, s.p),
        {"p": 1, "t": 0, "K": 1},
        "#009E73",
        "triangle-up",
    ),
    "last": Method(
        "Last layer",
        False,
        "The gradient of the last layer is its input, the embedding, so this is ridge regression "
        "on the embedding (d × d). An approximation, never larger than the exact width: it "
        "treats the weights of the other layers as known.",
        r"K\,p + K\,d^2",
        lambda s: 8 * s.d**2 + 8 * s.K * s.d,
        lambda s: (1, s.K * s.p, s.K * s.d**2),
        lambda s: (1, s.d**2),
        {"p": 1, "t": 0, "K": 1},
        "#CC79A7",
        "cross",
    ),
    "ensemble": Method(
        "Ensemble",
        False,
        "M networks with different initial weights predict every candidate; the standard "
        "deviation of their M predictions takes the place of the width. The update is a gradient "
        "step of the M − 1 further networks, because the first one is trained with all methods.",
        r"M\,K\,p",
        lambda s: 8 * (s.members - 1) * s.p + 4 * s.members * s.K,
        lambda s: (1, s.members * s.K * s.p),
        lambda s: (1, (s.members - 1) * s.p),
        {"p": 1, "t": 0, "K": 1},
        "#56B4E9",
        "triangle-down",
    ),
    "dropout": Method(
        "MC dropout",
        False,
        "T forward passes with random dropout masks; the standard deviation of the T predictions "
        "takes the place of the width. Nothing is stored and nothing is updated.",
        r"T\,K\,p",
        lambda s: 4 * s.passes * s.K,
        lambda s: (s.passes, s.passes * s.K * s.p),
        lambda _: (1,),
        {"p": 1, "t": 0, "K": 1},
        "#7A5FD0",
        "star",
    ),
}
# methods with a p x p matrix
FULL_MATRIX = ("passes", "jacobian")

LINEAR_METHODS: dict[str, Method] = {
    "inverse": Method(
        "Inverse at each step",
        True,
        "NumPy inverts the matrix A = λI + Σxx′ of every arm at every decision, as the "
        "pseudocode of LinUCB states it (Li et al., 2010, Algorithm 1). The update adds xx′ to "
        "the matrix of the chosen arm.",
        r"K\,d^3",
        lambda s: 16 * s.K * s.d**2 + 8 * s.K * s.d,
        lambda s: (1, s.K * s.d**2, s.K * s.d**3),
        lambda s: (1, s.d**2),
        {"p": 3, "t": 0, "K": 1},
        "#D55E00",
        "circle",
    ),
    "rank_one": Method(
        "Sherman–Morrison",
        True,
        "NumPy stores A⁻¹ of every arm. The update subtracts A⁻¹xx′A⁻¹/(1 + x′A⁻¹x) from that of "
        "the chosen arm, so that nothing is inverted.",
        r"K\,d^2",
        lambda s: 8 * s.K * s.d**2 + 8 * s.K * s.d,
        lambda s: (1, s.K * s.d, s.K * s.d**2),
        lambda s: (1, s.d**2),
        {"p": 2, "t": 0, "K": 1},
        "#0072B2",
        "diamond",
    ),
    "compiled": Method(
        "Compiled",
        True,
        "The same formula in loops compiled by Numba, which the agents of this app use. They "
        "also store A and compute A⁻¹ afresh every 4,096 updates of an arm, against rounding "
        "errors.",
        r"K\,d^2",
        lambda s: 16 * s.K * s.d**2 + 16 * s.K * s.d + 8 * s.K,
        lambda s: (1, s.K * s.d, s.K * s.d**2),
        lambda s: (1, s.d**2),
        {"p": 2, "t": 0, "K": 1},
        "#009E73",
        "triangle-up",
    ),
}
