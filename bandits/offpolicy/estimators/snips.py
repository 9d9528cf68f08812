"""Self-normalised inverse propensity scoring."""

from __future__ import annotations

from bandits.base.types import FloatArray
from bandits.offpolicy.rounds import Rounds

from .ratio import ratio_of_means


def snips(rounds: Rounds) -> FloatArray:
    """Divide by the mean weight: V = E[w r] / E[w].

    The bias shrinks as 1/n; the estimate stays within the range of the rewards.

    Returns
    -------
    float64 (n,)
        Contributions, whose mean is the estimate, linearised for the interval.

    References
    ----------
    Swaminathan, Joachims (2015), The self-normalized estimator for counterfactual learning, equation 5.
    """
    return ratio_of_means(rounds.weights * rounds.rewards, rounds.weights)
