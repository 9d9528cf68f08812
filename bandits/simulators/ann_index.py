"""Retrieve the items whose vectors have the largest inner product with a user's: the first of two
stages.

`IVFIndex` is an approximate index, `exact_search` the exact search that it is compared with. Both
return more candidates than requested, in no order; `ranking_kernels.nearest` selects the best.
faiss is imported on first use."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base import files
from bandits.base.extras import require
from bandits.base.types import FloatArray, IntArray

# items that an index can be trained on
MIN_ITEMS = 16
# the index returns so many times k candidates, to be scored again with their full vectors
OVERSAMPLING = 2
# candidates returned beyond that: rounding may reorder items of nearly equal score
MARGIN = 16
# users per call: from 20 on, faiss rounds the distances to the centroids differently
QUERY_BATCH = 16
# items from which on an index is cached on disk: building takes a second or more
CACHED_FROM = 50_000


def exact_search(items: FloatArray, users: FloatArray, k: int) -> IntArray:
    """Return the k best of ``items (n, d)`` for each of ``users (R, d)`` and `MARGIN` more, int64
    (R, M).
    """
    n = len(items)
    m = min(n, k + MARGIN)
    if m == n:
        return np.tile(np.arange(n), (len(users), 1))
    with threadpool_limits(1):
        return np.stack([np.argpartition(items @ -user, m - 1)[:m] for user in users])


class IVFIndex:
    """Inverted file of about sqrt(n) lists [1]_ of vectors coded in 4 bits per number [2]_ (faiss).

    A query compares the user's vector with the centroid of every list and scans the codes in the
    ``breadth`` best lists; the best candidates are scored again with their full vectors. A search
    costs about sqrt(n) (1 + breadth); items in the other lists are missed.

    Parameters
    ----------
    items : float64 (n, d)

    References
    ----------
    .. [1] Jégou, Douze, Schmid (2011), Product quantization for nearest neighbor search.
    .. [2] André, Kermarrec, Le Scouarnec (2015), Cache locality is not enough: high-performance
       nearest neighbor search with product quantization fast scan.
    """

    def __init__(self, items: FloatArray) -> None:
        self.items, vectors = items, np.ascontiguousarray(items, np.float32)
        if len(items) < CACHED_FROM:
            data = build_index(vectors)
        else:
            key = cache_key(vectors)
            data = files.cached_arrays("indexes", key, lambda: {"index": build_index(vectors)})[
                "index"
            ]
        self._index = _faiss().deserialize_index(data)

    def search(self, users: FloatArray, k: int, breadth: int) -> IntArray:
        """Return at least k different items for each of ``users (R, d)``, int64 (R, M), padded with
        -1.

        Where the ``breadth`` best lists hold fewer than k items, twice as many are scanned, and so
        on up to all lists; after that the search is exact, because the index never returns vectors
        whose codes have no finite score."""
        queries, m = (
            np.ascontiguousarray(users, np.float32),
            min(len(self.items), OVERSAMPLING * k + MARGIN),
        )
        parts = [
            self._scan(queries[i : i + QUERY_BATCH], m, breadth)
            for i in range(0, len(queries), QUERY_BATCH)
        ]
        candidates = np.concatenate(parts)
        while len(short := np.flatnonzero((candidates >= 0).sum(axis=1) < k)):
            unscanned, breadth = breadth < self._index.nlist, 2 * breadth
            for row in short:
                one = slice(row, row + 1)
                more = (
                    self._scan(queries[one], m, breadth)
                    if unscanned
                    else exact_search(self.items, users[one], k)
                )
                candidates[row], candidates[row, : more.shape[1]] = -1, more[0]
        return candidates

    def scanned(self, users: FloatArray, breadth: int) -> IntArray:
        """Count the items in the ``breadth`` best lists of each of ``users (R, d)``, int64 (R,)."""
        lists = self._index.nlist
        sizes = np.array([self._index.invlists.list_size(i) for i in range(lists)])
        queries = np.ascontiguousarray(users, np.float32)
        best: IntArray = self._index.quantizer.search(queries, min(breadth, lists))[1]
        return np.asarray(sizes[best].sum(axis=1))

    @property
    def bytes(self) -> int:
        """Size of the serialised index."""
        return len(_faiss().serialize_index(self._index))

    def _scan(self, queries: Any, m: int, breadth: int) -> IntArray:
        search_params = _faiss().SearchParametersIVF(nprobe=min(breadth, self._index.nlist))
        candidates: IntArray = self._index.search(queries, m, params=search_params)[1]
        return candidates


def n_lists(n: int) -> int:
    """Return the number of lists of an index of n items."""
    return round(math.sqrt(n))


def index_memory(n: int, d: int) -> int:
    """Return the bytes of an index of n items in d dimensions: codes in blocks of 32, identities
    and centroids.
    """
    code = (d + 1) // 2
    return (n + 31 * n_lists(n)) * code + 8 * n + 4 * n_lists(n) * d + 64 * d


def build_memory(n: int, d: int) -> int:
    """Return the temporary bytes of building an index: vectors in float32, and the serialised
    index.
    """
    return 8 * n * d + 3 * index_memory(n, d)


def build_index(items: Any) -> Any:
    """Build and serialise an index of ``items float32 (n, d)``, uint8: deterministic, on one
    thread.
    """
    faiss = _faiss()
    n, d = items.shape
    index = faiss.index_factory(d, f"IVF{n_lists(n)},PQ{d}x4fs", faiss.METRIC_INNER_PRODUCT)
    # no warning for small catalogues
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1
    with threadpool_limits(1):
        index.train(items)
        index.add(items)
    return faiss.serialize_index(index)


def cache_key(items: Any) -> str:
    """Return a text that names everything the bytes of an index depend on."""
    return f"{_faiss().__version__}|{items.shape}|{hashlib.sha256(items).hexdigest()}"


def _faiss() -> Any:
    """Import faiss and limit it to one thread."""
    require("faiss")
    import faiss

    faiss.omp_set_num_threads(1)
    return faiss
