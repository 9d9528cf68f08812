"""Compute the full-batch gradient of a network with one hidden layer.

A full-batch step passes over n observations. Written as tensor operations on all of them, each
hidden unit of each observation passes through main memory about six times. Here a block stays in
the cache from its features to its part of the gradient, and features that are 0 for all
observations of an item (the blocks of the other arms) are left out. The order of summation differs
from `mlp.BatchedMLP`: both agree up to rounding."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bandits.base.types import IntArray

BLOCK = 512  # observations
# sums in any order; NaN stays NaN
_MATH = {"reassoc", "contract", "arcp", "nsz"}


class GroupedObservations(NamedTuple):
    """Observations of one row, in G blocks of one item's observations each.

    Attributes
    ----------
    x : float32 (sum of d_g n_g,)
        The d_g nonzero features (d_g, n_g) of each block g, one block after the other.
    first, begin : int64 (G + 1,)
        Offsets of the features and of the observations of each block.
    columns : int64 (G, D)
        Columns of these features, in the first d_g places.
    width : int64 (G,)
        d_g.
    reward, weight : float32 (n,)
        By block; weights are divided by their sum.
    """

    x: Any
    first: IntArray
    begin: IntArray
    columns: IntArray
    width: IntArray
    reward: Any
    weight: Any


def group_by_item(x: Any, items: IntArray, rewards: Any, weight: Any) -> GroupedObservations:
    """Group observations into blocks of one item each.

    Parameters
    ----------
    x : float32 (n, D)
    items : int64 (n,)
    rewards, weight : float32 (n,)
    """
    order = np.argsort(items, kind="stable")
    cuts = [0, *(np.flatnonzero(np.diff(items[order])) + 1).tolist(), len(order)]
    begin, columns, width, parts = [0], [], [], []
    for start, end in itertools.pairwise(cuts):
        features = x[order[start:end]]
        used = np.flatnonzero(features.any(axis=0))
        for s in range(0, len(features), BLOCK):
            block = features[s : s + BLOCK, used]
            parts.append(block.T.ravel())
            begin.append(begin[-1] + len(block))
            width.append(len(used))
            columns.append(np.concatenate([used, np.zeros(x.shape[1] - len(used), np.int64)]))
    first = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
    share = weight[order] / max(float(weight.sum()), 1.0)
    return GroupedObservations(
        np.concatenate(parts),
        first,
        np.array(begin),
        np.stack(columns),
        np.array(width),
        np.ascontiguousarray(rewards[order]),
        share.astype(np.float32),
    )


@njit(cache=True, fastmath=_MATH)
def gradient(
    weights: Any,
    D: int,
    H: int,
    x: Any,
    first: Any,
    begin: Any,
    columns: Any,
    width: Any,
    reward: Any,
    weight: Any,
    output_scale: float,
    log_odds: bool,
    out: Any,
) -> None:
    """Compute the gradient of the mean loss for one row, f = output_scale * network.

    Parameters
    ----------
    weights, out : float32 (p,)
        In the order of `mlp.BatchedMLP`; ``out`` is overwritten.
    D, H : int
        Features and hidden units.
    x, first, begin, columns, width, reward, weight
        The fields of `GroupedObservations`.
    output_scale : float
    log_odds : bool
        Use the log loss of sigmoid(f) instead of (f - r)^2.
    """
    W, b, v = (
        weights[: H * D].reshape(H, D),
        weights[H * D : H * D + H],
        weights[H * D + H : H * D + 2 * H],
    )
    gW, gb, gv = out[: H * D].reshape(H, D), out[H * D : H * D + H], out[H * D + H : H * D + 2 * H]
    out[:] = 0
    half, zero = np.float32(0.5), np.float32(0)
    units = np.empty(H * BLOCK, np.float32)
    f, error = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    for g in range(len(width)):
        d, n, at = width[g], begin[g + 1] - begin[g], begin[g]
        used = np.empty((H, d), np.float32)
        for k in range(d):
            used[:, k] = W[:, columns[g, k]]
        X, active = x[first[g] : first[g + 1]].reshape(d, n), units[: H * n].reshape(H, n)
        # forward
        np.dot(used, X, active)
        f[:n] = weights[H * D + 2 * H]
        for h in range(H):
            a, bias, out_weight = active[h], b[h], v[h]
            for s in range(n):
                t = a[s] + bias
                # ReLU in a form that the compiler vectorises
                t = half * (t + abs(t))
                a[s] = t
                f[s] += out_weight * t
        # derivative of the loss
        for s in range(n):
            output = output_scale * f[s]
            slope = (
                1 / (1 + np.exp(-output)) - reward[at + s]
                if log_odds
                else 2 * (output - reward[at + s])
            )
            error[s] = slope * output_scale * weight[at + s]
            out[H * D + 2 * H] += error[s]
        # backward
        for h in range(H):
            a, sum_v, sum_b = active[h], zero, zero
            for s in range(n):
                sum_v += a[s] * error[s]
                t = error[s] if a[s] > zero else zero
                a[s] = t
                sum_b += t
            gv[h] += sum_v
            gb[h] += v[h] * sum_b
        np.dot(active, X.T, used)
        for k in range(d):
            gW[:, columns[g, k]] += v * used[:, k]
