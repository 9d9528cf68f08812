"""Epsilon-greedy without context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numba import njit
from pydantic import model_validator

from bandits.agents.base import Propensity
from bandits.agents.model_params import decay_param, epsilon_param
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import (
    epsilon_slate,
    epsilon_slots,
    mixed_with_uniform,
    shares_of_largest,
    slots_by_rank,
)
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

from .base import ForgettingContextFreeAgent, ForgettingCountsParams
from .loop import Stretch, count, play


class EpsilonGreedyAverages(ForgettingContextFreeAgent):
    """Epsilon-greedy without context [1]_: a random item with probability epsilon_t, otherwise the
    one with the best estimate.

    epsilon_t = epsilon / (1 + decay t). The estimate of an item never shown is Q1; a high one
    (optimistic start) makes the agent try every item. Afterwards it is the average of its rewards,
    or with a step size alpha, Q += alpha (r - Q), in which Q1 keeps a weight.

    References
    ----------
    .. [1] Sutton, Barto (2018), Reinforcement learning: an introduction, sections 2.2 to 2.6.

    Attributes
    ----------
    values : float64 (R, n_items)
        Q with a step size.
    """

    class Params(ForgettingCountsParams):
        kind: Literal["epsilon_greedy_averages"] = "epsilon_greedy_averages"
        epsilon: float = epsilon_param(0.1, noun="item")
        decay: float = decay_param("ε")
        start: float = param(
            0.0,
            title="Start value",
            symbol="Q_1",
            ge=-1e6,
            le=1e6,
            typical=(0, 5),
            basic=True,
            help=(
                "Estimate of an item that was never shown. Values above every reward (optimistic "
                "start) try all items; 0 does not for clicks."
            ),
        )
        step_size: float | None = param(
            None,
            title="Step size",
            symbol=r"\eta",
            empty="averages",
            gt=0,
            le=1,
            structural=True,
            help=(
                "Weight of the newest reward of an item. Larger values forget sooner; usually 0.05 "
                "to 0.3; empty means averages."
            ),
        )

        @property
        def forgets(self) -> bool:
            return self.step_size is not None or super().forgets

        @model_validator(mode="after")
        def _one_estimate(self) -> Self:
            if self.step_size is not None and (self.gamma < 1 or self.window is not None):
                raise ValueError(f"{self.kind}: step_size needs gamma 1 and no window")
            return self

        @classmethod
        def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
            values = super().closest(values)
            other = values.get("gamma", 1.0) < 1 or values.get("window") is not None
            return {**values, "step_size": None} if other else values

    title = "ε-greedy averages"
    keywords = "optimistic start"
    formula = r"Q_a,\quad\text{but a random item with probability }\varepsilon/(1+\delta t)"
    colour = "#0072B2"
    dash = "dashdot"
    exploration_param = "epsilon"
    propensity: Propensity = "exact"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.epsilon, self.decay = self.column("epsilon"), self.column("decay")
        self.start, self.step_size = self.column("start")[:, None], params[0].step_size
        if self.step_size is not None:
            self.values = np.repeat(self.start, spec.n_items, axis=1)
            self.state += ("values",)
        S = spec.slate
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, S, 2)), width=2 * S)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        super().learn(round, slate, feedback)
        if self.step_size is not None:
            at = self._rows, round.items[self._rows, slate]
            weights = self.step_size * self.exposure(feedback)
            self.values[at] += weights * (feedback.rewards - self.values[at])

    def mean(self, round: Round) -> FloatArray:
        """Return the estimates of the candidates, float64 (R, K)."""
        if self.step_size is not None:
            return np.asarray(self.values[self._rows, round.items])
        shows, clicks = self.counts(round)
        return np.where(shows > 0, clicks / np.where(shows > 0, shows, 1), self.start)

    def rate(self, step: int | IntArray) -> FloatArray:
        """Compute epsilon_t, float64 (R,), or (T, R) for steps (T, 1)."""
        return self.epsilon / (1 + self.decay * step)

    def scores(self, round: Round) -> FloatArray:
        step = round.step
        draws, ties = self.uniforms.at(step), self.streams.ties
        mean, rate = self.mean(round), self.rate(step)
        return np.asarray(epsilon_slate(mean, round.available, rate, draws, ties, step))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.forgets(self.params[0]):
            return None
        n = len(steps.context)
        rates = self.rate(np.arange(steps.start, steps.start + n)[:, None])
        own = self.start[:, 0], rates, self.uniforms.slice(steps.start, n)
        return _play(own, self.stretch(steps, alive))

    def explain(self, round: Round) -> Explanation:
        draws = self.uniforms.at(round.step)[:, :, 0]
        randomised = np.asarray(np.any(draws < self.rate(round.step)[:, None], axis=1))
        return Explanation("greedy", self.scores(round), self.mean(round), randomised=randomised)

    @property
    def slot_propensity(self) -> Propensity:
        return "exact"

    def slot_probabilities(self, round: Round) -> FloatArray:
        by_rank = epsilon_slots(round.available.sum(axis=1), self.rate(round.step), self.spec.slate)
        return np.asarray(slots_by_rank(by_rank, self.mean(round), round.available))

    def probabilities(self, round: Round) -> FloatArray:
        mean = np.where(round.available, self.mean(round), -np.inf)
        greedy = shares_of_largest(mean)
        return np.asarray(mixed_with_uniform(greedy, self.rate(round.step), round.available))

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"start": 1.0, "gamma": 0.98}, {"step_size": 0.1, "start": 5.0}]


@njit(nogil=True)
def _score(
    own: Any, shown: FloatArray, clicks: FloatArray, r: int, t: int, out: FloatArray
) -> None:
    start, rates, uniforms = own
    K = len(out)
    if uniforms[t, r, 0, 0] < rates[t, r]:
        out[:] = -np.inf
        out[min(int(uniforms[t, r, 0, 1] * K), K - 1)] = 0.0
        return
    for k in range(K):
        out[k] = clicks[k] / shown[k] if shown[k] > 0 else start[r]


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, count, own, stretch)
