"""Predict how long a run still takes from the rate of its recent steps and from how that rate has changed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bandits.base.types import FloatArray

MAX_SAMPLES = 128  # of one agent
_ENOUGH = 4  # samples in the later part of the run


class AgentClock:
    """Seconds that one agent has taken to reach each of several steps.

    The cost of a step may grow, as with a replay buffer or a Cholesky factor of all observations: the time from the
    first sample is fitted by a t + b t² + c t³ with coefficients of at least 0, over the later three quarters of the
    steps. The fit is shifted to pass through the latest sample.
    """

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.seconds: list[float] = []

    def add(self, step: int, seconds: float) -> None:
        """Record the time at which a step was reached; every second sample is dropped when there are many."""
        if self.steps and step < self.steps[-1]:  # the run has started again
            self.steps, self.seconds = [], []
        if self.steps and step == self.steps[-1]:
            return
        if len(self.steps) >= MAX_SAMPLES:
            self.steps, self.seconds = self.steps[::2], self.seconds[::2]
        self.steps.append(step)
        self.seconds.append(seconds)

    def seconds_left(self, steps: int) -> float | None:
        """Predict the time from the latest sample to the last step; None while there are too few samples."""
        first = self._fitted()
        if first is None:
            return None if not self.steps or self.steps[-1] < steps else 0.0
        at, taken = np.array(self.steps[first:], float) / steps, np.array(self.seconds[first:])
        terms = _powers(at) - _powers(at[:1])  # of the time since the first fitted sample
        from scipy.optimize import nnls  # takes long to import

        coefficients, _ = nnls(terms[1:], taken[1:] - taken[0])
        ahead = _powers(np.ones(1)) - _powers(at[-1:])
        return float((ahead @ coefficients)[0])

    def _fitted(self) -> int | None:
        """Return the position of the first sample of the later three quarters, or None if too few follow it."""
        if not self.steps:
            return None
        first = int(np.searchsorted(self.steps, self.steps[-1] / 4))
        first = min(first, max(len(self.steps) - 1 - _ENOUGH, 0))
        return first if len(self.steps) - first > _ENOUGH else None


class RunClock:
    """Times of all agents of a run, which may be computed side by side."""

    def __init__(self) -> None:
        self.agents: dict[str, AgentClock] = {}
        self._computed = [0.0]  # seconds of all agents together, at ...
        self._wall = [0.0]  # ... these wall times of the run

    def record(self, reached: Mapping[str, tuple[int, float]], wall: float) -> None:
        """Record the step that each agent has reached with the seconds it has taken, at a wall time of the run."""
        for label, (step, seconds) in reached.items():
            self.agents.setdefault(label, AgentClock()).add(step, seconds)
        if len(self._wall) >= MAX_SAMPLES:
            self._wall, self._computed = self._wall[::2], self._computed[::2]
        self._wall.append(wall)
        self._computed.append(sum(seconds for _, seconds in reached.values()))

    def seconds_left(self, steps: int) -> float | None:
        """Predict the wall time to the last step; None until every agent has reached a few steps."""
        left = [clock.seconds_left(steps) for clock in self.agents.values()]
        known = [seconds for seconds in left if seconds is not None]
        if not known or len(known) < len(left):
            return None
        return max(max(known), sum(known) / self._computed_at_a_time())

    def _computed_at_a_time(self) -> float:
        """Return the seconds of agents per second of the run, over the later half of the run."""
        wall, computed = np.array(self._wall), np.array(self._computed)
        half = min(int(np.searchsorted(wall, wall[-1] / 2)), len(wall) - 2)
        passed = wall[-1] - wall[half]
        return max(float((computed[-1] - computed[half]) / passed), 0.5) if passed > 0 else 1.0


def _powers(at: FloatArray) -> FloatArray:
    return np.stack([at, at**2, at**3], axis=1)
