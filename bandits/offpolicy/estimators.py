"""Estimators of a target policy's value: from rounds to contributions, whose mean is the estimate.

Ratios of means are linearised (`ratio_of_means`), so that the variance of the contributions is that
of the estimate; they are NaN where the denominator is 0.

References
----------
.. [1] Horvitz, Thompson (1952), A generalization of sampling without replacement from a finite
       universe.
.. [2] Ionides (2008), Truncated importance sampling.
.. [3] Swaminathan, Joachims (2015), The self-normalized estimator for counterfactual learning,
       equation 5.
.. [4] Beygelzimer, Langford (2009), The offset tree for learning with partial labels.
.. [5] Dudík, Langford, Li (2011), Doubly robust policy evaluation and learning, equation 2.
.. [6] Thomas, Brunskill (2016), Data-efficient off-policy policy evaluation for reinforcement
       learning, section 5.
.. [7] Wang, Agarwal, Dudík (2017), Optimal and adaptive off-policy evaluation in contextual
       bandits, equation 8.
.. [8] Su, Dimakopoulou, Krishnamurthy, Dudík (2020), Doubly robust off-policy evaluation with
       shrinkage, section 4.1.
.. [9] Li, Chu, Langford, Wang (2011), Unbiased offline evaluation of contextual-bandit-based news
   article recommendation algorithms, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bandits.base.types import BoolArray, FloatArray


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
    row_weights : float64 (n,), optional
        How many decisions each row stands for; by default one each.
    """

    rewards: FloatArray
    weights: FloatArray
    logged_q: FloatArray
    target_q: FloatArray
    accepted: FloatArray
    row_weights: FloatArray | None = None

    def select(self, index: BoolArray) -> Rounds:
        """Return some of the rows."""
        parts = {name: each for name, each in self._asdict().items() if each is not None}
        return self._replace(**{name: each[index] for name, each in parts.items()})

    @property
    def logged(self) -> FloatArray:
        """Contributions to the mean reward of the log, float64 (n,)."""
        return weighted(self.rewards, self.row_weights)

    @property
    def residuals(self) -> FloatArray:
        """Errors of the predicted rewards, r - q(x, a)."""
        return self.rewards - self.logged_q


@dataclass(frozen=True)
class Estimator:
    """An estimator, all that pages state of it, and what it requires.

    Attributes
    ----------
    contributions : callable
        From `Rounds` to contributions, float64 (n,); with ``tuned``, also takes that keyword.
    title : str
    name : str
        What the title abbreviates, in full.
    formula : str
        As Markdown.
    words : str
        What it averages, in a few words.
    weights, model : bool
        Whether it uses importance weights and predicted rewards.
    bounded : bool
        Whether the contributions lie between the bounds of the reward times 0 and the largest
        weight.
    tuned : str
        The parameter that SLOPE++ chooses; empty where there is none.
    reference : str
        For a biased estimator: the unbiased one whose interval it has; otherwise empty.
    usual : bool
        Whether it is computed where none is asked for.
    """

    contributions: Callable[..., FloatArray]
    _: KW_ONLY
    title: str
    name: str
    formula: str
    words: str
    weights: bool = True
    model: bool = False
    bounded: bool = False
    tuned: str = ""
    reference: str = ""
    usual: bool = True

    def __call__(self, rounds: Rounds, **tuned: float) -> FloatArray:
        """Return the contributions, float64 (n,)."""
        return weighted(self.contributions(rounds, **tuned), rounds.row_weights)


def weighted(values: FloatArray, row_weights: FloatArray | None) -> FloatArray:
    """Return contributions whose mean is the weighted mean of values, float64 (n,)."""
    return values if row_weights is None else ratio_of_means(row_weights * values, row_weights)


def ratio_of_means(
    over: FloatArray, under: FloatArray, row_weights: FloatArray | None = None
) -> FloatArray:
    """Linearise a ratio of means V = E[y] / E[w]: V + (y - V w) / E[w].

    Parameters
    ----------
    over, under : float64 (n,)
        y and w.
    row_weights : float64 (n,), optional
        Weights of both means.

    Returns
    -------
    float64 (n,)
        The mean is the ratio; the variance is that of the delta method. NaN where E[w] is 0.

    References
    ----------
    Owen (2013), Monte Carlo theory, methods and examples, section 9.2.
    """
    size = np.average(under, weights=row_weights)
    if size == 0:
        return np.full(len(over), np.nan)
    ratio = np.average(over, weights=row_weights) / size
    contributions: FloatArray = ratio + (over - ratio * under) / size
    return contributions


@partial(
    Estimator,
    title="IPS",
    name="inverse propensity scoring",
    formula=r"$\mathbb{E}[w r]$",
    words="observed rewards, weighted; unbiased where the log supports the target",
    bounded=True,
)
def ips(rounds: Rounds) -> FloatArray:
    """Weight the observed rewards [1]_.

    Unbiased if the propensities are right and positive wherever the target policy's are.
    """
    return rounds.weights * rounds.rewards


@partial(
    Estimator,
    title="Clipped IPS",
    name="inverse propensity scoring with clipped weights",
    formula=r"as IPS, with $\min(w, c)$",
    words="IPS with bounded weights",
    bounded=True,
    tuned="clip",
    reference="ips",
    usual=False,
)
def clipped_ips(rounds: Rounds, *, clip: float) -> FloatArray:
    """Bound the weights: less variance, and too low where larger ones belong to positive rewards
    [2]_.
    """
    return np.minimum(rounds.weights, clip) * rounds.rewards


@partial(
    Estimator,
    title="SNIPS",
    name="self-normalised inverse propensity scoring",
    formula=r"$\mathbb{E}[w r] / \mathbb{E}[w]$",
    words="IPS, divided by the mean weight: less variance",
)
def snips(rounds: Rounds) -> FloatArray:
    """Divide by the mean weight [3]_: the bias shrinks as 1/n, and the estimate stays in the range
    of the rewards.
    """
    return ratio_of_means(rounds.weights * rounds.rewards, rounds.weights, rounds.row_weights)


@partial(
    Estimator,
    title="DM",
    name="direct method",
    formula=r"$\mathbb{E}[q(x, \pi_e)]$",
    words="predicted rewards of what the target would choose",
    weights=False,
    model=True,
    reference="dr",
)
def dm(rounds: Rounds) -> FloatArray:
    """Predict the reward of the target policy [4]_.

    Biased where q is; the contributions vary with the contexts only, not with the error of q.
    """
    return rounds.target_q


@partial(
    Estimator,
    title="DR",
    name="doubly robust",
    formula=r"$\mathbb{E}[q(x, \pi_e) + w (r - q(x, a))]$",
    words="predicted rewards, corrected by observed ones",
    model=True,
)
def dr(rounds: Rounds) -> FloatArray:
    """Correct the predicted rewards by weighted residuals [5]_: unbiased if the propensities or q
    are right.
    """
    return rounds.target_q + rounds.weights * rounds.residuals


@partial(
    Estimator,
    title="SNDR",
    name="self-normalised doubly robust",
    formula=r"as DR, with $w / \mathbb{E}[w]$",
    words="DR, divided by the mean weight: less variance",
    model=True,
)
def sndr(rounds: Rounds) -> FloatArray:
    """Divide the correction by the mean weight [6]_."""
    correction = rounds.weights * rounds.residuals
    return rounds.target_q + ratio_of_means(correction, rounds.weights, rounds.row_weights)


@partial(
    Estimator,
    title="Switch-DR",
    name="doubly robust up to a largest weight, direct method beyond",
    formula=r"as DR, with $w$ only where $w \le \tau$",
    words="DR; large weights are left to the prediction",
    model=True,
    tuned="tau",
    reference="dr",
)
def switch_dr(rounds: Rounds, *, tau: float) -> FloatArray:
    """Correct where weights are at most tau [7]_: between `dm` (tau below all weights) and `dr`
    (above all).
    """
    kept = rounds.weights * (rounds.weights <= tau)
    return rounds.target_q + kept * rounds.residuals


@partial(
    Estimator,
    title="DR with shrinkage",
    name="doubly robust with shrunk weights",
    formula=r"as DR, with $\lambda w / (w^2 + \lambda)$",
    words="DR; large weights are shrunk",
    model=True,
    tuned="shrinkage",
    reference="dr",
)
def dros(rounds: Rounds, *, shrinkage: float) -> FloatArray:
    """Correct with optimistically shrunk weights [8]_: between `dm` (lambda 0) and `dr` (lambda
    infinite).
    """
    w = rounds.weights
    shrunk = (
        w
        if np.isinf(shrinkage)
        else w * (shrinkage / (w * w + shrinkage))
        if shrinkage
        else np.zeros_like(w)
    )
    return rounds.target_q + shrunk * rounds.residuals


@partial(
    Estimator,
    title="Replay",
    name="rejection of events in which the target chose something else",
    formula="mean of $r$ where the target chose $a$",
    words="rewards where the target chose what was shown; for random logs",
    weights=False,
    usual=False,
)
def replay(rounds: Rounds) -> FloatArray:
    """Average over rounds where the target policy chose the logged action [9]_.

    Right for logs of uniformly random actions only. About n/K rounds are accepted.
    """
    return ratio_of_means(rounds.accepted * rounds.rewards, rounds.accepted, rounds.row_weights)


REGISTRY: Mapping[str, Estimator] = {
    "ips": ips,
    "clipped_ips": clipped_ips,
    "snips": snips,
    "dm": dm,
    "dr": dr,
    "sndr": sndr,
    "switch_dr": switch_dr,
    "dros": dros,
    "replay": replay,
}
