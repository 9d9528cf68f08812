"""Dropout that stays on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bandits.agents.base import Uncertainty
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import FloatArray, Round, WorldAccess, WorldSpec
from bandits.models.neural import mlp
from bandits.models.neural.mlp import ForwardPass
from bandits.models.neural.replay_buffer import spread

from .base import NeuralAgent, NeuralParams

if TYPE_CHECKING:
    from torch import Tensor


class MCDropout(NeuralAgent):
    """One network of which a random part is switched off [1]_: each part gives another answer.

    strategy thompson: score_a = f_d(x_a), one dropout mask d per decision, the same for all candidates
    strategy bonus:    score_a = mean_d f_d(x_a) + alpha std_d f_d(x_a) over T masks

    References
    ----------
    .. [1] Gal, Ghahramani (2016), Dropout as a Bayesian approximation; Riquelme, Tucker, Snoek (2018), Deep Bayesian
       bandits showdown.
    """

    class Params(NeuralParams):
        kind: Literal["mc_dropout"] = "mc_dropout"
        dropout: float = param(
            0.2, title="Dropout", symbol="p", gt=0, lt=1, typical=(0.05, 0.8), basic=True,
            help="Share of hidden units that are switched off, in training and in choosing.",
        )  # fmt: skip
        strategy: Literal["thompson", "bonus"] = param(
            "thompson", title="Strategy", structural=True,
            help="thompson: one random part decides. bonus: the mean of several parts plus their disagreement.",
        )  # fmt: skip
        passes: int = param(
            10, title="Passes", symbol="T", ge=2, le=100, structural=True, help="With bonus: parts that are asked.",
        )  # fmt: skip
        alpha: float = param(
            1.0, title="Exploration", symbol=r"\alpha", ge=0, le=10, typical=(0, 4),
            help="With bonus: how strongly disagreement counts as promise.",
        )  # fmt: skip
        training: Literal["newest", "replay"] = param(  # its dice are as many as a batch
            "replay", title="Training", structural=True,
            help="newest: one step on each new observation, then it is gone. replay: now and then some steps on "
            "batches of what is remembered.",
        )  # fmt: skip

    title = "MC dropout"
    propensity = "monte_carlo"
    formula = r"f_d(x_a),\ d\sim\text{masks}\quad\text{or}\quad\bar f(x_a)+\alpha\,\mathrm{std}_d f_d(x_a)"
    colour = "#B8A500"
    dash = "dash"

    @classmethod
    def uncertainty_of(cls, params: Any) -> Uncertainty | None:
        return "bonus" if params.strategy == "bonus" else "posterior"

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        (small,) = super().test_params()
        return [small, {**small, "strategy": "bonus"}]

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        p, units = self.params[0], sum(self.params[0].hidden)
        self.keep = self.tensor(1 - self.column("dropout"))[:, None, None]
        self.alpha, self.asked = self.column("alpha"), 1 if p.strategy == "thompson" else p.passes
        shape = (self.asked, units)
        self.dice = streams.blocks("agent", lambda g, n: g.random((n, *shape), np.float32), width=self.asked * units)
        self.training_dice = streams.blocks(
            "agent", lambda g, n: g.random((n, self.batch, units), np.float32), width=self.batch * units, part=3
        )
        self._masks: list[Tensor] = []

    @property
    def batch(self) -> int:
        """Observations in one step of the optimiser, at most."""
        p = self.params[0]
        return self.spec.slate if p.training == "newest" else int(p.batch)

    def scores(self, round: Round) -> FloatArray:
        return self.judged(self.answers(round, self.dice.at(round.step)))

    def judged(self, values: FloatArray) -> FloatArray:
        """Scores by what the random parts say, (T, R, K)."""
        if self.params[0].strategy == "thompson":
            return np.asarray(values[0])
        return np.asarray(values.mean(axis=0) + self.alpha[:, None] * values.std(axis=0))

    def explain(self, round: Round) -> Explanation:
        thompson, dice = self.params[0].strategy == "thompson", self.dice.at(round.step)
        if thompson:  # it asked one part: what is around it comes from others, which decide nothing
            shape = (self.params[0].passes, dice.shape[2])
            own = (self.streams.generator("agent", row=r, part=5, block=round.step) for r in self.streams.rows)
            dice = np.stack([g.random(shape, np.float32) for g in own])
        values, score = self.answers(round, dice), self.scores(round)
        mean, width = values.mean(axis=0), values.std(axis=0)
        if thompson:
            return Explanation("sample", score, mean, width, logit=self.log_odds)
        return Explanation("bonus", score, mean, width, self.alpha[:, None], "alpha", logit=self.log_odds)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        shape = self.dice.at(round.step).shape
        while True:
            yield self.judged(self.answers(round, generator.random(shape, np.float32)))

    def answers(self, round: Round, dice: Any) -> FloatArray:
        """What each random part says of every candidate, float64 (T, R, K), for ``dice (R, T, hidden units)``."""
        which = self.look(round).which
        return np.stack([spread(values, which) for values in self.parts(round, self.tensor(dice))])

    def parts(self, round: Round, dice: Tensor) -> list[Tensor]:
        """What each random part says of the distinct candidates, T of (R, K')."""
        x, asked = self.look(round).x, dice.shape[1]
        masks = mlp.masks(dice, self.widths, self.keep)
        K = x.shape[1]
        many = [m.repeat_interleave(K, dim=1) for m in masks]  # (R, T K', width)
        out = self.believed(self.net.forward(x.repeat(1, asked, 1), many))
        return list(out.reshape(len(x), asked, K).unbind(1))

    def forward(self, x: Tensor) -> ForwardPass:
        dice = self.tensor(self.training_dice.at(self.improvements)[:, : x.shape[1]])
        self._masks = mlp.masks(dice, self.widths, self.keep)
        return self.net.forward(x, self._masks)

    def backward(self, passed: ForwardPass, delta: Tensor) -> Tensor:
        return self.net.backward(passed, delta, self._masks)

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        asked = 1 if params.strategy == "thompson" else params.passes
        units = sum(params.hidden)
        width = units * max(asked, params.batch)
        activations = 12 * spec.n_candidates * asked * (spec.n_features + units)
        return super().memory(params, spec) + int(2 * (4 * width * block_length(width)) + activations)
