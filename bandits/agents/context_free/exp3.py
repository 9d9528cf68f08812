"""EXP3 and EXP3.P."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.params import LearnerParams
from bandits.agents.stochastic import StochasticAgent
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import (
    leading_gumbel_scores,
    mixed_with_uniform,
    softmax,
    softmax_of,
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

from .base import ContextFreeAgent
from .loop import Stretch, count, play


class EXP3(StochasticAgent, ContextFreeAgent):
    """Exponential weights on inverse-propensity estimates: no assumption on how rewards come about
    [1]_.

    p_a = (1 - gamma) w_a / sum w + gamma / K. After the reward r of item a, EXP3: w_a *= exp(gamma
    r / (K p_a)). EXP3.P, whose bound holds with high probability, also raises every candidate: w_b
    *= exp(gamma / (3 K) (r 1[b = a] / p_b + beta / (p_b sqrt(K T)))).

    Rewards must be from 0 to 1. In a slate, every slot counts with the propensity of the first.

    References
    ----------
    .. [1] Auer, Cesa-Bianchi, Freund, Schapire (2002), The nonstochastic multiarmed bandit
           problem, Figures 1 (EXP3) and 3 (EXP3.P, whose alpha is beta here).

    Attributes
    ----------
    weights : float64 (R, n_items)
        Logarithms of w.
    """

    class Params(LearnerParams):
        kind: Literal["exp3"] = "exp3"
        mixing: float = param(
            0.1,
            title="Mixing",
            symbol=r"\varepsilon",
            gt=0,
            le=1,
            typical=(0.001, 1),
            basic=True,
            usual=(0.02, 0.3),
            help=(
                "Share of uniform choice, and step size of the weights. Larger values explore more "
                "and follow changes sooner; usually 0.02 to 0.3."
            ),
            sweep=(0.01, 1),
        )
        variant: Literal["exp3", "exp3_p"] = param(
            "exp3",
            title="Variant",
            structural=True,
            help=(
                "exp3: bounds the expected regret. exp3_p: adds a confidence width to every "
                "estimate, which bounds the regret with high probability."
            ),
        )
        beta: float = param(
            2.0,
            title="Confidence width",
            symbol=r"\beta",
            ge=0,
            le=100,
            typical=(0, 10),
            help=(
                "Multiplies the confidence width (exp3_p). Larger values return to neglected "
                "items more often; usually 0.5 to 5."
            ),
        )
        horizon: int = param(
            10_000,
            title="Horizon",
            symbol="T",
            unit="steps",
            ge=1,
            le=100_000_000,
            typical=(100, 100_000),
            help=(
                "Number of steps that the confidence width is made for (exp3_p). Larger values "
                "make it narrower."
            ),
        )

        @classmethod
        def idle(cls, values: dict[str, Any]) -> frozenset[str]:
            plain = values.get("variant", "exp3") == "exp3"
            return frozenset({"beta", "horizon"} if plain else ())

    title = "EXP3"
    keywords = "adversarial"
    formula = r"P(a)=(1-\varepsilon)\,w_a/\textstyle\sum_b w_b+\varepsilon/K"
    colour = "#CC79A7"
    dash = "dashdot"
    exploration_param = None
    needs = frozenset({"binary"})

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.mixing, self.variant = self.column("mixing"), params[0].variant
        self.beta, self.horizon = self.column("beta"), self.column("horizon")
        self.weights = np.zeros((len(params), spec.n_items))
        self.state += ("weights",)

    def probabilities(self, round: Round) -> FloatArray:
        shares = softmax(self.weights[self._rows, round.items], round.available)
        return np.asarray(mixed_with_uniform(shares, self.mixing, round.available))

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        p, K = self.probabilities(round), round.available.sum(axis=1)
        examined = self.exposure(feedback)
        shown = np.take_along_axis(p, slate, axis=1)
        rate = self.mixing / K if self.variant == "exp3" else self.mixing / (3 * K)
        estimates = examined * feedback.rewards / shown
        np.add.at(
            self.weights,
            (self._rows, round.items[self._rows, slate]),
            rate[:, None] * estimates,
        )
        if self.variant == "exp3_p":
            # once for each decision whose feedback is known
            width = rate * (self.beta / np.sqrt(K * self.horizon)) * examined.max(axis=1)
            raised = width[:, None] / np.where(round.available, p, np.inf)
            self.weights[self._rows, round.items] += raised
        self.weights -= self.weights.max(axis=1, keepdims=True)
        super().learn(round, slate, feedback)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray:
        R, K = self.weights.shape
        own = (
            self.weights,
            self.mixing,
            self.mixing / K if self.variant == "exp3" else self.mixing / (3 * K),
            self.beta / np.sqrt(K * self.horizon),
            self.variant == "exp3_p",
            self._uniforms.slice(steps.start, len(steps.context)),
            # the probabilities of a row, and whether its weights have changed since
            np.empty((R, K)),
            np.ones(R, np.bool_),
        )
        return _play(own, self.stretch(steps, alive))

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"variant": "exp3_p"}]


@njit(nogil=True)
def _score(
    own: Any,
    shown: FloatArray,  # noqa: ARG001
    clicks: FloatArray,  # noqa: ARG001
    r: int,
    t: int,
    out: FloatArray,
) -> None:
    weights, mixing, _, _, _, uniforms, p, changed = own
    if changed[r]:
        softmax_of(weights[r], p[r])
        each = mixing[r] / len(out)
        for k in range(len(out)):
            p[r, k] = (1 - mixing[r]) * p[r, k] + each
        changed[r] = False
    leading_gumbel_scores(p[r], uniforms[t, r], out)


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
    weights, _, rate, width, raises, _, p, changed = own
    count(own, shown, clicks, r, item, exposure, reward)
    if reward == 0 and not raises:
        return
    weights[r, item] += rate[r] * (exposure * reward / p[r, item])
    if raises:
        raised = rate[r] * width[r] * exposure
        for k in range(len(p[r])):
            weights[r, k] += raised / p[r, k]
    weights[r] -= weights[r].max()
    changed[r] = True


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, _learn, own, stretch)
