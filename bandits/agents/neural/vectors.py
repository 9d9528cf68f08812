"""Agents whose network may read the vectors of users and items from tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bandits.base.types import IntArray, Round, SimulatorSpec
from bandits.models.neural.batch_gradient import loss_gradient
from bandits.models.neural.mlp import ForwardPass
from bandits.models.neural.vector_tables import VectorTables

from .base import NeuralAgent

if TYPE_CHECKING:
    from torch import Tensor


class VectorAgent(NeuralAgent):
    """Agent that evaluates its network from tables of vectors if ``tables`` is set, else from the
    features.
    """

    tables: VectorTables | None = None

    def make_tables(self, *, tuned: bool) -> VectorTables:
        """Create the tables of a simulator with the capability ``vectors``."""
        return VectorTables(self.access.vectors(), self.spec.n_features, tuned=tuned)

    def candidate_index(self, round: Round) -> IntArray | None:
        return super().candidate_index(round) if self.tables is None else None

    def forward_pass(self, round: Round) -> ForwardPass:
        if self.tables is None:
            return super().forward_pass(round)
        if self._forward_pass is None or self._evaluated_step != round.step:
            self._forward_pass = self.tables.forward(self.net, round.users, round.items)
            self._evaluated_step = round.step
        return self._forward_pass

    def shown_input(self, round: Round, slate: IntArray, items: IntArray) -> Tensor:
        if self.tables is None:
            return super().shown_input(round, slate, items)
        return self.tensor(
            self.tables.pairs(np.repeat(round.users[:, None], items.shape[1], axis=1), items)
        )

    @property
    def compiled(self) -> bool:
        """Whether `loss_gradient` differentiates the network."""
        return self.tables is not None and self.device == "cpu"

    def pretrain_recipe(self) -> str:
        recipe = super().pretrain_recipe()
        # it rounds otherwise than torch
        return f"{recipe} compiled" if self.compiled else recipe

    def network_gradient(
        self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor
    ) -> Tensor:
        if not self.compiled:
            return super().network_gradient(x, items, rewards, weight, total)
        arrays = (tensor.numpy() for tensor in (x, rewards, weight / total))
        loss_gradient(self.net, *arrays, log_odds=self.log_odds)
        return self.net.gradient

    @classmethod
    def shared_memory(cls, params: Any, spec: SimulatorSpec, layouts: int) -> int:
        entries = (
            (spec.n_users + spec.n_items) * spec.n_features if "vectors" in spec.capabilities else 0
        )
        return 2 * entries * layouts + super().shared_memory(params, spec, layouts)
