"""Softmax (Boltzmann) exploration without context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.model_params import decay_param
from bandits.agents.stochastic import StochasticAgent
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import leading_gumbel_scores, softmax
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

# of preferences, by which the highest one may leave the one that weights are relative to
FAR = 30.0


class Softmax(StochasticAgent, ForgettingContextFreeAgent):
    """Shows each item with a probability that grows exponentially with its average reward [1]_.

    P(a) is proportional to exp(mean_a / tau_t), with tau_t = tau / (1 + decay t) and mean 0 for an
    item never shown.

    References
    ----------
    .. [1] Luce (1959), Individual choice behavior; Sutton, Barto (2018), Reinforcement learning: an
           introduction, exercise 2.9; cooling: Cesa-Bianchi, Fischer (1998), Finite-time regret
           bounds for the multiarmed bandit problem.
    """

    class Params(ForgettingCountsParams):
        kind: Literal["softmax"] = "softmax"
        temperature: float = param(
            0.1,
            title="Temperature",
            symbol=r"\tau",
            gt=0,
            le=100,
            typical=(0.001, 1),
            basic=True,
            log=True,
            usual=(0.01, 0.3),
            help=(
                "Divides the average rewards. Larger values explore more; usually 0.01 to 0.3 for "
                "clicks."
            ),
            sweep=(0.005, 1),
        )
        decay: float = decay_param("τ")

    title = "Softmax"
    keywords = "Boltzmann"
    formula = r"P(a)\propto\exp\big(\bar r_a\,(1+\delta t)/\tau\big)"
    colour = "#E69F00"
    dash = "dashdot"
    exploration_param = "temperature"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.temperature = self.column("temperature")[:, None]
        self.decay = self.column("decay")[:, None]

    def probabilities(self, round: Round) -> FloatArray:
        shows, clicks = self.counts(round)
        mean = clicks / np.where(shows > 0, shows, 1)
        return softmax(mean * (1 + self.decay * round.step) / self.temperature, round.available)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.forgets(self.params[0]):
            return None
        n, (R, K) = len(steps.context), self.shown.shape
        at = np.arange(steps.start, steps.start + n)[:, None]
        own = (
            1 + self.decay[:, 0] * at,
            self.temperature[:, 0],
            self._uniforms.slice(steps.start, n),
            np.empty((R, K)),
            np.empty((R, K)),
            # nothing is known of a row
            np.full(R, np.nan),
            np.full(R, -1),
        )
        return _play(own, self.stretch(steps, alive))


@njit(nogil=True)
def _score(
    own: Any, shown: FloatArray, clicks: FloatArray, r: int, t: int, out: FloatArray
) -> None:
    """Compute again what has changed since the last step: all weights are relative to a preference
    that is near the highest one.
    """
    factor, temperature, uniforms, preferences, weights, relative_to, last = own
    values, known, cools = preferences[r], last[r], t > 0 and factor[t, r] != factor[t - 1, r]
    for k in range(len(out)):
        if known < 0 or cools or k == known:
            mean = clicks[k] / (shown[k] if shown[k] > 0 else 1.0)
            values[k] = mean * factor[t, r] / temperature[r]
    highest = values.max()
    anew = known < 0 or cools or abs(highest - relative_to[r]) > FAR
    if anew:
        relative_to[r] = highest
    for k in range(len(out)):
        if anew or k == known:
            weights[r, k] = np.exp(values[k] - relative_to[r])
    leading_gumbel_scores(weights[r], uniforms[t, r], out)


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
    own[-1][r] = item
    count(own, shown, clicks, r, item, exposure, reward)


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, _learn, own, stretch)
