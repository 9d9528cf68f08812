"""What an agent learned from a log before its first step, and what that log costs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bandits.base.formatting import GLUE, count, count_of, duration, number
from bandits.experiments.history import History

from . import metrics
from .metrics import Estimate

if TYPE_CHECKING:
    from .result import Result


def log_regret(history: History) -> Estimate:
    """Estimate the expected reward that collecting the log loses against the optimum, NaN without truth or steps.

    Uniformly random choice loses as much at each logged interaction as it loses at a step of the run, on average.
    """
    assert history.training is not None
    gap = metrics.total(history, "best_value") - metrics.total(history, "random_value")
    return metrics.estimate(gap / max(history.step, 1) * history.training.interactions)


def summary(history: History) -> dict[str, Any] | None:
    """Return what ``summary.json`` states; None for an agent that was not trained on a log."""
    if history.training is None:
        return None
    return {"interactions": history.training.interactions, "log_regret": log_regret(history)._asdict()}


def sentences(result: Result) -> list[str]:
    """State for each agent that was trained on a log how long it is, what it costs, and how long training took."""
    simulator, found = result.experiment.simulator_class(), []
    for label, history in result.histories.items():
        if history.training is None:
            continue
        n, seconds = history.training.interactions, history.training.seconds
        steps = result.experiment.steps
        text = (
            f"{label} was trained before step 0 on {count(n)} logged interactions under random choice, "
            f"{number(n / steps)} times the {count(steps)} steps of the run."
        )
        cost = log_regret(history)
        if math.isfinite(cost.mean):
            spread = "" if not math.isfinite(cost.low) else f" (95{GLUE}% CI {count(cost.low)} to {count(cost.high)})"
            text += (
                f" Collecting such a log costs {count_of(cost.mean, simulator.reward_noun)}{spread} against the best "
                "choice at each of them."
            )
        if math.isfinite(seconds):
            text += f" The training took {duration(seconds)}."
        found.append(text)
    return found
