"""A run: an experiment and what its agents have done so far."""

from __future__ import annotations

from typing import Self

from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History


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

    def __init__(self, experiment: Experiment, histories: dict[str, History], *, unchanged: Self | None = None) -> None:
        self.experiment, self.histories, self.unchanged = experiment, histories, unchanged
