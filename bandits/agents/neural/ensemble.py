"""A committee of networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bandits.agents.base import Uncertainty
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, WorldAccess, WorldSpec
from bandits.models.neural.replay_buffer import spread

from .base import NeuralAgent, NeuralParams

if TYPE_CHECKING:
    from torch import Tensor


class Ensemble(NeuralAgent):
    """Networks that learned from different samples of what happened [1]_: where they disagree, there is doubt.

    strategy thompson: score_a = f_j(x_a), one member j per decision
    strategy bonus:    score_a = mean_j f_j(x_a) + beta std_j f_j(x_a)

    Every observation counts for a member with probability 1/2.

    References
    ----------
    .. [1] Osband, Blundell, Pritzel, Van Roy (2016), Deep exploration via bootstrapped DQN; Lu, Van Roy (2017),
       Ensemble sampling.
    """

    class Params(NeuralParams):
        kind: Literal["ensemble"] = "ensemble"
        members: int = param(
            10, title="Members", symbol="M", ge=2, le=100, structural=True, basic=True,
            help="Networks in the committee.",
        )  # fmt: skip
        strategy: Literal["thompson", "bonus"] = param(
            "thompson", title="Strategy", structural=True,
            help="thompson: one member, drawn anew each time, decides. bonus: their mean plus their disagreement.",
        )  # fmt: skip
        beta: float = param(
            1.0, title="Exploration", symbol=r"\beta", ge=0, le=10, typical=(0, 4),
            help="With bonus: how strongly disagreement counts as promise.",
        )  # fmt: skip
        training: Literal["replay", "everything"] = param(  # one observation would often be none for a member
            "replay", title="Training", structural=True,
            help="replay: now and then some steps on batches of what is remembered. everything: each of these steps "
            "on all of it (slow).",
        )  # fmt: skip

    title = "Ensemble"
    formula = r"f_j(x_a),\ j\sim\mathcal U\{1..M\}\quad\text{or}\quad\bar f(x_a)+\beta\,\mathrm{std}_j f_j(x_a)"
    colour = "#E69F00"
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
        M = self.copies
        self.beta = self.column("beta")
        self.coins = streams.blocks("agent", lambda g, n: g.random((n, M + 1)), width=M + 1)
        self.propensity = "exact" if params[0].strategy == "thompson" else "deterministic"  # type: ignore[misc]

    @classmethod
    def count_copies(cls, params: Any) -> int:
        return int(params.members)

    def members(self, round: Round) -> FloatArray:
        """What every member says of every candidate, float64 (R, M, K)."""
        which = self.look(round).which
        values = spread(self.believed(self.passed(round)), None).reshape(len(self.params), self.copies, -1)
        return values if which is None else np.take_along_axis(values, which[:, None], axis=2)

    def scores(self, round: Round) -> FloatArray:
        if self.params[0].strategy == "bonus":
            values = self.members(round)
            return np.asarray(values.mean(axis=1) + self.beta[:, None] * values.std(axis=1))
        look, member = self.look(round), (self.coins.at(round.step)[:, -1] * self.copies).astype(np.int64)
        asked = self.net.picked(np.arange(len(member)) * self.copies + member)
        return spread(self.believed(asked.forward(look.x)), look.which)

    def explain(self, round: Round) -> Explanation:
        values, bonus = self.members(round), self.params[0].strategy == "bonus"
        parts = (self.scores(round), values.mean(axis=1), values.std(axis=1))
        if bonus:
            return Explanation("bonus", *parts, self.beta[:, None], "beta", logit=self.log_odds)
        return Explanation("sample", *parts, logit=self.log_odds)

    def probabilities(self, round: Round) -> FloatArray:
        if self.params[0].strategy == "bonus":
            return super().probabilities(round)
        values = np.where(round.available[:, None], self.members(round), -np.inf)
        says = np.asarray(~np.isnan(values).any(axis=2))  # where a member has diverged, being drawn stops the row
        return np.asarray((np.eye(values.shape[2])[values.argmax(axis=2)] * says[..., None]).mean(axis=1))

    def gradient(self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor) -> Tensor:
        """As of every network; what does not count for a member, half of a batch, does not go through it."""
        import torch

        counts = self.flat_weight(weight)
        some = int((counts > 0).sum(1).max())
        at = (counts > 0).to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :some]
        rows = torch.arange(len(x), device=x.device).repeat_interleave(self.copies)[:, None]
        x, items, rewards = (tensor[rows, at] for tensor in (x, items, rewards))
        return self.network_gradient(x, items, rewards, counts.gather(1, at), total)

    def bootstrap(self, step: int) -> FloatArray:
        return np.where(self.coins.at(step)[:, :-1] < 0.5, 1.0, 0.0)
