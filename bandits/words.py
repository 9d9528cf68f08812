"""Comparisons in words, with numbers for people."""

from __future__ import annotations

import math

from . import metrics
from .metrics import Comparison, Estimate
from .result import Result


def count(value: float) -> str:
    """A count with thousands marked: 1,234."""
    return "–" if not math.isfinite(value) else f"{value:,.0f}"


def percent(value: float, digits: int = 0) -> str:
    """A share: 87 %."""
    return "–" if not math.isfinite(value) else f"{100 * value:.{digits}f} %"


def interval(estimate: Estimate) -> str:
    """95 % interval 380 to 445."""
    return f"95 % interval {count(estimate.low)} to {count(estimate.high)}"


def ranking(result: Result) -> list[str]:
    """Labels by mean clicks per step so far, best first; agents that have not started come last."""

    def rate(label: str) -> float:
        history = result.histories[label]
        value = metrics.estimate(metrics.click_rate(history)).mean
        return value if math.isfinite(value) else -1.0

    return sorted(result.histories, key=rate, reverse=True)


def compared(a: str, b: str, comparison: Comparison, p_value: float) -> str:
    """Agent a, who is ahead, against agent b, after the run.

    ``p_value`` is the one corrected for the number of pairs shown.
    """
    d = comparison.difference
    if d.low == d.high:
        return f"{a} earned {count(d.mean)} more clicks than {b} in this one run; one run proves nothing."
    if p_value >= 0.05:
        return f"{a} and {b} are too close to call: {count(d.mean)} clicks apart ({interval(d)})."
    text = f"{a} earns {count(d.mean)} more clicks than {b} ({interval(d)})"
    if comparison.break_even_step:
        text += f"; it broke even at step {count(comparison.break_even_step)}"
        if comparison.break_even_interval:
            low, high = comparison.break_even_interval
            text += f" ({count(low)} to {count(high)})"
        if comparison.exploration_cost >= 1:
            text += f" after having been {count(comparison.exploration_cost)} clicks behind"
    return text + "."


def verdicts(result: Result) -> list[str]:
    """The leader against each of the others, Holm-corrected over the pairs shown."""
    order = [label for label in ranking(result) if result.histories[label].alive.any()]
    if len(order) < 2:
        return []
    leader, others = order[0], order[1:]
    found = [result.compare(leader, other) for other in others]
    adjusted = metrics.holm([c.p_value for c in found])
    return [compared(leader, other, c, p) for other, c, p in zip(others, found, adjusted, strict=True)]


def lesson(result: Result) -> str:
    """Did anyone learn? The best agent's way from random to the oracle."""
    label = max(result.histories, key=lambda name: _learned(result, name).mean)
    best = _learned(result, label)
    if not math.isfinite(best.mean):
        return "Nothing could be learned here: every choice is worth the same."
    if best.low <= 0 and best.low < best.high:
        return "Nobody has learned anything that can be told from luck yet: random choice does as well."
    return (
        f"Did anyone learn? {label} came {percent(best.mean)} of the way from random choice (0 %) to the oracle "
        f"(100 %), averaged over the run ({percent(best.low)} to {percent(best.high)})."
    )


def _learned(result: Result, label: str) -> Estimate:
    found = metrics.learned(result.histories[label])
    return found if math.isfinite(found.mean) else Estimate(-math.inf, -math.inf, -math.inf)
