"""Compiled steps of visits, for all rows at once: what a choice earns, and where it leads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bandits.base.selection import hashed
from bandits.base.types import BoolArray, FloatArray, IntArray, KeyArray

# what a random number of a visitor's step decides
CLICK, MOOD, LEAVE = 0, 1, 2


@njit(cache=True, nogil=True)
def _uniform(key: Any, visitor: int, visited: int, what: int) -> float:
    """Return a uniform in [0, 1): a hash of row, visitor, step of the visit and use."""
    word = hashed(hashed(hashed(key, visitor), visited), what)
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def click_numbers(keys: KeyArray, visitor: IntArray, visited: IntArray) -> FloatArray:
    """Return the random numbers of the clicks, float64 (R, 1)."""
    out = np.empty((len(keys), 1))
    for r in range(len(keys)):
        out[r, 0] = _uniform(keys[r], visitor[r], visited[r], CLICK)
    return out


@njit(cache=True, nogil=True)
def users_of(keys: KeyArray, visitor: IntArray, n_users: int) -> IntArray:
    """Return the user of each row's visitor, int64 (R,)."""
    out = np.empty(len(keys), np.int64)
    for r in range(len(keys)):
        number = np.float64(hashed(keys[r], visitor[r]) >> np.uint64(11)) * 2.0**-53
        out[r] = np.int64(number * n_users)
    return out


@njit(cache=True, nogil=True)
def _after(
    key: Any,
    visitor: int,
    visited: int,
    mood: int,
    kind: int,
    clicked: bool,
    moves: FloatArray,
    leave: FloatArray,
    limit: int,
) -> tuple[int, bool]:
    """Return the next mood of a row, and whether its visit ends."""
    change = _uniform(key, visitor, visited, MOOD)
    rises = moves[0, kind] if clicked else 0.0
    falls = moves[1, kind] if clicked else moves[2, kind]
    if change < rises:
        mood = min(mood + 1, len(leave) - 1)
    elif change < rises + falls:
        mood = max(mood - 1, 0)
    leaves = _uniform(key, visitor, visited, LEAVE) < leave[mood]
    return mood, leaves or visited + 1 == limit


@njit(cache=True, nogil=True)
def responses(
    keys: KeyArray,
    state: tuple[IntArray, IntArray, IntArray, IntArray],
    personas: IntArray,
    kind: IntArray,
    uniforms: FloatArray,
    tables: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
    moves: FloatArray,
    leave: FloatArray,
    limit: int,
) -> tuple[FloatArray, BoolArray]:
    """Return what the choice of each row earns, and in which the visit ends.

    Parameters
    ----------
    keys : uint64 (R,)
    state : tuple of int64 (R,)
        Visitor, steps of the visit, mood and last clicked category.
    personas, kind : int64 (R,)
        Persona, and kind of the item that is shown.
    uniforms : float64 (R, 1)
        Random numbers of the clicks.
    tables : tuple of float64
        Click probabilities and rewards (P, L, A), the best reward and that of uniform choice (P,
        L), and Q by the steps left (H, P, M, L, A).
    moves : float64 (3, A)
        Probabilities that the mood rises and falls after a click, and falls without one.
    leave : float64 (M,)
    limit : int
        Longest visit; 0 without one.

    Returns
    -------
    float64 (6, R)
        Expected reward, that of the best item and of uniform choice, reward, reward of the best
        item, and the expected reward of the rest of the visit that is lost.
    bool (R,)
    """
    visitor, visited, mood, last = state
    clicks, rewards, best, average, q = tables
    R = len(keys)
    out, ended = np.empty((6, R)), np.empty(R, np.bool_)
    for r in range(R):
        p, c, k, u = personas[r], last[r], kind[r], uniforms[r, 0]
        values = q[limit - 1 - visited[r] if limit else 0, p, mood[r], c]
        out[0, r], out[1, r], out[2, r] = rewards[p, c, k], best[p, c], average[p, c]
        out[3, r] = 1.0 if u < rewards[p, c, k] else 0.0
        out[4, r] = 1.0 if u < best[p, c] else 0.0
        out[5, r] = values.max() - values[k]
        ended[r] = _after(
            keys[r], visitor[r], visited[r], mood[r], k, u < clicks[p, c, k], moves, leave, limit
        )[1]
    return out, ended


@njit(cache=True, nogil=True)
def move(
    keys: KeyArray,
    state: tuple[IntArray, IntArray, IntArray, IntArray],
    history: IntArray,
    start: tuple[int, int, int],
    personas: IntArray,
    kind: IntArray,
    uniforms: FloatArray,
    clicks: FloatArray,
    moves: FloatArray,
    leave: FloatArray,
    limit: int,
) -> None:
    """Advance the state of each row by one step; a visit that ends makes room for the next visitor.

    Parameters
    ----------
    history : int64 (R, 5)
        Kinds that were clicked last, the latest first.
    start : (int, int, int)
        Mood, last category and kinds that a visit starts with.

    The others are those of `responses`.
    """
    visitor, visited, mood, last = state
    for r in range(len(keys)):
        k = kind[r]
        clicked = uniforms[r, 0] < clicks[personas[r], last[r], k]
        mood[r], ended = _after(
            keys[r], visitor[r], visited[r], mood[r], k, clicked, moves, leave, limit
        )
        visited[r] += 1
        if ended:
            visitor[r] += 1
            visited[r], mood[r], last[r] = 0, start[0], start[1]
            history[r] = start[2]
        elif clicked:
            last[r] = k // 2
            history[r, 1:] = history[r, :-1].copy()
            history[r, 0] = k
