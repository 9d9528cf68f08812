"""Estimates of a target policy's value per visit, where what is shown moves the visitor.

A step of a visit is weighted by the product of the importance weights up to it: how much more often
the target policy would have come to it. The product spreads with every step, so that few visits
carry long ones (`ess_by_length`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import FloatArray, IntArray

from .estimators import Estimator, ratio_of_means
from .log import DecisionLog
from .support import Support, unsupported
from .targets import Target


class Visits(NamedTuple):
    """V visits of n steps, the longest first; the steps of a visit follow each other.

    Attributes
    ----------
    rewards : float64 (n,)
    weights : float64 (n,)
        Importance weights pi_e(a | x) / pi_b(a | x) of the single steps.
    first, lengths : int64 (V,)
        Index of the first step of each visit, and its number of steps.
    """

    rewards: FloatArray
    weights: FloatArray
    first: IntArray
    lengths: IntArray

    def steps(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield, for each step of a visit, the product of its weights so far and its reward.

        Both float64 (V,): a visit that has ended keeps its product, and earns nothing.
        """
        product = np.ones(len(self.lengths))
        for step in range(int(self.lengths[0])):
            # the longest visits come first
            running = int(np.searchsorted(-self.lengths, -step))
            at = self.first[:running] + step
            product[:running] *= self.weights[at]
            rewards = np.zeros(len(product))
            rewards[:running] = self.rewards[at]
            yield product, rewards

    @property
    def logged(self) -> FloatArray:
        """Rewards of each visit, float64 (V,)."""
        sums = np.append(0.0, np.cumsum(self.rewards))
        return np.asarray(sums[self.first + self.lengths] - sums[self.first])

    @property
    def products(self) -> FloatArray:
        """Product of all weights of each visit, float64 (V,)."""
        for product, _ in self.steps():
            last = product
        return last


def whole_visits(log: DecisionLog) -> tuple[DecisionLog, int]:
    """Return the log without the visits that its end may have cut off, and their number.

    Where rows have steps of a run, visits that begin within the last L steps of their replication
    are left out, L steps being the longest visit: to leave out unfinished ones only would favour
    short visits.

    Raises
    ------
    UserError
        The log has no visits, or none is left.
    """
    if log.visits is None:
        raise UserError("the log has no column visit, so that nothing is known of visits")
    if log.rows is None or log.steps is None:
        return log, 0
    _, code, lengths = np.unique(log.visits, return_inverse=True, return_counts=True)
    begin = np.full(len(lengths), np.iinfo(np.int64).max)
    np.minimum.at(begin, code, log.steps)
    end = np.zeros(int(log.rows.max()) + 1, np.int64)
    np.maximum.at(end, log.rows, log.steps)
    last = np.empty(len(lengths), np.int64)
    last[code] = end[log.rows]
    whole = begin + lengths.max() <= last
    if not whole.any():
        raise UserError(
            f"the log has no visit that began more than {lengths.max()} steps, the longest visit, "
            "before its end, so that none is known to be whole; record more steps"
        )
    return log.select(whole[code]), int((~whole).sum())


def gather(log: DecisionLog, weights: FloatArray) -> Visits:
    """Put the steps of visits together.

    Parameters
    ----------
    log : DecisionLog
        With visits; the steps of a visit are in their order.
    weights : float64 (n,)
        Importance weights.
    """
    assert log.visits is not None
    order = np.argsort(log.visits, kind="stable")
    _, first, lengths = np.unique(log.visits[order], return_index=True, return_counts=True)
    longest = np.argsort(-lengths, kind="stable")
    return Visits(log.rewards[order], weights[order], first[longest], lengths[longest])


@partial(
    Estimator,
    title="PDIS",
    name="per-decision importance sampling",
    formula=r"$\mathbb{E}[\sum_t \rho_t r_t]$",
    words="rewards of a visit, each weighted by all choices up to it; unbiased, and wide",
)
def pdis(visits: Visits) -> FloatArray:
    """Weight each reward by the product of the weights up to its step; contributions (V,).

    References
    ----------
    Precup, Sutton, Singh (2000), Eligibility traces for off-policy policy evaluation, section 3.
    """
    total = np.zeros(len(visits.lengths))
    for product, rewards in visits.steps():
        total += product * rewards
    return total


@partial(
    Estimator,
    title="WPDIS",
    name="weighted per-decision importance sampling",
    formula=r"$\sum_t \mathbb{E}[\rho_t r_t] / \mathbb{E}[\rho_t]$",
    words="PDIS, divided by the mean weight of each step: less variance",
)
def wpdis(visits: Visits) -> FloatArray:
    """Divide each step by the mean weight of all visits at it; contributions (V,), linearised.

    The bias shrinks as 1/V.

    References
    ----------
    Thomas (2015), Safe reinforcement learning, chapter 3 (consistent weighted per-decision
    importance sampling).
    """
    total = np.zeros(len(visits.lengths))
    for product, rewards in visits.steps():
        total += ratio_of_means(product * rewards, product)
    return total


OF_VISITS: Mapping[str, Estimator] = {"pdis": pdis, "wpdis": wpdis}


def ess_by_length(visits: Visits) -> FloatArray:
    """Compute the effective number of visits up to each step, (sum w)² / sum w², float64 (H,).

    w is the product of the weights of a visit up to that step or its end, H the longest visit.
    """
    return np.array([effective(product) for product, _ in visits.steps()])


def effective(weights: FloatArray) -> float:
    """Compute the effective sample size (sum w)² / sum w² of weights, float64 (V,)."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def support_of(log: DecisionLog, target: Target, products: FloatArray) -> Support:
    """Measure the support of a target in a log by the weights of whole visits, float64 (V,)."""
    overall, by_segment = unsupported(log, target) if target.whole else (float("nan"), {})
    V, total = len(products), float(products.sum())
    return Support(
        ess=effective(products),
        max_weight=float(products.max()),
        largest_share=float(products.max()) / total if total else 1.0,
        mean_weight=total / V,
        mean_weight_error=float(products.std(ddof=1)) / V**0.5 if V > 1 else float("nan"),
        unsupported_mass=overall,
        by_segment=by_segment,
    )
