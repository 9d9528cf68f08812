"""Static MLP: a network trained offline on logged data, the bandits' baseline."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.base import Agent
from bandits.agents.facts import Representation
from bandits.agents.params import AgentParams
from bandits.base.explanation import Explanation
from bandits.base.files import cached_arrays, is_cached
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import best_of_tables
from bandits.base.types import (
    BoolArray,
    FloatArray,
    IntArray,
    OfflineTraining,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.neural.offline_training import (
    click_logits,
    fit_click_model,
    n_held_out,
    perfect_loss,
)

from .params import Width, hidden_param

# pairs of user and item scored at once
_MAX_PAIRS = 100_000
# of a training, kept with its weights
RECORD = ("validation_loss", "train", "validation", "perfect", "seconds")


class StaticMLP(Agent):
    """A neural network trained once on logged random interactions, then fixed.

    The input is the embeddings of user and product, or the features of the candidate in simulators
    without identities. There is one network per layout; its weights and losses are cached by the
    content of the training."""

    class Params(AgentParams):
        kind: Literal["static_mlp"] = "static_mlp"
        interactions: int = param(
            200_000,
            title="Logged interactions",
            ge=1000,
            le=2_000_000,
            structural=True,
            basic=True,
            help=(
                "Random interactions in the log that it is trained on before the run. Larger "
                "logs give better predictions and take longer (usually 10,000 to 500,000)."
            ),
        )
        epochs: int = param(
            10,
            title="Epochs",
            ge=1,
            le=100,
            structural=True,
            basic=True,
            help=(
                "Passes through the log. More epochs fit the log more closely and may overfit "
                "(usually 1 to 30)."
            ),
        )
        embedding: int = param(
            32,
            title="Embedding width",
            ge=1,
            le=256,
            structural=True,
            help=(
                "Width of the learned embeddings of users and products, in simulators with "
                "identities. Larger values fit more individual differences (usually 8 to 64)."
            ),
        )
        hidden: tuple[Width, ...] = hidden_param((64, 32))
        learning_rate: float = param(
            1e-3,
            title="Learning rate",
            symbol=r"\eta",
            gt=0,
            le=1,
            structural=True,
            log=True,
            help=(
                "Step size of Adam. Larger values learn faster but may diverge (usually 0.0001 "
                "to 0.01)."
            ),
        )
        batch: int = param(
            512,
            title="Batch size",
            ge=1,
            le=100_000,
            structural=True,
            help=(
                "Interactions per step of Adam. Larger batches have less noisy gradients and "
                "make fewer steps (usually 128 to 2,048)."
            ),
        )

    title = "Static MLP"
    formula = r"\mathrm{MLP}\big([\,e_\mathrm{user},\ e_a\,]\big)"
    colour = "#CC79A7"
    learns = False
    offered_for = frozenset({"arm_features"})
    # it is trained on the log loss of clicks
    needs = frozenset({"log", "binary"})

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self._networks: dict[int, dict[str, Any]] | None = None
        # (L, n_users, n_items): all scores, computed in advance
        self._tables = np.empty((0, 0, 0))
        self._layouts, self._layout_of = np.unique(access.layouts, return_inverse=True)
        self.validation_loss = float("nan")

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "network"

    @classmethod
    def generalises(cls, params: Any) -> bool:  # noqa: ARG003
        return True

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{"interactions": 1000, "epochs": 1, "embedding": 2, "hidden": (4,)}]

    def prepare(self) -> None:
        """Train one network per layout, or read it from the cache."""
        if self._networks is not None:
            return
        networks = {int(layout): self._trained(int(layout)) for layout in self._layouts}
        records = [{name: network.pop(name) for name in RECORD} for network in networks.values()]
        self.validation_loss = float(np.mean([record["validation_loss"] for record in records]))
        curves = {
            name: np.stack([r[name] for r in records])
            for name in ("train", "validation", "perfect")
        }
        n, seconds = self.params[0].interactions, sum(float(r["seconds"]) for r in records)
        losses = curves["train"], curves["validation"], curves["perfect"]
        self.offline_training = OfflineTraining(n, seconds, n_held_out(n), *losses)
        if self.spec.n_users:
            self._tables = np.stack([_all_scores(n) for n in networks.values()])
        self._networks = networks

    def is_trained(self) -> bool:
        return all(is_cached("weights", self._recipe(int(layout))) for layout in self._layouts)

    def scores(self, round: Round) -> FloatArray:
        self.prepare()
        assert self._networks is not None
        if self.spec.n_users:
            return self._tables[self._layout_of[:, None], round.users[:, None], round.items]
        features, scores = round.features.astype(np.float32), np.empty(round.items.shape)
        for i, network in enumerate(self._networks.values()):
            rows = self._layout_of == i
            scores[rows] = click_logits(network, features[rows])
        return scores

    def explain(self, round: Round) -> Explanation:
        return Explanation("greedy", self.scores(round), self.scores(round), logit=True)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:  # noqa: ARG002
        self.prepare()
        if not self.spec.n_users or np.isnan(self._tables).any():
            return None
        tables = self._tables.reshape(-1, self._tables.shape[2])
        index = self._layout_of * self._tables.shape[1] + steps.users
        return np.asarray(best_of_tables(tables, index, self.streams.ties, steps.start))

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        inputs = 2 * params.embedding if spec.n_users else spec.n_features
        return int(16 * spec.n_candidates * (inputs + sum(params.hidden)))

    @classmethod
    def shared_memory(cls, params: Any, spec: SimulatorSpec, layouts: int) -> int:
        log = params.interactions * (3 + 3 * spec.n_stored) * 16
        # with gradient and the two moments of Adam
        embeddings = 16 * params.embedding * (spec.n_users + spec.n_items) if spec.n_users else 0
        scores = 16 * spec.n_users * spec.n_items
        chunk = 8 * _MAX_PAIRS * (2 * params.embedding + max(params.hidden))
        # the layouts are trained in sequence
        return int(log + chunk + layouts * (embeddings + scores))

    def _recipe(self, layout: int) -> str:
        """Return everything that the weights of a layout depend on."""
        recipe = self.params[0].model_dump(exclude={"kind", "label", "guards"})
        return json.dumps(["static_mlp", 3, recipe, self.access.key, layout], sort_keys=True)

    def _trained(self, layout: int) -> dict[str, Any]:
        """Return the weights of a layout with the record of its training, from the cache or by
        training once.
        """
        p, s = self.params[0], self.spec

        def fit() -> dict[str, Any]:
            began, log = time.perf_counter(), self.access.log(layout, p.interactions)
            seed = int(self.streams.generator("log", row=layout, part=1).integers(2**31))
            fitted = fit_click_model(
                log,
                n_features=s.n_features,
                n_users=s.n_users,
                n_items=s.n_items,
                embedding=p.embedding,
                hidden=p.hidden,
                learning_rate=p.learning_rate,
                batch=p.batch,
                epochs=p.epochs,
                seed=seed,
            )
            return fitted.weights | {
                "validation_loss": np.array(fitted.validation_loss),
                "train": fitted.train_curve,
                "validation": fitted.validation_curve,
                "perfect": np.array(perfect_loss(log, n_held_out(p.interactions))),
                "seconds": np.array(time.perf_counter() - began),
            }

        return cached_arrays("weights", self._recipe(layout), fit)


def _all_scores(weights: dict[str, Any]) -> FloatArray:
    """Compute the logits of all pairs in chunks, float64 (n_users, n_items)."""
    user, item = weights["user"], weights["item"]
    out = np.empty((len(user), len(item)))
    step = max(1, _MAX_PAIRS // len(item))
    for start in range(0, len(user), step):
        rows = user[start : start + step]
        pairs = np.concatenate(
            [
                np.repeat(rows[:, None], len(item), axis=1),
                np.broadcast_to(item, (len(rows), *item.shape)),
            ],
            axis=2,
        )
        out[start : start + step] = click_logits(weights, pairs)
    return out
