"""Doubly robust estimation that drops large weights."""

from __future__ import annotations

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds


def switch_dr(rounds: Rounds, *, tau: float) -> FloatArray:
    """Correct where weights are at most tau: V = E[q(x, pi_e) + w 1{w <= tau} (r - q(x, a))].

    Between `dm` (tau below all weights) and `dr` (tau above all weights).

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate.

    References
    ----------
    Wang, Agarwal, Dudík (2017), Optimal and adaptive off-policy evaluation in contextual bandits, equation 8.
    """
    kept = rounds.weights * (rounds.weights <= tau)
    return rounds.target_q + kept * (rounds.rewards - rounds.logged_q)
