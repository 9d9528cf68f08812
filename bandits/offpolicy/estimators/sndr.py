"""Self-normalised doubly robust estimation."""

from __future__ import annotations

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds

from .ratio import ratio_of_means


def sndr(rounds: Rounds) -> FloatArray:
    """Normalise the correction by the mean weight: V = E[q(x, pi_e)] + E[w (r - q(x, a))] / E[w].

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate, linearised for the interval.

    References
    ----------
    Thomas, Brunskill (2016), Data-efficient off-policy policy evaluation for reinforcement learning, section 5.
    """
    residuals = rounds.weights * (rounds.rewards - rounds.logged_q)
    return rounds.target_q + ratio_of_means(residuals, rounds.weights)
