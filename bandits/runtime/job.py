"""A submitted experiment: its status, its progress and the histories of its agents."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.experiments.race import load_histories
from bandits.results.result import Result

from .time_left import RunClock

JobStatus = Literal["queued", "running", "paused", "finished", "stopped", "failed"]


@dataclass(eq=False)
class Job:
    """A submitted experiment.

    Attributes
    ----------
    experiment : Experiment
    owner : str
        Who submitted it, and alone may pause, resume and stop it; "" for anyone.
    status : {"queued", "running", "paused", "finished", "stopped", "failed"}
    histories : dict of str to History
        Results of each agent so far. Read them under ``lock``.
    waiting : set of str
        Agents that are still being trained.
    step : int
        Step that the run has reached.
    error : str
        Why it failed, or another remark, in one sentence.
    saved : dict of arrays
        State from which the run can continue.
    interrupted : bool
        Whether an earlier process ended during the run, so that only its checkpoint is known.
    """

    experiment: Experiment
    owner: str = ""
    status: JobStatus = "queued"
    step: int = 0
    error: str = ""
    waiting: set[str] = field(default_factory=set)
    histories: dict[str, History] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    saved: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    worker_deaths: int = 0
    started: float | None = None
    ended: float | None = None
    seconds_before: float = 0.0  # wall time of earlier stretches, without pauses
    running_since: float | None = None  # start of the current stretch
    clock: RunClock = field(default_factory=RunClock)

    @classmethod
    def from_checkpoint(cls, experiment: Experiment, saved: dict[str, Any], error: str) -> Job:
        """Return a job for an interrupted run, with the histories of its checkpoint."""
        step, histories = int(saved["step"]), load_histories(experiment, saved)
        job = cls(experiment, "", "stopped", step, error, histories=histories, saved=saved, interrupted=True)
        job.seconds_before = sum(h.seconds for h in histories.values())
        return job

    @cached_property
    def id(self) -> str:
        """The experiment's hash."""
        return self.experiment.hash

    @property
    def active(self) -> bool:
        """Whether it is queued or running."""
        return self.status in ("queued", "running")

    @property
    def live(self) -> bool:
        """Whether it is queued, running or paused."""
        return self.active or self.status == "paused"

    @property
    def result(self) -> Result:
        """The histories as a result, up to the step that the run has reached."""
        return Result(self.experiment, {label: h for label, h in self.histories.items() if h.size > 1})

    @property
    def arms(self) -> int:
        """Number of arms; 0 before anything has been computed."""
        return next((h.n_items for h in self.histories.values()), 0)

    @property
    def progress(self) -> float:
        """Share of all agents' steps that have been computed, 0 to 1."""
        total = self.experiment.steps * max(len(self.histories), 1)
        return sum(h.step for h in self.histories.values()) / total if self.histories else 0.0

    @property
    def seconds(self) -> float:
        """Wall time in seconds, without pauses."""
        return self.seconds_before + (0.0 if self.running_since is None else time.monotonic() - self.running_since)

    def record_time(self) -> None:
        """Record what each agent has reached, from which `seconds_left` is predicted."""
        self.clock.record({label: (h.step, h.seconds) for label, h in self.histories.items()}, self.seconds)

    @property
    def seconds_left(self) -> float | None:
        """Expected wall time to the end in seconds; None at the beginning, during training, and when it is not running.

        The cost of a step may grow: see `time_left`.
        """
        if self.status != "running" or self.waiting:
            return None
        return self.clock.seconds_left(self.experiment.steps)

    def end(self, status: JobStatus, error: str = "") -> None:
        """Set the status and stop the clock."""
        self.seconds_before, self.running_since, self.ended = self.seconds, None, time.monotonic()
        self.status, self.error = status, error
