"""Store the latest observations of every row for training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bandits.base.types import FloatArray, IntArray


class ReplayBuffer:
    """Ring buffer of the latest ``capacity`` observations of every row.

    Parameters
    ----------
    rows : int
        R.
    n_features : int
        D.
    capacity : int
        Observations per row.
    copies : int
        Networks per row, M.

    Attributes
    ----------
    x : float32 (n, R, D)
    reward : float32 (n, R)
    item : int64 (n, R)
    weight : float32 (n, R, M)
        Weight of the observation in the loss of each network; 0 where nothing was observed (a slot
        that was not examined, a row that has stopped).
    count : int
        Observations added so far.
    """

    def __init__(self, rows: int, n_features: int, capacity: int, copies: int = 1) -> None:
        self.capacity, self.count = capacity, 0
        self.x = np.zeros((0, rows, n_features), np.float32)
        self.reward, self.weight = (
            np.zeros((0, rows), np.float32),
            np.zeros((0, rows, copies), np.float32),
        )
        self.item = np.zeros((0, rows), np.int64)

    @staticmethod
    def memory(n_features: int, capacity: int, copies: int = 1) -> int:
        """Compute the bytes per row of a full buffer."""
        return capacity * (4 * n_features + 12 + 4 * copies)

    @property
    def size(self) -> int:
        """Number of stored observations per row."""
        return min(self.count, self.capacity)

    def add(self, x: Any, items: IntArray, rewards: FloatArray, weight: FloatArray) -> None:
        """Store a slate.

        Parameters
        ----------
        x : float (R, S, D)
        items : int64 (R, S)
        rewards : float (R, S)
        weight : float (R, S, M)
        """
        slots = (self.count + np.arange(items.shape[1])) % self.capacity
        while slots.max() >= len(self.reward):
            self._grow()
        self.x[slots], self.reward[slots], self.item[slots] = x.swapaxes(0, 1), rewards.T, items.T
        self.weight[slots] = weight.swapaxes(0, 1)
        self.count += len(slots)

    def numbers(self) -> IntArray:
        """Return the number of each stored observation in the order of their arrival, counted from
        0, int64 (n,).
        """
        newest = self.count - 1
        return np.asarray(newest - (newest - np.arange(self.size)) % self.capacity)

    def _grow(self) -> None:
        more = min(max(256, len(self.reward)), self.capacity - len(self.reward))
        for name in ("x", "reward", "item", "weight"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((more, *old.shape[1:]), old.dtype)]))

    def drop(self, n: int) -> None:
        """Remove the oldest n observations of a buffer that has never been full."""
        assert n <= self.count <= self.capacity
        for name in ("x", "reward", "item", "weight"):
            stored = getattr(self, name)
            stored[: self.count - n] = stored[n : self.count].copy()
        self.count -= n

    def batch(self, index: IntArray) -> tuple[Any, Any, Any, Any]:
        """Return the observations at ``index (R, B)``.

        Returns
        -------
        tuple
            Features (R, B, D), items (R, B), rewards (R, B), weights (R, B, M).
        """
        rows = np.arange(index.shape[0])[:, None]
        return (
            self.x[index, rows],
            self.item[index, rows],
            self.reward[index, rows],
            self.weight[index, rows],
        )

    def row(self, r: int) -> tuple[Any, Any, Any, Any]:
        """Return row r: features (n, D), items, rewards and first weights, each (n,)."""
        n = self.size
        return self.x[:n, r], self.item[:n, r], self.reward[:n, r], self.weight[:n, r, 0]

    def random_batches(
        self, generators: Sequence[np.random.Generator], batch: int, n: int
    ) -> IntArray:
        """Draw indices (R, n, batch) with replacement, each row by its generator."""
        return np.stack([g.integers(0, self.size, (n, batch)) for g in generators])

    def shuffled_batches(
        self, generators: Sequence[np.random.Generator], batch: int, passes: int
    ) -> IntArray:
        """Draw indices (R, n, batch): whole batches of a shuffled buffer for each pass."""
        steps = self.size // batch
        order = [
            [g.permutation(self.size)[: steps * batch] for _ in range(passes)] for g in generators
        ]
        return np.array(order).reshape(len(generators), passes * steps, batch)

    def state_dict(self) -> dict[str, Any]:
        """Copy the state as NumPy arrays for `load_state_dict`."""
        n = self.size
        stored = {
            name: getattr(self, name)[:n].copy() for name in ("x", "reward", "item", "weight")
        }
        return {"count": self.count, **stored}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state of `state_dict`."""
        self.count = int(state["count"])
        for name in ("x", "reward", "item", "weight"):
            setattr(self, name, state[name].copy())
