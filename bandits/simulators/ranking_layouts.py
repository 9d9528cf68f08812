"""Vectors of users and items of the ranking simulator, and what is derived from them once per
process.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, IntArray

from . import ann_index
from .launches import Launch, Stock, Withdraw

# embeddings are uniform between plus and minus this
HALF_WIDTH = 0.1


class Layouts:
    """Vectors of users and items in each of L layouts, shared by all simulators of a process with
    the same layouts.

    Attributes
    ----------
    users, items : float64 (L, n_users, d), (L, n_items, d)
    observed_users, observed_items
        The vectors that agents observe: the same arrays where there is no noise.
    """

    _cached: ClassVar[WeakValueDictionary[tuple[Any, ...], Layouts]] = WeakValueDictionary()

    def __init__(self, p: Any, streams: Streams, layouts: IntArray) -> None:
        drawn = [self._draw(p, streams.generator("layout", row=int(layout))) for layout in layouts]
        self.users, self.items, *observed = map(_stack, zip(*drawn, strict=True))
        self.observed_users, self.observed_items = observed or (self.users, self.items)
        self._log_totals: dict[float, FloatArray] = {}

    @classmethod
    def of(cls, p: Any, streams: Streams, layouts: IntArray) -> Layouts:
        """Return the layouts of a simulator, drawn once per process."""
        key = (streams.seed, tuple(layouts.tolist()), p.n_users, p.n_items, p.embedding, p.noise)
        shared = cls._cached.get(key)
        if shared is None:
            shared = cls._cached[key] = cls(p, streams, layouts)
        return shared

    @cached_property
    def indexes(self) -> list[ann_index.IVFIndex]:
        """An approximate index of the items of each layout, built at the first access."""
        return [ann_index.IVFIndex(items) for items in self.observed_items]

    def log_totals(self, temperature: float) -> FloatArray:
        """Return the log of every user's sum of exp(utility) over the catalogue, (L, n_users).

        Computed once.
        """
        if temperature not in self._log_totals:
            self._log_totals[temperature] = np.stack(
                [
                    np.concatenate(
                        [
                            log_sum_exp(users[start : start + 64] @ items.T / temperature)
                            for start in range(0, len(users), 64)
                        ]
                    )
                    for users, items in zip(self.users, self.items, strict=True)
                ]
            )
        return self._log_totals[temperature]

    @staticmethod
    def _draw(p: Any, generator: np.random.Generator) -> tuple[FloatArray, ...]:
        users = generator.uniform(-HALF_WIDTH, HALF_WIDTH, (p.n_users, p.embedding))
        items = generator.uniform(-HALF_WIDTH, HALF_WIDTH, (p.n_items, p.embedding))
        if not p.noise:
            return users, items
        error = generator.standard_normal((p.n_users + p.n_items, p.embedding))
        error *= p.noise
        error[: p.n_users] += users
        error[p.n_users :] += items
        return users, items, error[: p.n_users], error[p.n_users :]


def _stack(arrays: tuple[FloatArray, ...]) -> FloatArray:
    """Stack arrays of one shape; a single one is not copied."""
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)


def log_sum_exp(values: FloatArray) -> FloatArray:
    """Compute log sum exp of each row of finite ``values (n, K)``, (n,), with the bits of SciPy's
    slower function.
    """
    largest = values.max(axis=1, keepdims=True)
    is_largest = values == largest
    terms = np.exp(values - largest)
    terms[is_largest] = 0
    n = is_largest.sum(axis=1)
    return np.asarray(np.log1p(terms.sum(axis=1) / n) + np.log(n) + largest[:, 0])


# pools that are kept: agents advance in turn, over the step of a change at different times
KEPT = 2


class Offer:
    """The items of each of L layouts that can be retrieved: before its launch, an item is in no set
    of candidates.

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
            params.changes,
            groups,
            lambda at, part: streams.generator("layout", row=own[at], part=part),
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
        """Compute the bytes of L layouts, with one copy of the vectors of a layout where the search
        is exhaustive.
        """
        if not (events := _events(params)):
            return 0
        copy = 8 * params.embedding * params.n_items if params.retrieval == "exact" else 0
        return int(layouts * params.n_items * (events + 1 + 8 + 8 * KEPT) + copy)

    def at(self, step: int) -> list[IntArray]:
        """Return the items of each layout that can be retrieved at a step, int64 (n,),
        ascending.
        """
        start = self._stock.interval(step)[0]
        if start not in self._pools:
            if len(self._pools) >= KEPT:
                del self._pools[next(iter(self._pools))]  # the oldest
            self._pools[start] = [np.flatnonzero(offered) for offered in self._stock.at(step)]
        return self._pools[start]


def _events(params: Any) -> int:
    return sum(isinstance(change, Launch | Withdraw) for change in params.changes)
