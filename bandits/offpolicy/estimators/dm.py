"""Direct method."""

from __future__ import annotations

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds


def dm(rounds: Rounds) -> FloatArray:
    """Predict the reward of the target policy: V = E[q(x, pi_e)].

    Biased where q is; the contributions vary with the contexts only, not with the error of q.

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate.

    References
    ----------
    Beygelzimer, Langford (2009), The offset tree for learning with partial labels.
    """
    return rounds.target_q
