"""The gradient bandit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.params import LearnerParams
from bandits.agents.stochastic import StochasticAgent
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import leading_gumbel_scores, softmax, softmax_of
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)

from .base import ContextFreeAgent
from .loop import Stretch, count, play


class GradientBandit(StochasticAgent, ContextFreeAgent):
    """Follows the gradient of the expected reward in a preference H per item [1]_.

    P(a) is proportional to exp(H_a). After the reward r of item a: H_b += alpha (r - baseline)
    (1[b = a] - P(b)) for every candidate b, with the average of all earlier rewards as baseline;
    the first reward is its own, so that it changes nothing.
    The slots of a slate are learned from one after the other.

    References
    ----------
    .. [1] Sutton, Barto (2018), Reinforcement learning: an introduction, section 2.8, equation
           2.12.

    Attributes
    ----------
    preferences : float64 (R, n_items)
    """

    class Params(LearnerParams):
        kind: Literal["gradient_bandit"] = "gradient_bandit"
        step_size: float = param(
            0.1,
            title="Step size",
            symbol=r"\eta",
            gt=0,
            le=10,
            typical=(0.01, 2),
            basic=True,
            log=True,
            help=(
                "Multiplies every update. Larger values learn and stop exploring sooner; usually "
                "0.05 to 1."
            ),
            sweep=(0.02, 4),
        )
        baseline: Literal["average", "none"] = param(
            "average",
            title="Baseline",
            structural=True,
            help=(
                "What a reward is compared with. average: the average of all earlier rewards. "
                "none: 0, which is slow where rewards are far from 0."
            ),
        )

    title = "Gradient bandit"
    formula = r"P(a)\propto e^{h_a},\quad h\mathrel{+}=\eta\,(r-\bar r)\,\nabla\log P(a)"
    colour = "#7A5195"
    dash = "dashdot"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.step_size, self.baseline = self.column("step_size"), params[0].baseline
        self.preferences = np.zeros((len(params), spec.n_items))
        self.state += ("preferences",)

    def probabilities(self, round: Round) -> FloatArray:
        return softmax(self.preferences[self._rows, round.items], round.available)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        weights, rows = self.exposure(feedback), np.arange(len(slate))
        shown, earned = self.shown.sum(axis=1), self.clicks.sum(axis=1)
        for s in range(slate.shape[1]):
            reward, baseline = feedback.rewards[:, s], np.zeros(len(slate))
            if self.baseline == "average":
                baseline = np.where(shown > 0, earned / np.where(shown > 0, shown, 1), reward)
            direction = -self.probabilities(round)
            direction[rows, slate[:, s]] += 1
            ahead = self.step_size * weights[:, s] * (reward - baseline)
            self.preferences[self._rows, round.items] += ahead[:, None] * direction
            shown, earned = shown + weights[:, s], earned + reward
        super().learn(round, slate, feedback)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray:
        own = (
            self.preferences,
            self.step_size,
            self.baseline == "average",
            self._uniforms.slice(steps.start, len(steps.context)),
            # the probabilities of the step
            np.empty(self.spec.n_items),
        )
        return _play(own, self.stretch(steps, alive))

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"baseline": "none"}]


@njit(nogil=True)
def _score(
    own: Any,
    shown: FloatArray,  # noqa: ARG001
    clicks: FloatArray,  # noqa: ARG001
    r: int,
    t: int,
    out: FloatArray,
) -> None:
    preferences, _, _, uniforms, p = own
    softmax_of(preferences[r], p)
    leading_gumbel_scores(p, uniforms[t, r], out)


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
    preferences, step_size, compares, _, p = own
    baseline = 0.0
    if compares:
        total = shown.sum()
        baseline = clicks.sum() / total if total > 0 else reward
    ahead = step_size[r] * exposure * (reward - baseline)
    for k in range(len(p)):
        preferences[r, k] += ahead * (1 - p[k] if k == item else -p[k])
    count(own, shown, clicks, r, item, exposure, reward)


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, _learn, own, stretch)
