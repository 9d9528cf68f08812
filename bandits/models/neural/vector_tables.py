"""Networks whose input is the vector of a user and then that of an item, from tables in single
precision.

All candidates of a round share the user, so the user's part of the first layer is computed once per
row; only the vectors of the items are gathered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from bandits.base.types import Float32Array, IntArray, Vectors

from .batch_gradient import add_bias
from .mlp import BatchedMLP, ForwardPass


class VectorTables:
    """Vectors of users and items of R rows, as given or tuned: trained with the network, each row
    its own.

    They are kept in the memory of the processor on every device.

    Parameters
    ----------
    vectors : Vectors
    n_features : int
        D: the two vectors, and features that are always 1.
    tuned : bool

    Attributes
    ----------
    current : list of float32 (L, n, d)
        The vectors in use, of users and of items, in each of L layouts; where they are tuned, L =
        R.
    changes : list of float32 (R, n, d)
        What training has added to the vectors as given; empty unless tuned.
    """

    def __init__(self, vectors: Vectors, n_features: int, *, tuned: bool = False) -> None:
        self.n_features, self._layouts = n_features, vectors.layouts
        self.current: list[Float32Array] = [
            vectors.users.astype(np.float32),
            vectors.items.astype(np.float32),
        ]
        self.changes: list[Float32Array] = []
        if tuned:
            self._given, self._given_layouts = self.current, vectors.layouts
            self.current = [table[vectors.layouts] for table in self._given]
            self.changes = [np.zeros_like(table) for table in self.current]
            self._layouts = np.arange(len(vectors.layouts))

    def pairs(self, user_ids: IntArray, item_ids: IntArray) -> Float32Array:
        """Return the network's input for users and items (R, B), float32 (R, B, D)."""
        out = np.ones((*item_ids.shape, self.n_features), np.float32)
        _gather(self.current[0], self.current[1], self._layouts, user_ids, item_ids, out)
        return out

    def forward(self, net: BatchedMLP, user_ids: IntArray, item_ids: IntArray) -> ForwardPass:
        """Evaluate networks for one user (R,) with items (R, K).

        Only the last layer's input is in ``inputs``.
        """
        import torch

        if net.flat.device.type != "cpu":
            x = self.pairs(np.repeat(user_ids[:, None], item_ids.shape[1], axis=1), item_ids)
            return net.forward(torch.from_numpy(x).to(net.flat.device))
        phi, out = torch.empty((*item_ids.shape, net.widths[-2])), torch.empty(item_ids.shape)
        (users, items), widths = self.current, np.array(net.widths)
        _forward(
            net.flat.numpy(),
            widths,
            net.n_relu,
            users,
            items,
            self._layouts,
            user_ids,
            item_ids,
            phi.numpy(),
            out.numpy(),
        )
        return ForwardPass([phi], out[..., None])

    def add(self, user_ids: IntArray, item_ids: IntArray, changes: Float32Array) -> None:
        """Add ``changes (R, B, D)`` of the input to tuned vectors.

        Those of the same user or item add up.
        """
        start = 0
        for i, ids in enumerate((user_ids, item_ids)):
            _add(
                self._given[i],
                self._given_layouts,
                self.changes[i],
                self.current[i],
                ids,
                changes,
                start,
            )
            start += self.current[i].shape[2]

    def load(self, changes: Sequence[Float32Array]) -> None:
        """Restore the changes of a saved state."""
        for i, array in enumerate(changes):
            self.changes[i][...] = array
            np.add(self._given[i][self._given_layouts], array, out=self.current[i])


@njit(cache=True, nogil=True)
def _gather(
    users: Float32Array,
    items: Float32Array,
    layouts: IntArray,
    user_ids: IntArray,
    item_ids: IntArray,
    out: Float32Array,
) -> None:
    """Copy the vectors of users and items (R, B) next to each other into ``out (R, B, D)``."""
    d = items.shape[2]
    for r in range(len(layouts)):
        for b in range(item_ids.shape[1]):
            user, item = users[layouts[r], user_ids[r, b]], items[layouts[r], item_ids[r, b]]
            for i in range(d):
                out[r, b, i], out[r, b, d + i] = user[i], item[i]


@njit(cache=True, nogil=True)
def _add(
    given: Float32Array,
    layouts: IntArray,
    changes: Float32Array,
    current: Float32Array,
    ids: IntArray,
    added: Float32Array,
    start: int,
) -> None:
    """Add the columns of ``added (R, B, D)`` from ``start`` on to the changes of the vectors ``ids
    (R, B)``.
    """
    for r in range(len(ids)):
        for b in range(ids.shape[1]):
            n = ids[r, b]
            for i in range(given.shape[2]):
                changes[r, n, i] += added[r, b, start + i]
                current[r, n, i] = given[layouts[r], n, i] + changes[r, n, i]


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _forward(
    flat: Float32Array,
    widths: IntArray,
    n_relu: int,
    users: Float32Array,
    items: Float32Array,
    layouts: IntArray,
    user_ids: IntArray,
    item_ids: IntArray,
    phi: Float32Array,
    out: Float32Array,
) -> None:
    """Evaluate one network per row; ``phi (R, K, m)`` and ``out (R, K)`` are overwritten."""
    R, K = item_ids.shape
    D, H, d, last = widths[0], widths[1], items.shape[2], len(widths) - 2
    vectors = np.empty((K, d), np.float32)
    hidden = [np.empty((K, widths[layer]), np.float32) for layer in range(1, last)]
    for r in range(R):
        table, user = items[layouts[r]], users[layouts[r], user_ids[r]]
        for k in range(K):
            vector = table[item_ids[r, k]]
            for i in range(d):
                vectors[k, i] = vector[i]
        matrix = flat[r, : D * H].reshape(H, D)
        # the part of the first layer that does not depend on the item
        shared = flat[r, D * H : (D + 1) * H].copy()
        for h in range(H):
            for i in range(d):
                shared[h] += matrix[h, i] * user[i]
            for i in range(2 * d, D):
                shared[h] += matrix[h, i]
        below = phi[r] if last == 1 else hidden[0]
        np.dot(vectors, np.ascontiguousarray(matrix[:, d : 2 * d].T), below)
        add_bias(below, shared, n_relu > 0)
        start = (D + 1) * H
        for layer in range(1, last):
            a, b = widths[layer], widths[layer + 1]
            matrix = flat[r, start : start + a * b].reshape(b, a)
            above = phi[r] if layer == last - 1 else hidden[layer]
            np.dot(below, np.ascontiguousarray(matrix.T), above)
            below = above
            add_bias(below, flat[r, start + a * b : start + (a + 1) * b], n_relu > layer)
            start += (a + 1) * b
        m = widths[-2]
        np.dot(below, flat[r, start : start + m], out[r])
        out[r] += flat[r, start + m]
