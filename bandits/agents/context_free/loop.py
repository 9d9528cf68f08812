"""The compiled loop of agents without context: a rule chooses, and what is shown is counted.

An agent calls `play` from a compiled function of its own file, which Numba stores on disk (after
editing this file, touch those that import it: see `bandits.models.linear.rank_one`). Its rule is
two compiled functions: ``score`` and ``learn``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bandits.base.selection import best_of
from bandits.base.types import BoolArray, FloatArray, IntArray, KeyArray


class Stretch(NamedTuple):
    """T predrawn steps (`PredrawnSteps`) and the counts that they change (`ContextFreeAgent`).

    Attributes
    ----------
    shown, clicks : float64 (R, K)
    exposure : float
        That a step counts as.
    row, probabilities, uniforms
        As in `PredrawnSteps`.
    alive : bool (R,)
    ties : uint64 (R,)
    start : int
    """

    shown: FloatArray
    clicks: FloatArray
    exposure: float
    row: IntArray
    probabilities: FloatArray
    uniforms: FloatArray
    alive: BoolArray
    ties: KeyArray
    start: int


# inlined where it is called: a compiled function that takes others as arguments is not stored
@njit(inline="always")
def play(score: Any, learn: Any, own: Any, stretch: Stretch) -> IntArray:
    """Advance T steps of R rows.

    Parameters
    ----------
    score : compiled function
        ``score(own, shown, clicks, r, t, out)`` writes the scores of the items in a row at step
        ``t`` of the stretch to ``out (K,)``, from the row's counts (K,); -inf where a score is
        certain not to be the best.
    learn : compiled function
        ``learn(own, shown, clicks, r, item, exposure, reward)`` changes the row's counts and what
        else the agent learns.
    own : tuple
        What both read and change.

    Returns
    -------
    int64 (T, R)
        The items shown; -1 from the step at which a row stopped.
    """
    T, R = stretch.row.shape
    K = stretch.shown.shape[1]
    out = np.full((T, R), -1)
    scores, every = np.empty(K), np.ones(K, np.bool_)
    for r in range(R):
        shown, clicks = stretch.shown[r], stretch.clicks[r]
        for t in range(T):
            if not stretch.alive[r]:
                break
            score(own, shown, clicks, r, t, scores)
            for k in range(K):
                if np.isnan(scores[k]):
                    stretch.alive[r] = False
            if not stretch.alive[r]:
                break
            item = best_of(scores, every, stretch.ties[r], stretch.start + t)
            out[t, r] = item
            clicked = stretch.uniforms[t, r] < stretch.probabilities[stretch.row[t, r], item]
            reward = 1.0 if clicked else 0.0
            learn(own, shown, clicks, r, item, stretch.exposure, reward)
    return out


@njit(nogil=True)
def count(
    own: Any,  # noqa: ARG001
    shown: FloatArray,
    clicks: FloatArray,
    r: int,  # noqa: ARG001
    item: int,
    exposure: float,
    reward: float,
) -> None:
    """Count what was shown; all that agents learn which have counts alone."""
    shown[item] += exposure
    clicks[item] += reward
