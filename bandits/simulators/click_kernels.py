"""Compiled loop of simulators that show one product and draw one click."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import FloatArray, IntArray


@njit(cache=True, nogil=True)
def click(
    probabilities: FloatArray,
    best: IntArray,
    average: FloatArray,
    context: IntArray,
    slate: IntArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Show one item and draw its click: rewards (R, 1); value, best_value, random_value, best_reward (R,)."""
    R = context.shape[0]
    rewards = np.empty((R, 1))
    value, best_value = np.empty(R), np.empty(R)
    random_value, best_reward = np.empty(R), np.empty(R)
    for r in range(R):
        c = context[r]
        value[r] = probabilities[c, slate[r, 0]]
        best_value[r] = probabilities[c, best[c]]
        random_value[r] = average[c]
        rewards[r, 0] = 1.0 if uniforms[r, 0] < value[r] else 0.0
        best_reward[r] = 1.0 if uniforms[r, 0] < best_value[r] else 0.0
    return rewards, value, best_value, random_value, best_reward
