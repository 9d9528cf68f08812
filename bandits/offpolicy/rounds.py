"""The numbers of a log that estimators need, one per round."""

from __future__ import annotations

from typing import NamedTuple

from bandits.base.types import FloatArray


class Rounds(NamedTuple):
    """Rewards, importance weights and predicted rewards of n logged rounds.

    Attributes
    ----------
    rewards : float64 (n,)
        Observed rewards r.
    weights : float64 (n,)
        Importance weights w = pi_e(a | x) / pi_b(a | x) of the logged actions.
    logged_q : float64 (n,)
        Predicted reward q(x, a) of the logged actions.
    target_q : float64 (n,)
        Predicted reward of the target policy, q(x, pi_e) = sum over a of pi_e(a | x) q(x, a).
    accepted : float64 (n,)
        1 where an action drawn from the target policy is the logged one, otherwise 0.
    """

    rewards: FloatArray
    weights: FloatArray
    logged_q: FloatArray
    target_q: FloatArray
    accepted: FloatArray
