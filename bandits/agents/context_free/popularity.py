"""Popularity: the item with the highest CTR so far."""

from __future__ import annotations

from typing import Literal

from bandits.agents.params import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.types import FloatArray, Round

from .base import ContextFreeAgent


class Popularity(ContextFreeAgent):
    """Shows the item with the highest CTR so far, the same to all users.

    CTR = (clicks + 1) / (exposures + 2), so that an item never shown starts at one half and is
    tried."""

    class Params(LearnerParams):
        kind: Literal["popularity"] = "popularity"

    title = "Popularity"
    keywords = "bestseller"
    formula = r"\bar r_a=\text{clicks}_a\,/\,n_a"
    colour = "#B8A500"

    def scores(self, round: Round) -> FloatArray:
        shows, clicks = self.counts(round)
        return (clicks + 1) / (shows + 2)

    def explain(self, round: Round) -> Explanation:
        return Explanation("greedy", self.scores(round), self.scores(round))
