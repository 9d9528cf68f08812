"""The first of two stages: the items whose vectors have the largest inner product with a user's.

`Lists` is an approximate index, `everything` the exact search that it is compared with; both hand out more than is
asked for, in no order, and `slates.nearest` keeps the right ones. faiss is imported on first use: worlds that retrieve
nothing never pay for it.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base import files
from bandits.base.types import FloatArray, IntArray

FEWEST = 16  # items that an index can be trained on
SPARE = 2  # times as many as are asked for are weighed again with their true vectors
SLACK = 16  # items that exact search hands out beyond those asked for
TOGETHER = 16  # users in one call: from 20 on, faiss rounds the distances to the lists differently
KEPT = 50_000  # items from which on an index is kept from run to run: building takes a second or more


def everything(items: FloatArray, users: FloatArray, k: int) -> IntArray:
    """Exact search: the k best of ``items (n, d)`` for each of ``users (R, d)`` and a few more, int64 (R, M).

    A few more, because it sums in another order than whoever weighs them again.
    """
    n = len(items)
    m = min(n, k + SLACK)
    if m == n:
        return np.tile(np.arange(n), (len(users), 1))
    with threadpool_limits(1):
        return np.stack([np.argpartition(items @ -user, m - 1)[:m] for user in users])


class Lists:
    """Approximate: an inverted file of about sqrt(n) lists [1]_ of vectors in 4 bits per number [2]_ (faiss).

    A user's inner product is taken with the middle of every list, and the codes in the ``breadth`` best lists are
    scanned; the best of these are weighed again. So a search costs about sqrt(n) (1 + breadth), and what it misses
    is in the other lists.

    Parameters
    ----------
    items : float64 (n, d)

    References
    ----------
    .. [1] Jégou, Douze, Schmid (2011), Product quantization for nearest neighbor search.
    .. [2] André, Kermarrec, Le Scouarnec (2015), Cache locality is not enough: high-performance nearest neighbor search
       with product quantization fast scan.
    """

    def __init__(self, items: FloatArray) -> None:
        self.items, seen = items, np.ascontiguousarray(items, np.float32)
        if len(items) < KEPT:
            stored = built(seen)
        else:
            stored = files.cached_arrays("indexes", name(seen), lambda: {"index": built(seen)})["index"]
        self._index = _faiss().deserialize_index(stored)

    def search(self, users: FloatArray, k: int, breadth: int) -> IntArray:
        """At least k different items for each of ``users (R, d)``, int64 (R, M), filled up with -1.

        Where the ``breadth`` best lists hold fewer than k, twice as many are scanned, and so on; where nearly all
        items are asked for, everything is weighed: codes of no worth at all are never handed out.
        """
        queries, m = np.ascontiguousarray(users, np.float32), min(len(self.items), SPARE * k + SLACK)
        parts = [self._scan(queries[i : i + TOGETHER], m, breadth) for i in range(0, len(queries), TOGETHER)]
        found = np.concatenate(parts)
        while len(short := np.flatnonzero((found >= 0).sum(axis=1) < k)):
            further, breadth = breadth < self._index.nlist, 2 * breadth
            for row in short:
                one = slice(row, row + 1)
                more = self._scan(queries[one], m, breadth) if further else everything(self.items, users[one], k)
                found[row], found[row, : more.shape[1]] = -1, more[0]
        return found

    def scanned(self, users: FloatArray, breadth: int) -> IntArray:
        """How many items lie in the ``breadth`` best lists of each of ``users (R, d)``, int64 (R,)."""
        n_lists = self._index.nlist
        sizes = np.array([self._index.invlists.list_size(i) for i in range(n_lists)])
        queries = np.ascontiguousarray(users, np.float32)
        best: IntArray = self._index.quantizer.search(queries, min(breadth, n_lists))[1]
        return np.asarray(sizes[best].sum(axis=1))

    @property
    def bytes(self) -> int:
        """What it holds, written down."""
        return len(_faiss().serialize_index(self._index))

    def _scan(self, queries: Any, m: int, breadth: int) -> IntArray:
        how = _faiss().SearchParametersIVF(nprobe=min(breadth, self._index.nlist))
        found: IntArray = self._index.search(queries, m, params=how)[1]
        return found


def lists(n: int) -> int:
    """How many lists an index of n items has."""
    return round(math.sqrt(n))


def memory(n: int, d: int) -> int:
    """Bytes of an index of n items in d dimensions: codes in blocks of 32, identities, and the middles of the lists."""
    code = (d + 1) // 2
    return (n + 31 * lists(n)) * code + 8 * n + 4 * lists(n) * d + 64 * d


def building(n: int, d: int) -> int:
    """Bytes that are needed for a moment while it is built: vectors in float32, and the index as it is written."""
    return 8 * n * d + 3 * memory(n, d)


def built(items: Any) -> Any:
    """An index of ``items float32 (n, d)`` as bytes, uint8: the same bytes for the same items, on one thread."""
    faiss = _faiss()
    n, d = items.shape
    index = faiss.index_factory(d, f"IVF{lists(n)},PQ{d}x4fs", faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1  # a small catalogue is no mistake
    with threadpool_limits(1):
        index.train(items)
        index.add(items)
    return faiss.serialize_index(index)


def name(items: Any) -> str:
    """What the bytes of an index follow from."""
    return f"{_faiss().__version__}|{items.shape}|{hashlib.sha256(items).hexdigest()}"


def _faiss() -> Any:
    """faiss, on one thread: each worker has one."""
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss
