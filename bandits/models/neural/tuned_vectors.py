"""Vectors of users and items that are trained with a network: the given vectors plus what training has changed."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def add_changes(x: Any, users: Any, items: Any, out: Any) -> None:
    """Add the trained changes to the features of user and item, and drop the two indices.

    Parameters
    ----------
    x : float32 (R, B, D + 2)
        Vector of the user, vector of the item, other features, index of the user, index of the item.
    users, items : float32 (R, n, d)
        Trained changes of the vectors.
    out : float32 (R, B, D)
        Overwritten.
    """
    R, B, D = out.shape
    d = users.shape[2]
    for r in range(R):
        for b in range(B):
            user, item = int(x[r, b, D]), int(x[r, b, D + 1])
            for i in range(d):
                out[r, b, i] = x[r, b, i] + users[r, user, i]
            for i in range(d):
                out[r, b, d + i] = x[r, b, d + i] + items[r, item, i]
            for i in range(2 * d, D):
                out[r, b, i] = x[r, b, i]
