"""UCB1."""

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


class UCB1(ForgettingContextFreeAgent):
    """Upper confidence bound without context [1]_; the gap to LinUCB is the value of context.

    score_a = mean_a + alpha sqrt(2 ln t / n_a); items never shown come first. The paper has alpha =
    1.

    Discounted or windowed UCB [2]_: score_a = X_a / N_a + alpha sqrt(ln n / N_a), with exposures
    N_a and clicks X_a discounted by gamma at every step, or of the window, and n = sum N_a.

    References
    ----------
    .. [1] Auer, Cesa-Bianchi, Fischer (2002), Finite-time analysis of the multiarmed bandit
           problem, Figure 1.
    .. [2] Garivier, Moulines (2011), On upper-confidence bound policies for switching bandit
       problems, sections 2.2 and 2.3 (alpha = 2 B sqrt(xi)).
    """

    class Params(ForgettingCountsParams):
        kind: Literal["ucb1"] = "ucb1"
        alpha: float = bonus_param(0.1)

    title = "UCB1"
    formula = r"\bar r_a+\alpha\sqrt{2\ln t\,/\,n_a}"
    uncertainty = "bonus"
    exploration_param = "alpha"
    colour = "#56B4E9"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    def scores(self, round: Round) -> FloatArray:
        shows, clicks = self.counts(round)
        seen = np.where(shows > 0, shows, 1)
        bonus = np.sqrt(self.logarithm(round) / seen)
        return np.where(shows <= 0, np.inf, clicks / seen + self.alpha[:, None] * bonus)

    def logarithm(self, round: Round) -> FloatArray | float:
        """Compute 2 ln t, or ln n (R, 1) of the exposures that are not forgotten."""
        if not self.forgets(self.params[0]):
            return float(2 * np.log(max(round.step, 1)))
        return np.asarray(np.log(np.maximum(self.shown.sum(axis=1, keepdims=True), 1)))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.forgets(self.params[0]):
            return None
        logarithms = 2 * np.log(
            np.maximum(np.arange(steps.start, steps.start + len(steps.context)), 1)
        )
        return _play((logarithms, self.alpha), self.stretch(steps, alive))

    def explain(self, round: Round) -> Explanation:
        shows, clicks = self.counts(round)
        seen = np.where(shows > 0, shows, 1)
        mean = np.where(shows <= 0, np.nan, clicks / seen)
        width = np.where(shows <= 0, np.inf, np.sqrt(self.logarithm(round) / seen))
        return Explanation("bonus", self.scores(round), mean, width, self.alpha[:, None], "alpha")


@njit(nogil=True)
def _score(
    own: Any, shown: FloatArray, clicks: FloatArray, r: int, t: int, out: FloatArray
) -> None:
    logarithms, alpha = own
    for k in range(len(out)):
        out[k] = np.inf
        if shown[k] > 0:
            out[k] = clicks[k] / shown[k] + alpha[r] * np.sqrt(logarithms[t] / shown[k])


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, count, own, stretch)
