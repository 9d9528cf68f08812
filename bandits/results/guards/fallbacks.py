"""How often a fallback decided in place of an agent, and what it cost in clicks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.base.formatting import count, percent
from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.metrics import Estimate
from bandits.results.run import Run


class Fallbacks(NamedTuple):
    """Decisions of a fallback.

    Attributes
    ----------
    decisions : Estimate
        Their number per replication.
    share : float
        Of all decisions.
    cost : Estimate
        Expected clicks that they earned less than as many average decisions of the agent itself, per replication;
        without numbers where the agent made none.
    """

    decisions: Estimate
    share: float
    cost: Estimate


def fallbacks(history: History) -> Fallbacks | None:
    """Count what a fallback decided; None for an agent without one."""
    if "fallbacks" not in history.sums:
        return None
    n, instead, value = (metrics.total(history, name) for name in ("fallbacks", "fallback_value", "value"))
    steps = int(history.grid[history.size - 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        own = (value - instead) / (steps - n)
    share = float(n[history.alive].mean() / max(steps, 1)) if history.alive.any() else 0.0
    return Fallbacks(metrics.estimate(n), share, metrics.estimate(n * own - instead))


def sentences(result: Run) -> list[str]:
    """State in one sentence per agent with a fallback how often it decided, and at what cost."""
    found = []
    for label, history in result.histories.items():
        if (f := fallbacks(history)) is None:
            continue
        if f.decisions.mean == 0:
            found.append(f"{label}: the fallback never decided.")
            continue
        text = f"{label}: the fallback made {percent(f.share)} of the decisions ({count(f.decisions.mean)} a run)"
        if not result.experiment.offers("truth"):
            found.append(f"{text}; what they cost is not known.")
            continue
        if not np.isfinite(f.cost.mean):
            found.append(f"{text}, all of them.")
            continue
        cost = abs(f.cost)
        less = f"{words.mean(cost, 'count')} clicks {'less' if f.cost.mean >= 0 else 'more'}"
        found.append(
            f"{text}; they earned {less}{words.bracket(cost, 'count')} than as many average decisions of its own."
        )
    return found
