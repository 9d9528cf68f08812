"""Doubly robust estimation."""

from __future__ import annotations

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds


def dr(rounds: Rounds) -> FloatArray:
    """Correct the predicted reward by weighted residuals: V = E[q(x, pi_e) + w (r - q(x, a))].

    Unbiased if the propensities or q are right.

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate.

    References
    ----------
    Dudík, Langford, Li (2011), Doubly robust policy evaluation and learning, equation 2.
    """
    return rounds.target_q + rounds.weights * (rounds.rewards - rounds.logged_q)
