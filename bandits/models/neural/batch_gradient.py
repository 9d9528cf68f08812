"""Compute the gradient of a small batch's loss in compiled code.

For a batch of tens of observations, the torch operations of a training step cost several times
their arithmetic. Here a row's batch stays in the cache from its input to its gradient. Products are
summed in another order than in `mlp.BatchedMLP`: both agree up to rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from bandits.base.types import Float32Array, IntArray

from .mlp import BatchedMLP


class BatchGradient(NamedTuple):
    """Derivatives of the loss of a batch of B observations per row.

    Attributes
    ----------
    phi : float32 (R, B, m)
        The last layer's input.
    weights : float32 (R, p)
        Overwritten by the next gradient of the network.
    input : float32 (R, B, D)
    """

    phi: Float32Array
    weights: Float32Array
    input: Float32Array


def loss_gradient(
    net: BatchedMLP, x: Float32Array, rewards: Float32Array, share: Float32Array, *, log_odds: bool
) -> BatchGradient:
    """Differentiate the log loss or squared loss of networks with one output, on the CPU, without
    embedding tables.

    Parameters
    ----------
    net : BatchedMLP
    x : float32 (R, B, D)
    rewards, share : float32 (R, B)
        Observations, and the weight of each in the loss.
    log_odds : bool
        The outputs are log-odds, and the loss is the log loss; otherwise the squared loss.
    """
    # chunks of a large batch are not
    x, rewards, share = map(np.ascontiguousarray, (x, rewards, share))
    (R, B, _), widths, weights = x.shape, np.array(net.widths), net.gradient.numpy()
    phi, below = np.empty((R, B, widths[-2]), np.float32), np.empty_like(x)
    _loss_gradient(
        net.flat.numpy(), widths, net.n_relu, x, rewards, share, log_odds, phi, weights, below
    )
    return BatchGradient(phi, weights, below)


@njit(cache=True, nogil=True)
def add_bias(out: Float32Array, bias: Float32Array, relu: bool) -> None:
    """Add the bias to the outputs of a layer, and apply the ReLU; NaN stays NaN."""
    for b in range(len(out)):
        units = out[b]
        if relu:
            for h in range(len(bias)):
                unit = units[h] + bias[h]
                units[h] = np.float32(0) if unit < 0 else unit
        else:
            for h in range(len(bias)):
                units[h] += bias[h]


@njit(cache=True, nogil=True)
def _loss_gradient(
    flat: Float32Array,
    widths: IntArray,
    n_relu: int,
    x: Float32Array,
    rewards: Float32Array,
    share: Float32Array,
    log_odds: bool,
    phi: Float32Array,
    gradient: Float32Array,
    below: Float32Array,
) -> None:
    """Overwrite ``phi``, ``gradient`` and ``below`` of `BatchGradient`."""
    (R, B, _), last = x.shape, len(widths) - 2
    outputs = [np.empty((B, width), np.float32) for width in widths[1:]]
    deltas = [np.empty((B, width), np.float32) for width in widths[1:]]
    for r in range(R):
        start = 0
        for layer in range(last + 1):
            a, b = widths[layer], widths[layer + 1]
            h = x[r] if layer == 0 else outputs[layer - 1]
            np.dot(h, flat[r, start : start + a * b].reshape(b, a).T, outputs[layer])
            add_bias(outputs[layer], flat[r, start + a * b : start + (a + 1) * b], layer < n_relu)
            start += (a + 1) * b
        phi[r] = outputs[last - 1]
        for i in range(B):
            out, reward = outputs[last][i, 0], rewards[r, i]
            error = 1 / (1 + np.exp(-out)) - reward if log_odds else 2 * (out - reward)
            deltas[last][i, 0] = error * share[r, i]
        for layer in range(last, -1, -1):
            a, b = widths[layer], widths[layer + 1]
            start -= (a + 1) * b
            h = x[r] if layer == 0 else outputs[layer - 1]
            delta = deltas[layer]
            np.dot(delta.T, h, gradient[r, start : start + a * b].reshape(b, a))
            bias = gradient[r, start + a * b : start + (a + 1) * b]
            bias[:] = 0
            for i in range(B):
                for unit in range(b):
                    bias[unit] += delta[i, unit]
            derivative = below[r] if layer == 0 else deltas[layer - 1]
            np.dot(delta, flat[r, start : start + a * b].reshape(b, a), derivative)
            if 0 < layer <= n_relu:
                for i in range(B):
                    for unit in range(a):
                        if h[i, unit] <= 0:
                            derivative[i, unit] = 0
