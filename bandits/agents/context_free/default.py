"""Default: the first candidate, a reference that never learns."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bandits.agents.base import Agent
from bandits.agents.params import AgentParams
from bandits.base.types import FloatArray, Round


class Default(Agent):
    """Shows the first available candidate: the default picture in Artwork, always the same item where all items are
    candidates, and a random one where candidates are drawn.
    """

    class Params(AgentParams):
        kind: Literal["default"] = "default"

    title = "Default"
    formula = r"-a"
    colour = "#7F7F7F"
    dash = "dash"
    learns = False

    def scores(self, round: Round) -> FloatArray:
        return np.tile(-np.arange(round.items.shape[1], dtype=np.float64), (len(round.items), 1))
