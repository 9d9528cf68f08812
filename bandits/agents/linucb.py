"""LinUCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..params import setting
from ..randomness import Streams
from ..rounds import FloatArray, Round, Setting, World
from .linear import LinearAgent, LinearParams


class LinUCB(LinearAgent):
    """Linear upper confidence bound [1]_: optimism in the face of uncertainty.

    score_a = theta_a . x_a + alpha sqrt(x_a' A_a^-1 x_a)

    References
    ----------
    .. [1] Li, Chu, Langford, Schapire (2010), A contextual-bandit approach to personalized news article
       recommendation: Algorithm 1 (per arm), Algorithm 2 (hybrid).
    """

    class Params(LinearParams):
        kind: Literal["linucb"] = "linucb"
        alpha: float = setting(
            1.0, title="Exploration", symbol=r"\alpha", ge=0, le=10, typical=(0, 4), basic=True,
            help="Width of the confidence bound: how strongly doubt counts as promise. 0 never explores.",
        )  # fmt: skip

    title = "LinUCB"

    def __init__(self, params: Sequence[Any], setting: Setting, streams: Streams, world: World) -> None:
        super().__init__(params, setting, streams, world)
        self.alpha = self.column("alpha")

    def scores(self, round: Round) -> FloatArray:
        mean, variance = self.model.predict(round)
        return np.asarray(mean + self.alpha[:, None] * np.sqrt(variance))
