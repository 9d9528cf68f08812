"""Predict how long a run still takes from the rate of its recent steps and from how that rate has
changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from bandits.base.types import FloatArray

MAX_SAMPLES = 128  # of one agent
# seconds of a run between two fits
FIT_INTERVAL = 1.0
# fits in a row whose predictions of the whole time ...
AGREEING = 4
# ... differ by at most this share, before one is shown
TOLERANCE = 0.2
# of its steps that every agent has computed before
MIN_SHARE = 0.05
# samples in the later part of the run
_ENOUGH = 4


class AgentClock:
    """Seconds that one agent has taken to reach each of several steps.

    The cost of a step may grow, as with a replay buffer or a Cholesky factor of all observations:
    the time from the first sample is fitted by a t + b t² + c t³ with coefficients of at least 0,
    over the later three quarters of the steps. The fit is shifted to pass through the latest
    sample. It is kept until `refit`."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.seconds: list[float] = []
        # the step that is t = 1, and the coefficients
        self._fit: tuple[int, FloatArray] | None = None

    def add(self, step: int, seconds: float) -> None:
        """Record the time at which a step was reached.

        Every second sample is dropped when there are many.
        """
        # the run has started again
        if self.steps and step < self.steps[-1]:
            self.steps, self.seconds, self._fit = [], [], None
        if self.steps and step == self.steps[-1]:
            return
        if len(self.steps) >= MAX_SAMPLES:
            self.steps, self.seconds = self.steps[::2], self.seconds[::2]
        self.steps.append(step)
        self.seconds.append(seconds)

    def refit(self) -> None:
        """Fit anew when the next prediction is made."""
        self._fit = None

    def seconds_left(self, steps: int) -> float | None:
        """Predict the time from the latest sample to the last step.

        None while there are too few samples.
        """
        if self.steps and self.steps[-1] >= steps:
            return 0.0
        if self._fit is None and (first := self._fitted()) is not None:
            unit = self.steps[-1]
            at, taken = np.array(self.steps[first:], float) / unit, np.array(self.seconds[first:])
            # of the time since the first fitted sample
            terms = _powers(at) - _powers(at[:1])
            self._fit = unit, _nonnegative_fit(terms[1:], taken[1:] - taken[0])
        if self._fit is None:
            return None
        unit, coefficients = self._fit
        ahead = _powers(np.array([steps / unit])) - _powers(np.array([self.steps[-1] / unit]))
        return float((ahead @ coefficients)[0])

    def _fitted(self) -> int | None:
        """Return the position of the first sample of the later three quarters, or None if too few
        follow it.
        """
        if not self.steps:
            return None
        first = int(np.searchsorted(self.steps, self.steps[-1] / 4))
        first = min(first, max(len(self.steps) - 1 - _ENOUGH, 0))
        return first if len(self.steps) - first > _ENOUGH else None


class RunClock:
    """Times of all agents of a run, which may be computed side by side.

    Parameters
    ----------
    steps : int
        Length of the run.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.agents: dict[str, AgentClock] = {}
        self.seconds_left: float | None = None  # see `record`
        # seconds of all agents together, at ...
        self._computed = [0.0]
        # ... these wall times of the run
        self._wall = [0.0]
        self._next_fit = 0.0
        # predictions of the latest fits
        self._totals: list[float] = []

    def record(self, reached: Mapping[str, tuple[int, float]], wall: float) -> None:
        """Record the step that each agent has reached with the seconds it has taken, at a wall time
        of the run.

        Once a second the cost of further steps is fitted anew. ``seconds_left`` is the wall time to
        the last step; None until every agent has computed 5 % of its steps and four fits in a row
        predict the same time, to a fifth."""
        for label, (step, seconds) in reached.items():
            self.agents.setdefault(label, AgentClock()).add(step, seconds)
        if len(self._wall) >= MAX_SAMPLES:
            self._wall, self._computed = self._wall[::2], self._computed[::2]
        self._wall.append(wall)
        self._computed.append(sum(seconds for _, seconds in reached.values()))
        if wall >= self._next_fit:
            self._next_fit = wall + FIT_INTERVAL
            for clock in self.agents.values():
                clock.refit()
            left = self.predict()
            self._totals = [] if left is None else [*self._totals[1 - AGREEING :], wall + left]
            least = min((step for step, _ in reached.values()), default=0)
            self.seconds_left = left if least >= MIN_SHARE * self.steps and self._agree() else None

    def predict(self) -> float | None:
        """Predict the wall time to the last step.

        None until every agent has reached a few steps.
        """
        left = [clock.seconds_left(self.steps) for clock in self.agents.values()]
        known = [seconds for seconds in left if seconds is not None]
        if not known or len(known) < len(left):
            return None
        return max(max(known), sum(known) / self._computed_at_a_time())

    def _agree(self) -> bool:
        return len(self._totals) >= AGREEING and max(self._totals) <= (1 + TOLERANCE) * min(
            self._totals
        )

    def _computed_at_a_time(self) -> float:
        """Return the seconds of agents per second of the run, over the later half of the run."""
        wall, computed = np.array(self._wall), np.array(self._computed)
        half = min(int(np.searchsorted(wall, wall[-1] / 2)), len(wall) - 2)
        passed = wall[-1] - wall[half]
        return max(float((computed[-1] - computed[half]) / passed), 0.5) if passed > 0 else 1.0


def _powers(at: FloatArray) -> FloatArray:
    return np.stack([at, at**2, at**3], axis=1)


def _nonnegative_fit(terms: FloatArray, values: FloatArray) -> FloatArray:
    """Fit by least squares with coefficients of at least 0: the best of the fits by some of the
    terms.

    SciPy's ``nnls`` does this too, but its import takes half a second, in every command.
    """
    n = terms.shape[1]
    best, least = np.zeros(n), float(values @ values)
    for size in range(1, n + 1):
        for chosen in map(list, combinations(range(n), size)):
            fit = np.linalg.lstsq(terms[:, chosen], values, rcond=None)[0]
            error = float(np.sum((values - terms[:, chosen] @ fit) ** 2))
            if error < least and (fit >= 0).all():
                best, least = np.zeros(n), error
                best[chosen] = fit
    return best
