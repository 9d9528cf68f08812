"""A network without exploration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, WorldAccess, WorldSpec
from bandits.models.neural import mlp
from bandits.models.neural.mlp import BatchedMLP

from .base import WHOLE, NeuralAgent, NeuralParams


class NeuralGreedy(NeuralAgent):
    """Shows what a network, trained on what was shown before, believes to be best. It never doubts.

    score_a = f(x_a), or f(x_a, e_user, e_a) with embeddings of users and items that are learned too
    """

    class Params(NeuralParams):
        kind: Literal["neural_greedy"] = "neural_greedy"
        embedding: int = param(
            0, title="Embedding", ge=0, le=256, structural=True,
            help="Numbers that it learns about every user and every item, beside the features. 0: none.",
        )  # fmt: skip

    title = "Neural greedy"
    formula = r"f(x_a;\,w)"
    colour = "#CC79A7"
    dash = "dot"

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        self.tables = self.entries(params[0], spec)
        self.identified = bool(self.tables)
        super().__init__(params, spec, streams, access)

    @staticmethod
    def entries(params: Any, spec: WorldSpec) -> tuple[int, ...]:
        """Entries of the embedding tables."""
        return (spec.n_users, spec.n_items) if params.embedding else ()

    def make_networks(self) -> BatchedMLP:
        embedding, tables = self.params[0].embedding, self.tables
        self.widths = (self.widths[0] + embedding * len(tables), *self.widths[1:])
        first = mlp.initial(self.streams, self.widths, part=1, entries=embedding * sum(tables))
        return BatchedMLP(first, self.widths, tables=tables, embedding=embedding, device=self.device)

    def scores(self, round: Round) -> FloatArray:
        return self.mean(round)

    def explain(self, round: Round) -> Explanation:
        return Explanation("greedy", self.scores(round), self.mean(round), logit=self.log_odds)

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | (frozenset({"ids"}) if params.embedding else frozenset())

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        tables = cls.entries(params, spec)
        if not tables:
            return super().memory(params, spec)
        D, e = spec.n_features, params.embedding
        more = mlp.size((D + 2 * e, *params.hidden, 1), tables, e) - mlp.size((D, *params.hidden, 1))
        at_once = max(spec.n_candidates, WHOLE if params.training == "everything" else params.batch)
        remembered = 3 * 8 * params.buffer  # the two numbers of each observation
        return super().memory(params, spec) + int(cls.WEIGHT_BYTES * more + 6 * 4 * at_once * 2 * e + remembered)
