"""What an agent learned from a log before its first step, and what that log costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandits.base.formatting import GLUE, count, count_of, duration, number
from bandits.base.types import OfflineTraining
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results.run import Run

from . import metrics
from .figures.curves import curves
from .figures.style import Spec, Style
from .metrics import Estimate

LOOKS = {"Training": Style("#56B4E9", "solid"), "Validation": Style("#D55E00", "solid")}


def log_regret(history: History, still: int) -> Estimate:
    """Estimate the expected reward that collecting the log loses against the optimum, NaN without
    truth or steps.

    Uniformly random choice loses as much at each logged interaction as it loses at a step of the
    run, on average, until the simulator changes for the first time, at step ``still``: the log is
    that of the simulator before."""
    assert history.training is not None
    at = int(np.searchsorted(history.grid[: history.size], still, side="right")) - 1
    gap = (history.sums["best_value"][at] - history.sums["random_value"][at])[history.alive]
    return metrics.estimate(gap / (history.grid[at] or math.nan) * history.training.interactions)


def steps_before_changes(experiment: Experiment) -> int:
    """Return the number of steps before the simulator changes for the first time, or that of the
    run.
    """
    return min(
        [experiment.steps, *(change.begins for change in experiment.simulator.all_changes.values())]
    )


def summary(history: History, still: int) -> dict[str, Any] | None:
    """Return what ``summary.json`` states; None for an agent that was not trained on a log.

    See `log_regret`.
    """
    if history.training is None:
        return None
    training = history.training
    found = {
        "interactions": training.interactions,
        "log_regret": log_regret(history, still)._asdict(),
    }
    if training.held_out:
        found |= {
            "held_out": training.held_out,
            # of each epoch, the mean over layouts
            "train_loss": training.train_loss.mean(axis=0).tolist(),
            "validation_loss": training.validation_loss.mean(axis=0).tolist(),
            "perfect_loss": metrics.estimate(training.perfect_loss)._asdict(),
            "excess_loss": metrics.estimate(training.excess)._asdict(),
        }
    return found


def training_curves(result: Run) -> dict[str, Spec]:
    """Draw the log loss in each epoch, of every agent whose training measured it, by label."""
    found = {}
    for label, history in result.histories.items():
        if (training := history.training) is None or not training.held_out:
            continue
        layouts, epochs = training.validation_loss.shape
        x, alive = np.arange(1.0, epochs + 1), np.ones(layouts, np.bool_)
        loss = {"Training": training.train_loss, "Validation": training.validation_loss}
        perfect = np.repeat(training.perfect_loss[:, None], epochs, axis=1)
        found[label] = curves(
            {name: metrics.band(x, values.T, alive) for name, values in loss.items()},
            LOOKS,
            title=f"{label}: log loss",
            note=(
                "Log loss on the interactions trained on, while the network is trained, and on "
                "those held out, after each epoch. Dashed: a model that predicts the true click "
                "probabilities, on those held out."
            ),
            x_title="epoch",
            references={"perfect model": metrics.band(x, perfect.T, alive)}
            if np.isfinite(perfect).all()
            else {},
            end_labels=True,
        )
    return found


def _loss_in_words(training: OfflineTraining) -> str:
    """State the final loss on what was held out, that of a perfect model, and the excess."""
    final, layouts = training.validation_loss[:, -1], len(training.validation_loss)
    text = (
        f" Its log loss on {count(training.held_out)} interactions held out is "
        f"{_loss(final.mean())}"
    )
    if not np.isfinite(training.perfect_loss).all():
        return f"{text}."
    excess = metrics.estimate(training.excess)
    spread = (
        f" (95{GLUE}% CI {_loss(excess.low)} to {_loss(excess.high)} over {layouts} layouts)"
        if layouts > 1
        else ""
    )
    perfect = _loss(training.perfect_loss.mean())
    return (
        f"{text}, that of a perfect model on the same {perfect}: an excess of "
        f"{_loss(excess.mean)}{spread}."
    )


def _loss(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")


def sentences(result: Run) -> list[str]:
    """State for each agent that was trained on a log how long it is, what it costs, and how long
    training took.
    """
    simulator, found = result.experiment.simulator_class(), []
    for label, history in result.histories.items():
        if history.training is None:
            continue
        n, seconds = history.training.interactions, history.training.seconds
        steps = result.experiment.steps
        text = (
            f"{label} was trained before step 0 on {count(n)} logged interactions under random "
            f"choice, {number(n / steps)} times the {count(steps)} steps of the run."
        )
        cost = log_regret(history, steps_before_changes(result.experiment))
        if math.isfinite(cost.mean):
            spread = (
                ""
                if not math.isfinite(cost.low)
                else f" (95{GLUE}% CI {count(cost.low)} to {count(cost.high)})"
            )
            text += (
                " Collecting such a log costs "
                f"{count_of(cost.mean, simulator.reward_noun)}{spread} against the best choice at "
                "each of them."
            )
        if history.training.held_out:
            text += _loss_in_words(history.training)
        if math.isfinite(seconds):
            text += f" The training took {duration(seconds)}."
        found.append(text)
    return found
