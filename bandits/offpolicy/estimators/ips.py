"""Inverse propensity scoring."""

from __future__ import annotations

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds


def ips(rounds: Rounds) -> FloatArray:
    """Weight the observed rewards: V = E[w r].

    Unbiased if the propensities are right and positive wherever the target policy's are.

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate.

    References
    ----------
    Horvitz, Thompson (1952), A generalization of sampling without replacement from a finite universe.
    """
    return rounds.weights * rounds.rewards
