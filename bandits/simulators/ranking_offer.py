"""The items of the ranking simulator that can be retrieved at a step, where some are launched and withdrawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, IntArray

from .launches import Launch, Stock, Withdraw

KEPT = 2  # pools that are kept: agents advance in turn, over the step of a change at different times


class Offer:
    """The items of each of L layouts that can be retrieved: before its launch, an item is in no set of candidates.

    Attributes
    ----------
    quality : float64 (L, n_items) or None
        Factors of the click probabilities; None if all are 1.
    cohorts : dict of int to list of int64
        Items of each launch, by its place among the changes: those of each layout, ascending.
    """

    def __init__(self, params: Any, streams: Streams, layouts: IntArray) -> None:
        groups = np.broadcast_to(np.int64(0), (len(layouts), params.n_items))
        own = [int(layout) for layout in layouts]
        self._stock = Stock(
            params.changes, groups, lambda at, part: streams.generator("layout", row=own[at], part=part)
        )
        self.quality: FloatArray | None = self._stock.quality
        self.cohorts = self._stock.cohorts
        self._pools: dict[int, list[IntArray]] = {}

    @classmethod
    def of(cls, params: Any, streams: Streams, layouts: IntArray) -> Offer | None:
        """Draw what is launched and withdrawn; None if nothing is."""
        return cls(params, streams, layouts) if _events(params) else None

    @staticmethod
    def memory(params: Any, layouts: int) -> int:
        """Compute the bytes of L layouts, with one copy of the vectors of a layout where the search is exhaustive."""
        if not (events := _events(params)):
            return 0
        copy = 8 * params.embedding * params.n_items if params.retrieval == "exact" else 0
        return int(layouts * params.n_items * (events + 1 + 8 + 8 * KEPT) + copy)

    def at(self, step: int) -> list[IntArray]:
        """Return the items of each layout that can be retrieved at a step, int64 (n,), ascending."""
        start = self._stock.interval(step)[0]
        if start not in self._pools:
            if len(self._pools) >= KEPT:
                del self._pools[next(iter(self._pools))]  # the oldest
            self._pools[start] = [np.flatnonzero(offered) for offered in self._stock.at(step)]
        return self._pools[start]


def _events(params: Any) -> int:
    return sum(isinstance(change, Launch | Withdraw) for change in params.changes)
