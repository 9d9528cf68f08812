"""Neural greedy: a network without exploration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP, count_weights

from .params import NeuralParams
from .training import FULL_BATCH_CHUNK
from .vectors import VectorAgent


class NeuralGreedy(VectorAgent):
    """Greedy choice by the predictions of a network; no exploration.

    score_a = f(x_a), or f(x_a, e_user, e_a) with learned embeddings of users and items
    """

    class Params(NeuralParams):
        kind: Literal["neural_greedy"] = "neural_greedy"
        learning_rate: float = override_default(NeuralParams, "learning_rate", 0.03)
        embedding: int = param(
            0,
            title="Embedding width",
            ge=0,
            le=256,
            structural=True,
            help=(
                "Width of learned embeddings of users and items, added to the features. Larger "
                "values fit more individual differences (usually 4 to 32); 0 uses the features "
                "only."
            ),
        )

    PRETRAIN_READS: ClassVar[tuple[str, ...]] = (*VectorAgent.PRETRAIN_READS, "embedding")
    title = "Neural greedy"
    formula = r"f(x_a;\,w)"
    colour = "#CC79A7"
    dash = "longdash"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        self.uses_ids = params[0].embedding > 0
        super().__init__(params, spec, streams, access)
        if "vectors" in spec.capabilities and not self.uses_ids:
            self.tables = self.make_tables(tuned=False)

    @staticmethod
    def table_sizes(params: Any, spec: SimulatorSpec) -> tuple[int, ...]:
        """Count the entries of each embedding table."""
        return (spec.n_users, spec.n_items) if params.embedding else ()

    def make_networks(self) -> BatchedMLP:
        embedding, tables = self.params[0].embedding, self.table_sizes(self.params[0], self.spec)
        self.widths = (self.widths[0] + embedding * len(tables), *self.widths[1:])
        weights = initial_weights(
            self.streams, self.widths, part=1, embedding_weights=embedding * sum(tables)
        )
        return BatchedMLP(
            weights, self.widths, tables=tables, embedding=embedding, device=self.device
        )

    def scores(self, round: Round) -> FloatArray:
        return self.mean(round)

    def explain(self, round: Round) -> Explanation:
        return Explanation("greedy", self.scores(round), self.mean(round), logit=self.log_odds)

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | (frozenset({"ids"}) if params.embedding else frozenset())

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        tables = cls.table_sizes(params, spec)
        if not tables:
            return super().memory(params, spec)
        D, e = spec.n_features, params.embedding
        more = count_weights((D + 2 * e, *params.hidden, 1), tables, e) - count_weights(
            (D, *params.hidden, 1)
        )
        batch = max(
            spec.n_candidates, FULL_BATCH_CHUNK if params.training == "everything" else params.batch
        )
        # the two indices of each observation
        stored = 3 * 8 * params.buffer
        return super().memory(params, spec) + int(
            cls.WEIGHT_BYTES * more + 6 * 4 * batch * 2 * e + stored
        )
