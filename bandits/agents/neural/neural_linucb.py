"""Neural-LinUCB."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.files import cached_arrays
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, WorldAccess, WorldSpec

from .base import Width
from .last_layer import HeadAgent, HeadParams

_BATCH, _PASSES = 256, 5


class NeuralLinUCB(HeadAgent):
    """LinUCB on a network's embedding [1]_: deep representation, shallow exploration.

    score_a = omega . z_a + alpha sqrt(z_a' A^-1 z_a), z_a = phi(x_a)

    A and b take every z as it was when it was chosen, and keep it so: they are stale by design. Here the network is
    trained through an output layer of its own; in [1]_ through omega.

    References
    ----------
    .. [1] Xu, Wen, Zhao, Gu (2022), Neural contextual bandits with deep representation and shallow exploration.
    """

    class Params(HeadParams):
        kind: Literal["neural_linucb"] = "neural_linucb"
        alpha: float = param(
            1.0, title="Exploration", symbol=r"\alpha", ge=0, le=10, typical=(0, 4), basic=True,
            help="Width of the confidence bound: how strongly doubt counts as promise. 0 never explores.",
        )  # fmt: skip
        hidden: tuple[Width, ...] = override_default(HeadParams, "hidden", (64, 32))
        pretrain: int = param(
            0, title="Pre-training", unit="interactions", ge=0, le=200_000, structural=True,
            help="Logged random interactions that the network learns from before the race. 0: it starts from nothing.",
        )  # fmt: skip

    title = "Neural-LinUCB"
    formula = r"\hat\omega^\top z_a+\alpha\sqrt{z_a^\top A^{-1}z_a},\quad z_a=\phi(x_a;\,w)"
    uncertainty = "bonus"
    colour = "#56B4E9"
    dash = "dash"

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | (frozenset({"log"}) if params.pretrain else frozenset())

    def prepare(self) -> None:
        """Train the body on a log of the row's layout, in the order in which it was logged; once for each recipe."""
        p = self.params[0]
        if not p.pretrain or self.improvements:
            return
        recipe = [p.hidden, p.optimiser, p.loss, p.heads, p.pretrain, self.column("learning_rate").tolist()]
        place = [self.access.key, self.streams.seed, *self.streams.rows]
        trained = cached_arrays("weights", json.dumps(["neural_linucb", 1, recipe, place]), self._trained)
        self.load_weights(trained)

    def _trained(self) -> dict[str, Any]:
        p = self.params[0]
        logs = {int(layout): self.access.log(int(layout), p.pretrain) for layout in np.unique(self.access.layouts)}
        x = {}
        for layout, log in logs.items():
            x[layout] = np.zeros((p.pretrain, self.spec.n_features), np.float32)
            np.put_along_axis(x[layout], log.columns, log.values.astype(np.float32), axis=1)
        batch = min(_BATCH, p.pretrain)
        for _ in range(_PASSES):
            for start in range(0, p.pretrain, batch):
                part = slice(start, min(start + batch, p.pretrain))
                rows = [int(layout) for layout in self.access.layouts]
                rewards = self.tensor(np.stack([logs[r].rewards[part] for r in rows]))
                weight = self.tensor(np.ones((len(rows), part.stop - part.start, 1)))
                items = self.index(np.stack([logs[r].items[part] for r in rows]))
                self.improve(self.tensor(np.stack([x[r][part] for r in rows])), items, rewards, weight)
        return {name: np.asarray(value) for name, value in self.weights().items()}

    def scores(self, round: Round) -> FloatArray:
        mean, variance = self.head.predict(self.encoded(round))
        return self.of_all(round, np.asarray(mean + self.alpha[:, None] * np.sqrt(variance)))

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.head.predict(self.encoded(round))
        mean, width = self.of_all(round, mean), self.of_all(round, np.sqrt(variance))
        return Explanation("bonus", self.scores(round), mean, width, self.alpha[:, None], "alpha")

    @classmethod
    def shared_memory(cls, params: Any, spec: WorldSpec, layouts: int) -> int:
        return int(params.pretrain * layouts * (4 * spec.n_features + 24 * (1 + spec.n_stored)))
