"""Replay: rejection sampling on a uniformly random log."""

from __future__ import annotations

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds

from .ratio import ratio_of_means


def replay(rounds: Rounds) -> FloatArray:
    """Average over rounds where the target policy chose the logged action: V = E[1{pi_e = a} r] / E[1{pi_e = a}].

    Right for logs of uniformly random actions only. About n/K rounds are accepted.

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate, linearised for the interval; NaN where no round is accepted.

    References
    ----------
    Li, Chu, Langford, Wang (2011), Unbiased offline evaluation of contextual-bandit-based news article recommendation
    algorithms, Algorithm 2.
    """
    return ratio_of_means(rounds.accepted * rounds.rewards, rounds.accepted)
