"""MC dropout: a network whose dropout stays active when it predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bandits.agents.facts import Uncertainty
from bandits.agents.model_params import bonus_param
from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.neural.distinct_candidates import expand
from bandits.models.neural.mlp import ForwardPass, dropout_masks

from .base import NeuralAgent
from .params import NeuralParams, training_param
from .warm_start import PRETRAIN_PART

if TYPE_CHECKING:
    from torch import Tensor


class MCDropout(NeuralAgent):
    """Monte Carlo dropout [1]_: dropout masks approximate a posterior sample.

    strategy thompson: score_a = f_d(x_a), one dropout mask d per decision, the same for all
    candidates strategy bonus:    score_a = mean_d f_d(x_a) + alpha std_d f_d(x_a) over T masks

    References
    ----------
    .. [1] Gal, Ghahramani (2016), Dropout as a Bayesian approximation; Riquelme, Tucker, Snoek
       (2018), Deep Bayesian bandits showdown.
    """

    class Params(NeuralParams):
        kind: Literal["mc_dropout"] = "mc_dropout"
        learning_rate: float = override_default(NeuralParams, "learning_rate", 0.003)
        dropout: float = param(
            0.2,
            title="Dropout rate",
            symbol="p",
            gt=0,
            lt=1,
            typical=(0.05, 0.8),
            basic=True,
            usual=(0.05, 0.5),
            help=(
                "Probability that a hidden unit is dropped, in training and in prediction. "
                "Larger values make predictions vary more, so that the agent explores more "
                "(usually 0.05 to 0.5)."
            ),
        )
        strategy: Literal["thompson", "bonus"] = param(
            "thompson",
            title="Strategy",
            structural=True,
            help=(
                "thompson: the prediction under one random mask. bonus: mean of T predictions "
                "plus α times their standard deviation."
            ),
        )
        passes: int = param(
            10,
            title="Dropout samples",
            symbol="L",
            ge=2,
            le=100,
            structural=True,
            help=(
                "Number of masks per decision (strategy bonus). More samples estimate the "
                "standard deviation better and take longer (usually 5 to 30)."
            ),
        )
        alpha: float = bonus_param(1.0, width="standard deviation (strategy bonus)", basic=False)
        # not everything: masks are drawn for a batch
        training: Literal["newest", "replay"] = training_param("newest", "replay")

    PRETRAIN_READS: ClassVar[tuple[str, ...]] = (*NeuralAgent.PRETRAIN_READS, "dropout")
    title = "MC dropout"
    exploration_param = "alpha"
    propensity = "monte_carlo"
    formula = r"f_d(x_a),\ d\sim\text{masks}\quad\text{or}\quad\bar f(x_a)+\alpha\,\mathrm{std}_d f_d(x_a)"  # noqa: E501
    colour = "#7A5195"
    dash = "dash"

    @classmethod
    def uncertainty_of(cls, params: Any) -> Uncertainty | None:
        return "bonus" if params.strategy == "bonus" else "posterior"

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        (small,) = super().test_params()
        return [small, {**small, "strategy": "bonus"}]

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p, units = self.params[0], sum(self.params[0].hidden)
        self.keep = self.tensor(1 - self.column("dropout"))[:, None, None]
        self.alpha, samples = self.column("alpha"), 1 if p.strategy == "thompson" else p.passes
        shape = (samples, units)
        self.uniforms = streams.blocks(
            "agent", lambda g, n: g.random((n, *shape), np.float32), width=samples * units
        )
        self.training_uniforms = streams.blocks(
            "agent",
            lambda g, n: g.random((n, self.batch, units), np.float32),
            width=self.batch * units,
            part=3,
        )
        self._masks: list[Tensor] = []

    @property
    def batch(self) -> int:
        """Maximum number of observations in one step of the optimiser."""
        p = self.params[0]
        return self.spec.slate if p.training == "newest" else int(p.batch)

    def scores(self, round: Round) -> FloatArray:
        return self.combined(self.predictions(round, self.uniforms.at(round.step)))

    def combined(self, values: FloatArray) -> FloatArray:
        """Combine predictions (T, R, K) under T masks into scores (R, K)."""
        if self.params[0].strategy == "thompson":
            return np.asarray(values[0])
        return np.asarray(values.mean(axis=0) + self.alpha[:, None] * values.std(axis=0))

    def explain(self, round: Round) -> Explanation:
        thompson, uniforms = self.params[0].strategy == "thompson", self.uniforms.at(round.step)
        # the choice uses one mask; mean and deviation come from masks drawn for the explanation
        # only
        if thompson:
            shape = (self.params[0].passes, uniforms.shape[2])
            generators = (
                self.streams.generator("agent", row=r, part=5, block=round.step)
                for r in self.streams.rows
            )
            uniforms = np.stack([g.random(shape, np.float32) for g in generators])
        values, score = self.predictions(round, uniforms), self.scores(round)
        mean, width = values.mean(axis=0), values.std(axis=0)
        if thompson:
            return Explanation("sample", score, mean, width, logit=self.log_odds)
        return Explanation(
            "bonus", score, mean, width, self.alpha[:, None], "alpha", logit=self.log_odds
        )

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        shape = self.uniforms.at(round.step).shape
        while True:
            yield self.combined(self.predictions(round, generator.random(shape, np.float32)))

    def predictions(self, round: Round, uniforms: Any) -> FloatArray:
        """Predict every candidate under T masks, float64 (T, R, K).

        ``uniforms (R, T, hidden units)`` determine the masks.
        """
        index = self.encode(round).candidate_index
        return np.stack(
            [
                expand(values, index)
                for values in self.masked_predictions(round, self.tensor(uniforms))
            ]
        )

    def masked_predictions(self, round: Round, uniforms: Tensor) -> list[Tensor]:
        """Predict the distinct candidates under T masks, a list of T tensors (R, K')."""
        x, samples = self.encode(round).x, uniforms.shape[1]
        K = x.shape[1]
        # the masks of a sample apply to all candidates: (R, T K', width)
        masks = [
            m.repeat_interleave(K, dim=1) for m in dropout_masks(uniforms, self.widths, self.keep)
        ]
        out = self.checked_output(self.net.forward(x.repeat(1, samples, 1), masks))
        return list(out.reshape(len(x), samples, K).unbind(1))

    def forward(self, x: Tensor) -> ForwardPass:
        # in larger batches
        if self.pretraining:
            generator = self.streams.of_rows("agent", part=PRETRAIN_PART, block=self.train_steps)
            uniforms = generator.random((*x.shape[:2], sum(self.params[0].hidden)), np.float32)
        else:
            uniforms = self.training_uniforms.at(self.train_steps)[:, : x.shape[1]]
        self._masks = dropout_masks(self.tensor(uniforms), self.widths, self.keep)
        return self.net.forward(x, self._masks)

    def backward(self, forward_pass: ForwardPass, delta: Tensor) -> Tensor:
        return self.net.backward(forward_pass, delta, self._masks)

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        samples = 1 if params.strategy == "thompson" else params.passes
        units = sum(params.hidden)
        width = units * max(samples, params.batch)
        activations = 12 * spec.n_candidates * samples * (spec.n_features + units)
        return super().memory(params, spec) + int(
            2 * (4 * width * block_length(width)) + activations
        )
