"""Popularity: the item with the highest CTR so far."""

from __future__ import annotations

from typing import Any, Literal

from numba import njit

from bandits.agents.params import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.types import BoolArray, FloatArray, IntArray, PredrawnSteps, Round

from .base import ContextFreeAgent
from .loop import Stretch, count, play


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

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray:
        return _play((), self.stretch(steps, alive))

    def explain(self, round: Round) -> Explanation:
        return Explanation("greedy", self.scores(round), self.scores(round))


@njit(nogil=True)
def _score(
    own: Any,  # noqa: ARG001
    shown: FloatArray,
    clicks: FloatArray,
    r: int,  # noqa: ARG001
    t: int,  # noqa: ARG001
    out: FloatArray,
) -> None:
    for k in range(len(out)):
        out[k] = (clicks[k] + 1) / (shown[k] + 2)


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, count, own, stretch)
