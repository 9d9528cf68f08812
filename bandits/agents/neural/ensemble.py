"""Ensemble: bootstrapped networks for Thompson sampling or an exploration bonus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bandits.agents.facts import Uncertainty
from bandits.agents.model_params import bonus_param
from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.selection import shares_of_largest
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.neural.distinct_candidates import expand

from .base import NeuralAgent
from .params import NeuralParams, training_param
from .warm_start import PRETRAIN_PART

if TYPE_CHECKING:
    from torch import Tensor


class Ensemble(NeuralAgent):
    """Bootstrapped networks [1]_, whose disagreement measures the uncertainty.

    strategy thompson: score_a = f_j(x_a), one member j per decision
    strategy bonus:    score_a = mean_j f_j(x_a) + beta std_j f_j(x_a)

    Each observation, also of a log, is used to train each member with probability 1/2.

    References
    ----------
    .. [1] Osband, Blundell, Pritzel, Van Roy (2016), Deep exploration via bootstrapped DQN; Lu, Van
       Roy (2017), Ensemble sampling.
    """

    class Params(NeuralParams):
        kind: Literal["ensemble"] = "ensemble"
        learning_rate: float = override_default(NeuralParams, "learning_rate", 0.003)
        members: int = param(
            5,
            title="Ensemble size",
            symbol="M",
            ge=2,
            le=100,
            structural=True,
            basic=True,
            help=(
                "Number of networks. Larger ensembles represent the uncertainty better and take "
                "longer (usually 5 to 30)."
            ),
        )
        strategy: Literal["thompson", "bonus"] = param(
            "thompson",
            title="Strategy",
            structural=True,
            help=(
                "thompson: a member drawn at random for each decision. bonus: mean of the "
                "members plus β times their standard deviation."
            ),
        )
        beta: float = bonus_param(
            1.0, symbol=r"\alpha", width="members' deviation (strategy bonus)", basic=False
        )
        # a single observation is often not used for a member
        training: Literal["replay", "everything"] = training_param("replay", "everything")

    PRETRAIN_READS: ClassVar[tuple[str, ...]] = (*NeuralAgent.PRETRAIN_READS, "members")
    title = "Ensemble"
    exploration_param = "beta"
    formula = r"f_j(x_a),\ j\sim\mathcal U\{1..M\}\quad\text{or}\quad\bar f(x_a)+\alpha\,\mathrm{std}_j f_j(x_a)"  # noqa: E501
    colour = "#E69F00"
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
        M = self.copies
        self.beta = self.column("beta")
        # M uniforms for the bootstrap weights, and one that draws the member
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, M + 1)), width=M + 1)
        self.propensity = "exact" if params[0].strategy == "thompson" else "deterministic"

    @classmethod
    def count_copies(cls, params: Any) -> int:
        return int(params.members)

    def member_predictions(self, round: Round) -> FloatArray:
        """Predict every candidate by every member, float64 (R, M, K)."""
        index = self.encode(round).candidate_index
        values = expand(self.checked_output(self.forward_pass(round)), None).reshape(
            len(self.params), self.copies, -1
        )
        return values if index is None else np.take_along_axis(values, index[:, None], axis=2)

    def scores(self, round: Round) -> FloatArray:
        if self.params[0].strategy == "bonus":
            values = self.member_predictions(round)
            return np.asarray(values.mean(axis=1) + self.beta[:, None] * values.std(axis=1))
        encoded, member = (
            self.encode(round),
            (self.uniforms.at(round.step)[:, -1] * self.copies).astype(np.int64),
        )
        drawn = self.net.select(np.arange(len(member)) * self.copies + member)
        return expand(self.checked_output(drawn.forward(encoded.x)), encoded.candidate_index)

    def explain(self, round: Round) -> Explanation:
        values, bonus = self.member_predictions(round), self.params[0].strategy == "bonus"
        parts = (self.scores(round), values.mean(axis=1), values.std(axis=1))
        if bonus:
            return Explanation("bonus", *parts, self.beta[:, None], "beta", logit=self.log_odds)
        return Explanation("sample", *parts, logit=self.log_odds)

    def probabilities(self, round: Round) -> FloatArray:
        if self.params[0].strategy == "bonus":
            return super().probabilities(round)
        values = np.where(round.available[:, None], self.member_predictions(round), -np.inf)
        # drawing a member that has diverged stops the row
        finite = np.asarray(~np.isnan(values).any(axis=2))
        return np.asarray((shares_of_largest(values) * finite[..., None]).mean(axis=1))

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        if self.params[0].strategy == "bonus":
            return
        values, rows = self.member_predictions(round), np.arange(len(self.params))
        while True:
            yield values[
                rows, (generator.random((len(rows), 1))[:, 0] * self.copies).astype(np.int64)
            ]

    def gradient(
        self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor
    ) -> Tensor:
        """Compute the gradient from each member's part of the batch, about half of it."""
        import torch

        counts = self.flat_weight(weight)
        largest = int((counts > 0).sum(1).max())
        index = (
            (counts > 0).to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :largest]
        )
        rows = torch.arange(len(x), device=x.device).repeat_interleave(self.copies)[:, None]
        x, items, rewards = (tensor[rows, index] for tensor in (x, items, rewards))
        return self.network_gradient(x, items, rewards, counts.gather(1, index), total)

    def pretrain_weights(self, block: int, n: int) -> FloatArray:
        generator, M = self.streams.of_rows("agent", part=PRETRAIN_PART, block=block), self.copies
        return np.where(generator.random((len(self.params), n, M)) < 0.5, 1.0, 0.0)

    def bootstrap_weights(self, step: int) -> FloatArray:
        return np.where(self.uniforms.at(step)[:, :-1] < 0.5, 1.0, 0.0)
