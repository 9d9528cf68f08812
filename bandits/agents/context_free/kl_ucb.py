"""KL-UCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.model_params import bonus_param
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec

from .base import ForgettingContextFreeAgent, ForgettingCountsParams

# halvings of the interval in which a bound lies: to the last bit of a number in [0, 1]
HALVINGS = 60


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

    def explain(self, round: Round) -> Explanation:
        shows, clicks = self.counts(round)
        mean = np.where(shows <= 0, np.nan, clicks / np.where(shows > 0, shows, 1))
        return Explanation("score", self.scores(round), mean)


@njit(cache=True, nogil=True)
def upper_bounds(shows: FloatArray, clicks: FloatArray, limit: FloatArray) -> FloatArray:
    """Compute the largest q with n KL(mean, q) <= limit, by bisection, float64 (R, K); inf where n
    is 0.
    """
    out = np.full(shows.shape, np.inf)
    for r in range(shows.shape[0]):
        for k in range(shows.shape[1]):
            n = shows[r, k]
            if n <= 0:
                continue
            mean = min(max(clicks[r, k] / n, 0.0), 1.0)
            low, high = mean, 1.0
            # by Pinsker's inequality
            high = min(high, mean + np.sqrt(limit[r, k] / (2 * n)))
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                if middle <= low or middle >= high:
                    break
                divergence = 0.0
                if mean > 0:
                    divergence += mean * np.log(mean / middle)
                if mean < 1:
                    divergence += (1 - mean) * np.log((1 - mean) / (1 - middle))
                if n * divergence <= limit[r, k]:
                    low = middle
                else:
                    high = middle
            out[r, k] = low
    return out
