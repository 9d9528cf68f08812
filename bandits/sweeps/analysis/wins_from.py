"""From which value of a number on one choice earns more than another: "sharing wins from 200
products on".
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray
from bandits.results import metrics


class Lead(NamedTuple):
    """What the best choice at the largest value of a number shows against another one.

    Attributes
    ----------
    choice, rival : int
    first : int or None
        Place of the value from which on the choice earns significantly more, at that and at every
        larger value; None: not even at the largest.
    """

    choice: int
    rival: int
    first: int | None


def wins_from(gaps: FloatArray, family: int) -> int | None:
    """Return the first of N values from which on gaps are significantly above 0.

    None if not even at the last.

    The values are tested from the largest down, each only if all larger ones have passed (fixed
    sequence [1]_). A false claim needs a false rejection at the largest value without a gap above
    0, so the probability of one is at most .025 / ``family``, however many values there are.

    Parameters
    ----------
    gaps : float64 (N, R)
        Paired differences by value, ascending, and replication; NaN in diverged replications.
    family : int
        Number of such claims that hold together.

    References
    ----------
    .. [1] Maurer, Hothorn, Lehmacher (1995), Multiple comparisons in drug clinical trials and
           preclinical assays.
    """
    first = None
    for i in reversed(range(len(gaps))):
        if not metrics.estimate(gaps[i], family=family).low > 0:
            break
        first = i
    return first


def leads(numbers: FloatArray, level: float) -> list[Lead]:
    """Compare the choice with the largest mean at the last value with each other choice.

    The data choose the leader, so the claims of all pairs of choices, in both directions, hold
    together: the probability that any of them is false is at most ``level``.

    Parameters
    ----------
    numbers : float64 (C, N, R)
        A metric that is better where it is larger, by choice, value (ascending) and replication.
    level : float
    """
    pairs = len(numbers) * (len(numbers) - 1) // 2
    last = [metrics.estimate(each[-1]).mean for each in numbers]
    if pairs == 0 or not np.isfinite(last).all():
        return []
    best = int(np.argmax(last))
    rivals = [i for i in range(len(numbers)) if i != best]
    family = math.ceil(pairs * 0.05 / level)
    return [Lead(best, i, wins_from(numbers[best] - numbers[i], family)) for i in rivals]
