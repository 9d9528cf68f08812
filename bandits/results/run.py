"""A run: an experiment, what its agents have done so far, and the best of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple, Self

from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.metric_registry import main_metric
from bandits.results.metrics import Estimate


class Run:
    """The histories of every agent of a finished or running experiment.

    Attributes
    ----------
    experiment : Experiment
    histories : dict of str to History
        By label; agents that have not begun are absent.
    unchanged : Run or None
        The same experiment without changes, where it was run too.
    """

    def __init__(
        self,
        experiment: Experiment,
        histories: dict[str, History],
        *,
        unchanged: Self | None = None,
    ) -> None:
        self.experiment, self.histories, self.unchanged = experiment, histories, unchanged


class Headline(NamedTuple):
    """The agent with the highest mean reward per step, or per visit where visits have many steps.

    The oracle counts only where no other agent runs.

    Attributes
    ----------
    label : str
    ctr : Estimate
        Reward per step over the whole run: the click-through rate where rewards are clicks.
    regret : Estimate
        Cumulative regret: expected reward lost over the whole run; that of the rest of the visit,
        where visits have many steps.
    """

    label: str
    ctr: Estimate
    regret: Estimate


def headline(experiment: Experiment, histories: Mapping[str, History]) -> Headline | None:
    """Find the best agent of a run; None if all replications of all agents diverged."""
    needs = {
        label: AGENTS[a.kind].needs
        for label, a in zip(experiment.labels, experiment.agents, strict=True)
    }
    visits = experiment.offers("visits")
    found = [
        Headline(
            label,
            metrics.estimate(metrics.click_rate(history)),
            metrics.estimate(
                metrics.total(history, "lost")
                if visits
                else metrics.total(history, "best_value") - metrics.total(history, "value")
            ),
        )
        for label, history in histories.items()
    ]
    measured = [one for one in found if math.isfinite(one.ctr.mean)]
    fair = [one for one in measured if "truth" not in needs[one.label]] or measured
    metric = main_metric(experiment)

    def value(one: Headline) -> float:
        earned = metric.estimate(histories[one.label]).mean
        # no visit has ended
        return earned if math.isfinite(earned) else -math.inf

    return max(fair, key=value, default=None)


def to_json(found: Headline | None) -> str:
    """Write a headline as JSON, without NaN; an empty text for None."""
    if found is None:
        return ""
    numbers = [
        [value if math.isfinite(value) else None for value in estimate] for estimate in found[1:]
    ]
    return json.dumps([found.label, *numbers])


def from_json(text: str | None) -> Headline | None:
    """Read a headline; None for an empty or damaged text."""
    with suppress(ValueError, TypeError):
        label, *numbers = json.loads(text or "")
        ctr, regret = (
            Estimate(*(math.nan if value is None else float(value) for value in one))
            for one in numbers
        )
        return Headline(str(label), ctr, regret)
    return None
