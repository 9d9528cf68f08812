"""KL-UCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.model_params import bonus_param
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
from bandits.base.types import (
    BoolArray,
    FloatArray,
    IntArray,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)

from .base import ForgettingContextFreeAgent, ForgettingCountsParams
from .loop import Stretch, count, play

# Newton steps; five or six reach the last digits
MOST_STEPS = 60
# a last step below this share of the distance leaves an error of its square
CLOSE = 1e-7
# a score that is certain to be lower by so much cannot be the best, whatever is rounded
SLACK = 1e-9


class KLUCB(ForgettingContextFreeAgent):
    """Upper confidence bound without context, by the Kullback-Leibler divergence of clicks [1]_.

    score_a is the largest q with n_a KL(mean_a, q) <= alpha ln t, where KL is the divergence of
    Bernoulli distributions; items never shown come first. The paper recommends alpha = 1 (its c =
    0). With forgetting, ln t is ln n of the exposures that are not forgotten.

    References
    ----------
    .. [1] Garivier, Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits and beyond,
           Algorithm 1.
    """

    class Params(ForgettingCountsParams):
        kind: Literal["kl_ucb"] = "kl_ucb"
        alpha: float = bonus_param(1.0, width="logarithm of the step")

    title = "KL-UCB"
    formula = r"\max\{q:\ n_a\,\mathrm{KL}(\bar r_a,q)\le\alpha\ln t\}"
    colour = "#56B4E9"
    dash = "dashdot"
    exploration_param = "alpha"
    needs = frozenset({"binary"})

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")[:, None]

    def scores(self, round: Round) -> FloatArray:
        shows, clicks = self.counts(round)
        limit = np.broadcast_to(self.alpha * self.logarithm(round), shows.shape)
        return np.asarray(upper_bounds(shows, clicks, np.ascontiguousarray(limit)))

    def logarithm(self, round: Round) -> FloatArray | float:
        """Compute ln t, or ln n (R, 1) of the exposures that are not forgotten."""
        if not self.forgets(self.params[0]):
            return float(np.log(max(round.step, 1)))
        return np.asarray(np.log(np.maximum(self.shown.sum(axis=1, keepdims=True), 1)))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.forgets(self.params[0]):
            return None
        logarithms = np.log(np.maximum(np.arange(steps.start, steps.start + len(steps.context)), 1))
        bound, slope = np.empty((2, *self.shown.shape))
        # nothing is known of the bounds
        at, last = np.full_like(bound, np.nan), np.zeros(len(bound), np.int64)
        own = logarithms, self.alpha[:, 0], bound, slope, at, last
        return _play(own, self.stretch(steps, alive))

    def explain(self, round: Round) -> Explanation:
        shows, clicks = self.counts(round)
        mean = np.where(shows <= 0, np.nan, clicks / np.where(shows > 0, shows, 1))
        return Explanation("score", self.scores(round), mean)


@njit(cache=True, nogil=True)
def _bound(n: float, mean: float, limit: float) -> float:
    """Compute the largest q with n KL(mean, q) <= limit, by Newton's method.

    KL is convex and increasing in q above the mean, so that steps from an upper bound never pass
    the solution.
    """
    if mean >= 1:
        return 1.0
    share = limit / n
    if mean <= 0:
        return float(1 - np.exp(-share))
    inner = mean * np.log(mean) + (1 - mean) * np.log(1 - mean) - share
    # by Pinsker's inequality, and by -mean ln q >= 0
    q = min(mean + np.sqrt(share / 2), 1 - np.exp(inner / (1 - mean)))
    for _ in range(MOST_STEPS):
        if q <= mean:
            return mean
        if q >= 1:
            # within rounding of 1
            return 1.0
        above = inner - mean * np.log(q) - (1 - mean) * np.log(1 - q)
        step = above * q * (1 - q) / (q - mean)
        if not step > 0:
            break
        q -= step
        if step <= CLOSE * (q - mean):
            break
    return float(max(q, mean))


@njit(cache=True, nogil=True)
def upper_bounds(shows: FloatArray, clicks: FloatArray, limit: FloatArray) -> FloatArray:
    """Compute the bound of every candidate, float64 (R, K); inf where it was never shown."""
    out = np.full(shows.shape, np.inf)
    for r in range(shows.shape[0]):
        for k in range(shows.shape[1]):
            n = shows[r, k]
            if n > 0:
                out[r, k] = _bound(n, min(max(clicks[r, k] / n, 0.0), 1.0), limit[r, k])
    return out


@njit(nogil=True)
def _score(
    own: Any, shown: FloatArray, clicks: FloatArray, r: int, t: int, out: FloatArray
) -> None:
    """Leave out arms whose tangent is below the best score.

    A bound is a concave function of the limit: beyond the last limit ``at`` which it was computed,
    its tangent lies above it.
    """
    logarithms, alpha, bound, slope, at, last = own
    limit, highest, first = alpha[r] * logarithms[t], -np.inf, last[r]
    for i in range(len(out)):
        # the last choice first: its score is high
        k = first if i == 0 else i - 1 if i <= first else i
        out[k] = -np.inf
        n = shown[k]
        if n <= 0:
            out[k] = highest = np.inf
            continue
        if bound[r, k] + slope[r, k] * (limit - at[r, k]) < highest - SLACK:
            continue
        if at[r, k] != limit:
            mean = min(max(clicks[k] / n, 0.0), 1.0)
            q = _bound(n, mean, limit)
            bound[r, k], at[r, k] = q, limit
            slope[r, k] = q * (1 - q) / (n * (q - mean)) if q > mean else np.inf
        out[k] = bound[r, k]
        highest = max(highest, out[k])


@njit(nogil=True)
def _learn(
    own: Any,
    shown: FloatArray,
    clicks: FloatArray,
    r: int,
    item: int,
    exposure: float,
    reward: float,
) -> None:
    at, last = own[4], own[5]
    at[r, item], last[r] = np.nan, item
    count(own, shown, clicks, r, item, exposure, reward)


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, _learn, own, stretch)
