"""Keep the latest observations of every row, for models that are fitted afresh on a schedule."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bandits.base.params import param
from bandits.base.types import FloatArray, IntArray


def refit_params() -> tuple[Any, Any, Any]:
    """Declare the schedule of fits: ``every``, ``fit_growth`` and ``history``."""
    return (
        param(
            50,
            title="Fit interval",
            symbol=r"\Delta",
            unit="observations",
            ge=1,
            le=1_000_000,
            typical=(10, 1000),
            structural=True,
            help=(
                "Number of new observations before a fit, at least. Larger values are faster and "
                "follow later; usually 10 to 1,000."
            ),
        ),
        param(
            0.1,
            title="Fit growth",
            ge=0,
            le=10,
            structural=True,
            help=(
                "New observations before a fit, as a share of those of the last fit. Larger values "
                "are faster and follow later; usually 0.05 to 1; 0 fits at every fit interval."
            ),
        ),
        param(
            5000,
            title="History size",
            unit="observations",
            ge=10,
            le=100_000,
            typical=(500, 20_000),
            structural=True,
            help=(
                "Number of latest observations that a fit uses. Larger values are more exact and "
                "slower; usually 1,000 to 20,000."
            ),
        ),
    )


class Observations:
    """The observations of the last fit of every row, and those after it.

    Old ones are dropped at a fit alone, so that the last fit can be repeated at any time.

    Parameters
    ----------
    rows, n_features, slate : int
        R, D and S.
    every : int
    growth : float
    history : int
        See `refit_params`.
    window : int, optional
        Steps after which an observation is dropped.

    Attributes
    ----------
    x : float64 (R, n, D)
    item, step : int64 (R, n)
    reward, exposure : float64 (R, n)
    count, fitted, fits : int64 (R,)
        Observations kept, those among them that the last fit used, and fits so far.
    """

    STATE: ClassVar = ("x", "item", "step", "reward", "exposure", "count", "fitted", "fits")

    def __init__(
        self,
        rows: int,
        n_features: int,
        slate: int,
        *,
        every: int,
        growth: float,
        history: int,
        window: int | None,
    ) -> None:
        self.every, self.growth, self.history, self.window = every, growth, history, window
        n = _capacity(slate, every, growth, history)
        self.x = np.zeros((rows, n, n_features))
        self.item, self.step = np.zeros((2, rows, n), np.int64)
        self.reward, self.exposure = np.zeros((2, rows, n))
        self.count, self.fitted, self.fits = np.zeros((3, rows), np.int64)

    @staticmethod
    def memory(n_features: int, slate: int, *, every: int, growth: float, history: int) -> int:
        """Compute the bytes per row."""
        return 8 * _capacity(slate, every, growth, history) * (n_features + 4) + 24

    def add(
        self, row: int, step: int, x: FloatArray, item: int, reward: float, exposure: float
    ) -> None:
        """Add one observation, features ``x (D,)``."""
        at = self.count[row]
        self.x[row, at], self.item[row, at], self.step[row, at] = x, item, step
        self.reward[row, at], self.exposure[row, at] = reward, exposure
        self.count[row] += 1

    def due(self, row: int) -> bool:
        """Return whether a row has to be fitted."""
        new = self.count[row] - self.fitted[row]
        return bool(new >= max(self.every, self.growth * self.fitted[row]))

    def begin_fit(self, row: int, step: int) -> None:
        """Drop what is too old, and count all others as fitted."""
        n = int(self.count[row])
        drop = max(n - self.history, 0)
        if self.window is not None:
            drop = max(drop, int((self.step[row, :n] <= step - self.window).sum()))
        for name in ("x", "item", "step", "reward", "exposure"):
            kept = getattr(self, name)[row]
            kept[: n - drop] = kept[drop:n].copy()
        self.count[row] = self.fitted[row] = n - drop
        self.fits[row] += 1

    def of_fit(self, row: int) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
        """Return features, items, rewards and exposures of the last fit, (n, D) and (n,)."""
        n = self.fitted[row]
        return self.x[row, :n], self.item[row, :n], self.reward[row, :n], self.exposure[row, :n]


def _capacity(slate: int, every: int, growth: float, history: int) -> int:
    """Count the observations that are kept at most: those of a fit, and new ones until the next."""
    return history + max(every, int(np.ceil(growth * history))) + slate


def planned_fits(every: int, growth: float, history: int, observations: int) -> int:
    """Count the fits of so many observations."""
    n = fits = used = 0
    while n + (new := max(every, int(np.ceil(growth * used)))) <= observations:
        n, fits = n + new, fits + 1
        used = min(n, history)
    return fits
