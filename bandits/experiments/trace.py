"""Every step of a run."""

from __future__ import annotations

from typing import NamedTuple

from bandits.base.types import BoolArray, FloatArray, IntArray


class Trace(NamedTuple):
    """T consecutive steps of R rows. Values of a row that has stopped are NaN.

    Attributes
    ----------
    start : int
        Steps done before the first of these.
    items : int64 (T, R, S)
        Items shown.
    segments : int64 (T, R)
        Segment of the user.
    rewards, best_rewards : float64 (T, R)
        Reward, and that of the optimal slate under the same random numbers.
    value, best_value, random_value : float64 (T, R)
        Expected reward of the shown slate, of the optimal one, and of a uniformly random choice.
    alive : bool (R,)
        Rows still running at the end.
    fell_back : bool (T, R), optional
        Steps at which a fallback decided; None for an agent without one.
    counted : bool (T, R), optional
        Steps whose reward is known, in a simulator that replays a log; None elsewhere: all.
    """

    start: int
    items: IntArray
    segments: IntArray
    rewards: FloatArray
    best_rewards: FloatArray
    value: FloatArray
    best_value: FloatArray
    random_value: FloatArray
    alive: BoolArray
    fell_back: BoolArray | None = None
    counted: BoolArray | None = None


COLUMNS = ("items", "segments", "rewards", "best_rewards", "value", "best_value", "random_value")  # of a trace
