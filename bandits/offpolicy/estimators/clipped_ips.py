"""Inverse propensity scoring with clipped weights."""

from __future__ import annotations

import numpy as np

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds


def clipped_ips(rounds: Rounds, *, clip: float) -> FloatArray:
    """Weight the observed rewards with bounded weights: V = E[min(w, clip) r].

    Less variance than `ips`; too low where weights above the bound belong to positive rewards.

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate.

    References
    ----------
    Ionides (2008), Truncated importance sampling.
    """
    return np.minimum(rounds.weights, clip) * rounds.rewards
