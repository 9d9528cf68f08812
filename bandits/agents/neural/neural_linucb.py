"""Neural-LinUCB: LinUCB on the embedding of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.model_params import bonus_param
from bandits.base.explanation import Explanation
from bandits.base.params import override_default
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, SimulatorAccess, SimulatorSpec

from .last_layer import HeadAgent, HeadParams
from .warm_start import pretrain_param


class NeuralLinUCB(HeadAgent):
    """LinUCB on a network's embedding [1]_: deep representation, shallow exploration.

    score_a = omega . z_a + alpha sqrt(z_a' A^-1 z_a), z_a = phi(x_a)

    A and b accumulate every z as it was at the time of the choice and are not recomputed when the
    network changes, as published. The network is trained through an output layer of its own; in
    [1]_ through omega. The head can forget (``gamma`` [2]_, ``window``): what is discounted or left
    out are these z.

    References
    ----------
    .. [1] Xu, Wen, Zhao, Gu (2022), Neural contextual bandits with deep representation and shallow
           exploration.
    .. [2] Russac, Vernade, Cappé (2019), Weighted linear bandits for non-stationary environments,
           Algorithm 1.
    """

    class Params(HeadParams):
        kind: Literal["neural_linucb"] = "neural_linucb"
        alpha: float = bonus_param(1.0)
        learning_rate: float = override_default(HeadParams, "learning_rate", 0.01)
        every: int = override_default(HeadParams, "every", 50)
        updates: int | None = override_default(HeadParams, "updates", 25)
        pretrain: int = pretrain_param(later=False)

    title = "Neural-LinUCB"
    formula = r"\hat\theta^\top z_a+\alpha\sqrt{z_a^\top A^{-1}z_a},\quad z_a=\phi(x_a;\,w)"
    uncertainty = "bonus"
    exploration_param = "alpha"
    colour = "#56B4E9"
    dash = "dash"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    def scores(self, round: Round) -> FloatArray:
        mean, variance = self.head.predict(self.embedded_round(round))
        return self.expand(round, np.asarray(mean + self.alpha[:, None] * np.sqrt(variance)))

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.head.predict(self.embedded_round(round))
        mean, width = self.expand(round, mean), self.expand(round, np.sqrt(variance))
        return Explanation("bonus", self.scores(round), mean, width, self.alpha[:, None], "alpha")
