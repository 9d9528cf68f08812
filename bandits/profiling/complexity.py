"""What each way must hold, and how its time grows, by arithmetic: nothing is allocated, torch is not imported.

K candidates, p weights, t observations, d weights of the last layer, f numbers in the factors of a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .request import Axis, Sizes

BLOCK = 64  # observations the dual has room for at first; it doubles when it is full


class Way(NamedTuple):
    """One way to the widths of all candidates.

    Attributes
    ----------
    title, about, growth : str
        Its name, what it does, and how the time of a decision and its update grows (LaTeX).
    exact : bool
        It gives the width of NeuralUCB's A, not of something smaller.
    held : callable
        Bytes it holds beside the network, once a decision is made.
    decide, update : callable
        The terms whose sum, each times a constant of the machine, is the time: an overhead and those that matter when
        sizes grow; more of them would only follow the noise.
    steepest : dict
        Exponent of the steepest term on each axis.
    """

    title: str
    exact: bool
    about: str
    growth: str
    held: Callable[[Sizes], float]
    decide: Callable[[Sizes], tuple[float, ...]]
    update: Callable[[Sizes], tuple[float, ...]]
    steepest: dict[Axis, int]


def capacity(t: float) -> int:
    """Observations the dual has room for when it holds t."""
    room = BLOCK
    while room < t:
        room *= 2
    return room


def _dual_bytes(s: Sizes) -> float:
    room = capacity(s.t)
    return 8 * (room**2 + room * s.f + 1) + 4 * s.K * s.f


WAYS: dict[str, Way] = {
    "passes": Way(
        "K passes", True,
        "One backward pass of autograd per candidate gives its gradient g; A = λI + Σgg′ is a p × p matrix that is "
        "inverted afresh (by Cholesky) at every decision. The textbook, word for word.",
        r"K\,p + p^3",
        lambda s: 8 * s.p**2 + 4 * s.K * s.p,
        lambda s: (s.K, s.K * s.p, s.p**3),
        lambda s: (1, s.p**2),
        {"p": 3, "t": 0, "K": 1},
    ),
    "jacobian": Way(
        "Jacobian", True,
        "All gradients at once by torch.func (vmap of grad), and A⁻¹ itself is kept: Sherman and Morrison's rank-one "
        "update replaces the inversion. Still p × p numbers.",
        r"K\,p + K\,p^2",
        lambda s: 4 * s.p**2 + 4 * s.K * s.p,
        lambda s: (1, s.K * s.p, s.K * s.p**2),
        lambda s: (1, s.p**2),
        {"p": 2, "t": 0, "K": 1},
    ),
    "dual": Way(
        "Factored dual", True,
        "g′A⁻¹g = (g·g − k′(λI + GG′)⁻¹k)/λ with k = Gg, G the past gradients: a t × t matrix instead of p × p. A "
        "layer's gradient is δh′, so inner products come from h and δ alone and no vector of length p is ever made.",
        r"K\,p + K\,t\,f + K\,t^2",
        _dual_bytes,
        lambda s: (1, s.K * s.p, s.K * s.t * s.f, s.K * s.t**2),
        lambda s: (1, s.t * s.f, s.t**2),
        {"p": 1, "t": 2, "K": 1},
    ),
    "diagonal": Way(
        "Diagonal", False,
        "Of A only the diagonal is kept, so that the inverse is p divisions. Not the same number: it takes every "
        "weight for independent of all others.",
        r"K\,p",
        lambda s: 4 * s.p + 4 * s.K * s.f,
        lambda s: (1, s.p, s.K * s.p),
        lambda s: (1, s.p),
        {"p": 1, "t": 0, "K": 1},
    ),
    "last": Way(
        "Last layer", False,
        "The gradient of the last layer is the embedding it reads, so this is ridge regression on the embedding "
        "(d × d). Not the same number but never a larger one: the layers below are taken for known.",
        r"K\,p + K\,d^2",
        lambda s: 8 * s.d**2 + 8 * s.K * s.d,
        lambda s: (1, s.K * s.p, s.K * s.d**2),
        lambda s: (1, s.d**2),
        {"p": 1, "t": 0, "K": 1},
    ),
}  # fmt: skip
SQUARE = ("passes", "jacobian")  # those with a p x p matrix
