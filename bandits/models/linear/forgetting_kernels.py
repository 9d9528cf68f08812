"""Compiled loops of logistic models that forget (see `forgetting_logistic`)."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, FloatArray, IntArray

from .logistic_fit import History, find_entry
from .logistic_kernels import Posterior, fit_exactly


@njit(cache=True, nogil=True)
def discount(history: History, gamma: FloatArray) -> None:
    """Multiply exposures and clicks of every row by its gamma."""
    R = history.shows.shape[0]
    for r in range(R):
        for entry in range(history.used[r]):
            history.shows[r, entry] *= gamma[r]
            history.clicks[r, entry] *= gamma[r]


@njit(cache=True, nogil=True)
def keep_heaviest(history: History, bits: IntArray, most: int, least: float) -> None:
    """Keep at most the ``most`` entries of each row with the largest exposures, all of them of at least ``least``.

    ``bits`` is ``history.values`` viewed as integers.
    """
    R = history.shows.shape[0]
    for r in range(R):
        used = history.used[r]
        if used == 0:
            continue
        order = np.argsort(-history.shows[r, :used])
        kept = 0
        while kept < min(used, most) and history.shows[r, order[kept]] >= least:
            kept += 1
        if kept == used:
            continue
        chosen = np.sort(order[:kept])
        shows, clicks = history.shows[r, chosen], history.clicks[r, chosen]
        model, values, columns = history.model[r, chosen], history.values[r, chosen], history.columns[r, chosen]
        raw = bits[r, chosen]
        clear(history, r)
        for i in range(kept):
            entry = find_entry(history, r, model[i], values[i], raw[i], columns[i])
            history.shows[r, entry] = shows[i]
            history.clicks[r, entry] = clicks[i]


@njit(cache=True, nogil=True)
def clear(history: History, r: int) -> None:
    """Remove all entries of a row."""
    history.used[r] = 0
    for slot in range(history.slots.shape[1]):
        history.slots[r, slot] = -1


@njit(cache=True, nogil=True)
def collect(
    history: History,
    values: FloatArray,
    bits: IntArray,
    columns: IntArray,
    model: IntArray,
    rewards: FloatArray,
    shows: FloatArray,
    seen: BoolArray,
) -> None:
    """Make the history of a window: ``values, bits, columns (W, R, S, N)``, the others (W, R, S)."""
    W, R, S = model.shape
    for r in range(R):
        clear(history, r)
        for w in range(W):
            for s in range(S):
                if seen[w, r, s]:
                    entry = find_entry(history, r, model[w, r, s], values[w, r, s], bits[w, r, s], columns[w, r, s])
                    history.shows[r, entry] += shows[w, r, s]
                    history.clicks[r, entry] += rewards[w, r, s]


@njit(cache=True, nogil=True)
def fit_all(posterior: Posterior, history: History) -> None:
    """Fit every model of every row exactly to its history."""
    R, M, _ = posterior.theta.shape
    for r in range(R):
        for m in range(M):
            fit_exactly(posterior, history, r, m)
