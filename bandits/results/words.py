"""Write estimates and their intervals in words: the same estimate has the same digits on
all pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from bandits.base.formatting import count, number, percent

from .metrics import Estimate

Form = Literal["rate", "share", "count", "signed", "number"]
NO_INTERVAL = "one replication"


def _decimals(value: float, digits: int) -> str:
    # Adding 0 takes the sign from a zero.
    return (
        f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
        if math.isfinite(value)
        else "–"
    )


def count_end(value: float) -> str:
    """Format as a whole number, or with one digit where that would be 0: 380, −0.3."""
    return number(float(f"{value:.1g}")) if 1e-3 < abs(value) <= 0.5 else count(value)


def _signed(value: float) -> str:
    """Format a whole number with its sign: +3, −3, 0."""
    return f"{'+' if round(value) > 0 else ''}{count(value)}" if math.isfinite(value) else "–"


# The ways to write a number, from few digits to many
_WRITERS: dict[Form, Sequence[Callable[[float], str]]] = {
    "rate": [partial(_decimals, digits=digits) for digits in (3, 4, 5)],
    "share": [partial(percent, digits=digits) for digits in (0, 1, 2)],
    "count": [count],
    "signed": [_signed],
    "number": [number],
}


def _writer(estimate: Estimate, form: Form) -> Callable[[float], str]:
    """Choose the fewest digits with which the ends of an interval differ, and differ from 0 where
    it excludes 0.
    """
    writers, (_, low, high) = _WRITERS[form], estimate
    if not low < high:
        return writers[0]
    if form == "count" and excludes_zero(estimate):
        return count_end
    apart = [low, high, *([0.0] if excludes_zero(estimate) else [])]
    return next(
        (write for write in writers if len({*map(write, apart)}) == len(apart)), writers[-1]
    )


def excludes_zero(estimate: Estimate) -> bool:
    """Return whether both ends of an interval are on the same side of 0."""
    return estimate.low > 0 or estimate.high < 0


def has_interval(estimate: Estimate) -> bool:
    """Return whether an estimate has an interval: a single replication has none."""
    return math.isfinite(estimate.low) and math.isfinite(estimate.high)


def mean(estimate: Estimate, form: Form = "number") -> str:
    """Format a mean with the digits of its interval: 0.413; a dash where it is unknown."""
    return _writer(estimate, form)(estimate.mean)


def ends(estimate: Estimate, form: Form = "number") -> str:
    """Format the ends of an interval: 0.406 to 0.420."""
    if not has_interval(estimate):
        return NO_INTERVAL
    write = count_end if form == "count" else _writer(estimate, form)
    return f"{write(estimate.low)} to {write(estimate.high)}"


def interval(estimate: Estimate, form: Form = "number") -> str:
    """Format an interval: 95 % CI 0.406 to 0.420."""
    return f"95 % CI {ends(estimate, form)}" if has_interval(estimate) else NO_INTERVAL


def bracket(estimate: Estimate, form: Form = "number") -> str:
    """Format an interval, to follow what it is of: " (95 % CI 0.406 to 0.420)".

    Empty without one.
    """
    return f" ({interval(estimate, form)})" if has_interval(estimate) else ""


def stated(estimate: Estimate, form: Form = "number") -> str:
    """Format a mean and its interval for a sentence: 0.413 (95 % CI 0.406 to 0.420)."""
    return mean(estimate, form) + bracket(estimate, form)


def cell(estimate: Estimate, form: Form = "number") -> str:
    """Format a mean and its interval for a table whose heading names the level: 0.413 (0.406 to
    0.420).
    """
    text = mean(estimate, form)
    return f"{text} ({ends(estimate, form)})" if has_interval(estimate) else text


def spread(estimate: Estimate, form: Form = "rate") -> str:
    """Format half the width of an interval, to follow a mean: " ± 0.002"; empty without one."""
    half = (estimate.high - estimate.low) / 2
    if not half > 0:
        return ""
    text = _WRITERS[form][0](half)
    least = _WRITERS[form][0](0.0)
    return f" ± <{_LEAST[form]}" if text == least else f" ± {text}"


def plain(estimate: Estimate, form: Form = "rate") -> str:
    """Format a mean with the digits that all of its kind have: 0.413; a dash where it is
    unknown.
    """
    return _WRITERS[form][0](estimate.mean) if math.isfinite(estimate.mean) else "–"


def plus_minus(estimate: Estimate, form: Form = "rate") -> str:
    """Format a mean and half the width of its interval: 0.413 ± 0.007."""
    return _WRITERS[form][0](estimate.mean) + spread(estimate, form)


_LEAST: dict[Form, str] = {
    "rate": "0.001",
    "share": "1 %",
    "count": "1",
    "signed": "1",
    "number": "0.001",
}
