"""What a network is shown and what it remembers: candidates without their doubles, and the buffer of past choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bandits.base.types import Contexts, FloatArray, IntArray, Round, WorldSpec

if TYPE_CHECKING:
    from torch import Tensor

_CELLS = 4_000_000  # tables larger than this are not searched for doubles


class Candidates:
    """Features of the candidates as a tensor, identical ones once where the contexts stay the same.

    The pet shop's 50 products have five feature vectors per persona: a network is asked for five values, not 50.
    """

    def __init__(self, spec: WorldSpec, device: str) -> None:
        self.spec, self.device = spec, device
        self._source: Contexts | None = None
        self._distinct: Tensor | None = None
        self._which: IntArray = np.empty((0, 0), np.int64)
        self._rows: IntArray = np.empty(0, np.int64)

    def of(self, round: Round) -> tuple[Tensor, IntArray | None]:
        """Distinct vectors, float32 (R, K', D), and which of them each candidate has, int64 (R, K); None: its own."""
        import torch

        if not self.spec.fixed_contexts:
            return torch.from_numpy(round.features.astype(np.float32)).to(self.device), None
        if round.contexts is not self._source:
            self._search(round.contexts)
        assert self._distinct is not None
        x = self._distinct[torch.from_numpy(round.context).to(self.device)]
        return x, self._which[round.context]

    def _search(self, contexts: Contexts) -> None:
        """Find each context's distinct vectors; padded, so that all contexts have equally many."""
        import torch

        dense = contexts.dense().astype(np.float32)
        C, K = dense.shape[:2]
        if dense.size > _CELLS:
            found, self._which = dense, np.broadcast_to(np.arange(K), (C, K))
        else:
            parts = [np.unique(x, axis=0, return_inverse=True) for x in dense]
            width = max(len(vectors) for vectors, _ in parts)
            found = np.stack([np.concatenate([v, np.repeat(v[:1], width - len(v), axis=0)]) for v, _ in parts])
            self._which = np.stack([which.reshape(K) for _, which in parts])
        self._source, self._distinct = contexts, torch.from_numpy(np.ascontiguousarray(found)).to(self.device)


def spread(values: Tensor, which: IntArray | None) -> FloatArray:
    """Values of distinct candidates (R, K') as those of all, float64 (R, K)."""
    array: FloatArray = values.cpu().double().numpy()
    return of_all(array, which)


def of_all(values: FloatArray, which: IntArray | None) -> FloatArray:
    """The same for an array (R, K')."""
    return values if which is None else np.take_along_axis(values, which, axis=1)


def places(which: IntArray | None, slate: IntArray) -> IntArray:
    """Which distinct candidate each slot of the slate shows, int64 (R, S)."""
    return slate if which is None else np.take_along_axis(which, slate, axis=1)


class ReplayBuffer:
    """The last ``capacity`` choices of every row, in the order in which they came; a ring once it is full.

    Attributes
    ----------
    x : float32 (n, R, D)
    reward : float32 (n, R)
    item : int64 (n, R)
    weight : float32 (n, R, M)
        What it counts for each of a row's M networks: 0 where nothing was observed (a slot that was not looked at, a
        row that has stopped).
    count : int
        Choices so far.
    """

    def __init__(self, rows: int, n_features: int, capacity: int, copies: int = 1) -> None:
        self.capacity, self.count = capacity, 0
        self.x = np.zeros((0, rows, n_features), np.float32)
        self.reward, self.weight = np.zeros((0, rows), np.float32), np.zeros((0, rows, copies), np.float32)
        self.item = np.zeros((0, rows), np.int64)

    @staticmethod
    def memory(n_features: int, capacity: int, copies: int = 1) -> int:
        """Bytes per row, by arithmetic."""
        return capacity * (4 * n_features + 12 + 4 * copies)

    @property
    def size(self) -> int:
        """Choices that are remembered."""
        return min(self.count, self.capacity)

    def add(self, x: Any, items: IntArray, rewards: FloatArray, weight: FloatArray) -> None:
        """Remember a slate: features (R, S, D), items and rewards (R, S), weight (R, S, M)."""
        for s in range(items.shape[1]):
            at = self.count % self.capacity
            if at == len(self.reward):
                self._grow()
            self.x[at], self.reward[at], self.item[at] = x[:, s], rewards[:, s], items[:, s]
            self.weight[at] = weight[:, s]
            self.count += 1

    def _grow(self) -> None:
        more = min(max(256, len(self.reward)), self.capacity - len(self.reward))
        for name in ("x", "reward", "item", "weight"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), old.dtype)]))

    def drop(self, n: int) -> None:
        """Forget the first n choices, of a memory that has never been full."""
        assert n <= self.count <= self.capacity
        for name in ("x", "reward", "item", "weight"):
            kept = getattr(self, name)
            kept[: self.count - n] = kept[n : self.count].copy()
        self.count -= n

    def batch(self, index: IntArray) -> tuple[Any, Any, Any, Any]:
        """Features (R, B, D), items and rewards (R, B) and weights (R, B, M) of ``index (R, B)``."""
        rows = np.arange(index.shape[0])[:, None]
        return self.x[index, rows], self.item[index, rows], self.reward[index, rows], self.weight[index, rows]

    def state_dict(self) -> dict[str, Any]:
        """NumPy arrays from which `load_state_dict` goes on."""
        n = self.size
        kept = {name: getattr(self, name)[:n].copy() for name in ("x", "reward", "item", "weight")}
        return {"count": self.count, **kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put a saved state back."""
        self.count = int(state["count"])
        for name in ("x", "reward", "item", "weight"):
            setattr(self, name, state[name].copy())
