"""Neural-LinUCB: LinUCB on the embedding of a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.files import cached_arrays, is_cached
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, WorldAccess, WorldSpec

from .last_layer import HeadAgent, HeadParams

_BATCH, _PASSES = 256, 5


class NeuralLinUCB(HeadAgent):
    """LinUCB on a network's embedding [1]_: deep representation, shallow exploration.

    score_a = omega . z_a + alpha sqrt(z_a' A^-1 z_a), z_a = phi(x_a)

    A and b accumulate every z as it was at the time of the choice and are not recomputed when the network changes, as
    published. The network is trained through an output layer of its own; in [1]_ through omega. The head can forget
    (``gamma`` [2]_, ``window``): what is discounted or left out are these z.

    References
    ----------
    .. [1] Xu, Wen, Zhao, Gu (2022), Neural contextual bandits with deep representation and shallow exploration.
    .. [2] Russac, Vernade, Cappé (2019), Weighted linear bandits for non-stationary environments, Algorithm 1.
    """

    class Params(HeadParams):
        kind: Literal["neural_linucb"] = "neural_linucb"
        alpha: float = param(
            1.0, title="Exploration bonus", symbol=r"\alpha", ge=0, le=10, typical=(0, 4), basic=True, usual=(0.1, 2),
            help="Exploration coefficient: multiplies the confidence width to give the exploration bonus. Larger "
            "values explore more (usually 0.1 to 2); 0 never explores.",
            sweep=(0.03, 4),
        )  # fmt: skip
        learning_rate: float = override_default(HeadParams, "learning_rate", 0.01)
        every: int = override_default(HeadParams, "every", 50)
        updates: int | None = override_default(HeadParams, "updates", 25)
        pretrain: int = param(
            0, title="Pre-training", unit="interactions", ge=0, le=200_000, structural=True,
            help="Number of logged random interactions that train the network before the run. Larger values start "
            "with a better embedding (usually 1,000 to 50,000); 0 starts from random weights.",
        )  # fmt: skip

    title = "Neural-LinUCB"
    formula = r"\hat\omega^\top z_a+\alpha\sqrt{z_a^\top A^{-1}z_a},\quad z_a=\phi(x_a;\,w)"
    uncertainty = "bonus"
    exploration_param = "alpha"
    colour = "#56B4E9"
    dash = "dash"

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | (frozenset({"log"}) if params.pretrain else frozenset())

    @classmethod
    def alternatives(cls, spec: WorldSpec) -> list[dict[str, Any]]:
        start = [{"pretrain": 0}] if "log" not in spec.capabilities else []
        return [*start, *super().alternatives(spec)]

    def prepare(self) -> None:
        """Train the network on logged interactions in their order, cached by content."""
        p = self.params[0]
        if p.pretrain and not self.train_steps:
            self.load_weights(cached_arrays("weights", self._recipe(), self._trained))

    def is_trained(self) -> bool:
        return is_cached("weights", self._recipe())

    def _recipe(self) -> str:
        """Return everything that the pretrained weights depend on."""
        p = self.params[0]
        recipe = [p.hidden, p.optimiser, p.loss, p.heads, p.pretrain, self.column("learning_rate").tolist()]
        place = [self.access.key, self.streams.seed, *self.streams.rows]
        return json.dumps(["neural_linucb", 1, recipe, place])

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
                items = self.index_tensor(np.stack([logs[r].items[part] for r in rows]))
                self.train_step(self.tensor(np.stack([x[r][part] for r in rows])), items, rewards, weight)
        return {name: np.asarray(value) for name, value in self.weights().items()}

    def scores(self, round: Round) -> FloatArray:
        mean, variance = self.head.predict(self.embedded_round(round))
        return self.expand(round, np.asarray(mean + self.alpha[:, None] * np.sqrt(variance)))

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.head.predict(self.embedded_round(round))
        mean, width = self.expand(round, mean), self.expand(round, np.sqrt(variance))
        return Explanation("bonus", self.scores(round), mean, width, self.alpha[:, None], "alpha")

    @classmethod
    def shared_memory(cls, params: Any, spec: WorldSpec, layouts: int) -> int:
        return int(params.pretrain * layouts * (4 * spec.n_features + 24 * (1 + spec.n_stored)))
