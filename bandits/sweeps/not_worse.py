"""Name the values of a parameter that a sweep does not tell apart from the best one."""

from __future__ import annotations

from collections.abc import Sequence

from bandits.base.formatting import listed

from .analysis.records import State
from .axis import Value
from .figures.grid import format_value


def not_worse(values: Sequence[Value], states: Sequence[State]) -> str:
    """State which values of a parameter are not significantly worse than the best: neighbours as a
    range.

    Parameters
    ----------
    values : sequence of value
        Of one parameter, in order.
    states : sequence of State
        How each compares with the best; see `Landscape.states`.
    """
    good = [i for i, state in enumerate(states) if state in ("tied", "unclear")]
    dropped = "dropped" in states
    if len(good) < 2:
        if dropped:
            return "all others that were not dropped early are significantly worse"
        alone = "all others are significantly worse"
        if not _numbers(values):
            return alone
        at, last = good[0], len(values) - 1
        low, high = (format_value(values[i]) for i in (max(at - 1, 0), min(at + 1, last)))
        return f"{alone}; values between {low} and {high} were not tried"
    return f"not significantly worse: {_ranges(values, good)}" + (
        "; others were dropped early" if dropped else ""
    )


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
