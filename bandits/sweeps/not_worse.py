"""Name the values of a parameter that a sweep does not tell apart from the best one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from bandits.base.formatting import listed

from .analysis.landscape import Landscape
from .analysis.records import State
from .axis import Value
from .figures.grid import format_value

Compared = State | Literal["diverged", "not computed"]
LEFT_OUT: dict[Compared, str] = {
    "dropped": "were dropped early",
    "diverged": "diverged",
    "not computed": "were not computed",
}


def not_worse(landscape: Landscape, metric: str) -> str:
    """State which values of the only parameter are not significantly worse than the best.

    What was dropped, has diverged or was not computed is compared with nothing, and named.
    """
    states: list[Compared] = list(landscape.states(metric))
    for point in np.flatnonzero(~landscape.eligible(metric) & ~landscape.dropped):
        states[point] = "diverged" if landscape.completed[point].any() else "not computed"
    return alike(landscape.sweep.values[0], states)


def alike(values: Sequence[Value], states: Sequence[Compared]) -> str:
    """State which values are not significantly worse than the best: neighbours as a range.

    Parameters
    ----------
    values : sequence of value
        Of one parameter, in order.
    states : sequence of text
        How each compares with the best, or why it does not.
    """
    good = [i for i, state in enumerate(states) if state in ("tied", "unclear")]
    left_out = " or ".join(text for state, text in LEFT_OUT.items() if state in states)
    if len(good) > 1:
        rest = f"; others {left_out}" if left_out else ""
        return f"not significantly worse: {_ranges(values, good)}{rest}"
    if "worse" not in states:
        return f"others {left_out}"
    if left_out:
        return f"all others are significantly worse, but for those that {left_out}"
    at, last = good[0], len(values) - 1
    first, end = max(at - 1, 0), min(at + 1, last)
    alone = "all others are significantly worse"
    if not _numbers(values) or _adjacent(values[first : end + 1]):
        return alone
    low, high = format_value(values[first]), format_value(values[end])
    return f"{alone}; other values between {low} and {high} were not tried"


def _adjacent(values: Sequence[Value]) -> bool:
    """Whether no whole number lies between these whole numbers."""
    whole = [value for value in values if isinstance(value, int)]
    return len(whole) == len(values) and whole[-1] - whole[0] == len(whole) - 1


def _ranges(values: Sequence[Value], places: Sequence[int]) -> str:
    """List numbers that follow each other as a range, and other values one by one."""
    numbers = _numbers(values)
    runs: list[list[int]] = []
    for place in places:
        if numbers and runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return listed(
        format_value(values[run[0]])
        + (f" to {format_value(values[run[-1]])}" if len(run) > 1 else "")
        for run in runs
    )


def _numbers(values: Sequence[Value]) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
