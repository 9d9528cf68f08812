"""A submitted experiment: how far it is, and what its agents have left behind so far."""

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

JobStatus = Literal["queued", "running", "paused", "finished", "stopped", "failed"]


@dataclass(eq=False)
class Job:
    """A submitted experiment.

    Attributes
    ----------
    experiment : Experiment
    owner : str
        Who submitted it first, and alone may pause, continue and stop it.
    status : {"queued", "running", "paused", "finished", "stopped", "failed"}
    histories : dict of str to History
        What each agent has left behind so far. Read them under ``lock``.
    waiting : set of str
        Agents that are still being trained.
    step : int
        Step the race has reached.
    error : str
        Why it failed, or what else there is to say, in one sentence.
    saved : dict of arrays
        State of the race from which it can go on.
    interrupted : bool
        It stopped because the process that ran it ended; this one has only found its checkpoint.
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
    seconds_before: float = 0.0  # seconds of earlier stints
    since: float | None = None  # start of the present one

    @classmethod
    def from_checkpoint(cls, experiment: Experiment, saved: dict[str, Any], error: str) -> Job:
        """A run that ended with its process, as far as its checkpoint has come."""
        step, histories = int(saved["step"]), load_histories(experiment, saved)
        job = cls(experiment, "", "stopped", step, error, histories=histories, saved=saved, interrupted=True)
        job.seconds_before = sum(h.seconds for h in histories.values())
        return job

    @cached_property
    def id(self) -> str:
        """The experiment's hash; every look at a run asks for it."""
        return self.experiment.hash

    @property
    def active(self) -> bool:
        """Queued or running."""
        return self.status in ("queued", "running")

    @property
    def live(self) -> bool:
        """Queued, running or paused: somebody means to go on with it."""
        return self.active or self.status == "paused"

    @property
    def result(self) -> Result:
        """The histories as a result; of a running job, as far as it has come."""
        return Result(self.experiment, {label: h for label, h in self.histories.items() if h.size > 1})

    @property
    def arms(self) -> int:
        """How many there are to choose from; 0 before anything has been computed."""
        return next((h.n_items for h in self.histories.values()), 0)

    @property
    def progress(self) -> float:
        """Share of all agents' steps that are done, 0 to 1."""
        total = self.experiment.steps * max(len(self.histories), 1)
        return sum(h.step for h in self.histories.values()) / total if self.histories else 0.0

    @property
    def seconds(self) -> float:
        """Wall time it has been running, pauses not counted."""
        return self.seconds_before + (0.0 if self.since is None else time.monotonic() - self.since)

    @property
    def seconds_left(self) -> float | None:
        """Expected wall time to the end, or None while there is too little to tell."""
        done = self.progress
        return self.seconds * (1 - done) / done if self.status == "running" and done > 0.02 else None

    def end(self, status: JobStatus, error: str = "") -> None:
        """Stop the clock."""
        self.seconds_before, self.since, self.ended = self.seconds, None, time.monotonic()
        self.status, self.error = status, error
