"""Find distinct feature vectors, so that identical candidates are evaluated once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from bandits.base.types import Contexts, FloatArray, IntArray, Round, SimulatorSpec

if TYPE_CHECKING:
    from torch import Tensor

# larger context tables are not searched for duplicates
_MAX_CELLS = 4_000_000


class DistinctCandidates:
    """Features of the candidates as a tensor, without duplicates.

    Duplicates are removed where the contexts are fixed, or name them themselves.
    The 50 products of the pet shop have five
    distinct feature vectors per persona, so a network computes five values instead of 50."""

    def __init__(self, spec: SimulatorSpec, device: str) -> None:
        self.spec, self.device = spec, device
        self._source: Contexts | None = None
        self._distinct: Tensor | None = None
        self._index: IntArray = np.empty((0, 0), np.int64)

    def of(self, round: Round) -> tuple[Tensor, IntArray | None]:
        """Return the distinct candidates of a round and each candidate's index.

        Returns
        -------
        x : Tensor, float32 (R, K', D)
        index : int64 (R, K), or None
            Candidate k of row r has the features ``x[r, index[r, k]]``; None if K' = K and the
            order is the same.
        """
        import torch

        if round.contexts.distinct is not None:
            contexts, index = round.contexts.distinct
            x = torch.from_numpy(contexts.dense_single(round.context)).to(self.device)
            return x, np.broadcast_to(index, (len(x), len(index)))
        if not self.spec.fixed_contexts:
            return torch.from_numpy(round.contexts.dense_single(round.context)).to(
                self.device
            ), None
        if round.contexts is not self._source:
            self._find_distinct(round.contexts)
        assert self._distinct is not None
        x = self._distinct[torch.from_numpy(round.context).to(self.device)]
        return x, self._index[round.context]

    def _find_distinct(self, contexts: Contexts) -> None:
        """Find the distinct vectors of each context, padded to the same number."""
        import torch

        dense = contexts.dense().astype(np.float32)
        C, K = dense.shape[:2]
        if dense.size > _MAX_CELLS:
            distinct, self._index = dense, np.broadcast_to(np.arange(K), (C, K))
        else:
            parts = [np.unique(x, axis=0, return_inverse=True) for x in dense]
            width = max(len(vectors) for vectors, _ in parts)
            distinct = np.stack(
                [np.concatenate([v, np.repeat(v[:1], width - len(v), axis=0)]) for v, _ in parts]
            )
            self._index = np.stack([inverse.reshape(K) for _, inverse in parts])
        self._source, self._distinct = (
            contexts,
            torch.from_numpy(np.ascontiguousarray(distinct)).to(self.device),
        )


def expand(values: Tensor, index: IntArray | None, limit: float = np.inf) -> FloatArray:
    """Expand values of distinct candidates (R, K') to all, float64 (R, K).

    NaN where they exceed ``limit``.
    """
    return expand_array(_limited(values.cpu().numpy(), limit), index)


@njit(cache=True, nogil=True)
def _limited(values: Any, limit: float) -> FloatArray:
    """Convert to double precision; absolute values above the limit become NaN."""
    R, K = values.shape
    out = np.empty((R, K))
    for r in range(R):
        for k in range(K):
            value = np.float64(values[r, k])
            out[r, k] = value if np.abs(value) <= limit else np.nan
    return out


def expand_array(values: FloatArray, index: IntArray | None) -> FloatArray:
    """Expand an array of distinct candidates (R, K') to all, (R, K)."""
    return values if index is None else np.take_along_axis(values, index, axis=1)


def slot_index(index: IntArray | None, slate: IntArray) -> IntArray:
    """Index the distinct candidate in each slot of ``slate (R, S)``, int64 (R, S)."""
    return slate if index is None else np.take_along_axis(index, slate, axis=1)
