"""Doubly robust estimation with optimistic shrinkage."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds


def dros(rounds: Rounds, *, shrinkage: float) -> FloatArray:
    """Correct with shrunk weights w' = lambda w / (w² + lambda): V = E[q(x, pi_e) + w' (r - q(x, a))].

    Between `dm` (lambda 0) and `dr` (lambda infinite).

    Parameters
    ----------
    rounds : Rounds
    shrinkage : float
        lambda, at least 0.

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate.

    References
    ----------
    Su, Dimakopoulou, Krishnamurthy, Dudík (2020), Doubly robust off-policy evaluation with shrinkage, section 4.1.
    """
    w = rounds.weights
    shrunk = w if np.isinf(shrinkage) else w * (shrinkage / (w * w + shrinkage)) if shrinkage else np.zeros_like(w)
    return rounds.target_q + shrunk * (rounds.rewards - rounds.logged_q)
