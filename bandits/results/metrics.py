"""Histories -> numbers. Every metric is one function with its formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray, IntArray
from bandits.experiments.history import History
from bandits.experiments.snapshots import LEVELS, Spectrum

WINDOW = 1000  # steps of a moving average, unless said otherwise


class Band(NamedTuple):
    """A curve with its uncertainty; the only thing a curve figure accepts.

    Attributes
    ----------
    x, mid, low, high : float64 (G,)
    rows : int
        Runs it rests on; rows that stopped are left out.
    """

    x: FloatArray
    mid: FloatArray
    low: FloatArray
    high: FloatArray
    rows: int


class Estimate(NamedTuple):
    """A mean over rows and its 95 % interval (Student t); of one row no interval is known (NaN)."""

    mean: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Agent a against agent b on the same users with the same luck.

    Attributes
    ----------
    difference : Estimate
        Clicks a earned more than b, paired by row.
    rows : int
        Rows that both have finished.
    probability_better : float
        Probability that a's expected clicks exceed b's, given the rows (Student t). One half where the rows cannot
        tell: fewer than two, or all with the very same difference.
    p_value : float
        Two-sided paired t test of no difference; 1 where the rows cannot tell.
    break_even_step : int or None
        Step from which a's mean cumulative clicks stay ahead of b's: 0 if they always were, None if never.
    break_even_interval : tuple of int or None
        95 % bootstrap interval over rows; None if under 97.5 % of the resamples break even.
    exploration_cost : float
        The most clicks a was ever behind on average.
    """

    difference: Estimate
    rows: int
    probability_better: float
    p_value: float
    break_even_step: int | None
    break_even_interval: tuple[int, int] | None
    exploration_cost: float


@lru_cache(maxsize=4096)
def _t(rows: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(rows - 1, 0.975))


def band(x: IntArray | FloatArray, values: FloatArray, alive: np.ndarray) -> Band:
    """mean +- t_(n-1) s / sqrt(n) over the n living rows of ``values (G, R)``.

    One row has no interval: low = mid = high.
    """
    kept = values[:, alive]
    n = kept.shape[1]
    grid = np.asarray(x, dtype=np.float64)
    if n == 0:
        empty = np.full(len(grid), np.nan)
        return Band(grid, empty, empty, empty, 0)
    mid = kept.mean(axis=1)
    half = _t(n) * kept.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(grid))
    return Band(grid, mid, mid - half, mid + half, n)


def estimate(values: FloatArray) -> Estimate:
    """mean +- t_(n-1) s / sqrt(n) over ``values (n,)``; NaN rows (stopped) are left out."""
    kept = values[np.isfinite(values)]
    if len(kept) == 0:
        return Estimate(float("nan"), float("nan"), float("nan"))
    mean = float(kept.mean())
    half = _t(len(kept)) * float(kept.std(ddof=1)) / len(kept) ** 0.5 if len(kept) > 1 else float("nan")
    return Estimate(mean, mean - half, mean + half)


def mean_lead(a: History, b: History) -> float:
    """Clicks a has earned more than b so far, mean over the rows of both: the quick part of `compare`."""
    at = min(a.size, b.size) - 1
    both = a.alive & b.alive
    return float((a.sums["clicks"][at] - b.sums["clicks"][at])[both].mean()) if both.any() else float("nan")


def effective_window(history: History, window: int, *, of_counts: bool = False) -> int:
    """The window that a curve really has: no shorter than the grid its sums (or arm counts) are stored on, no longer
    than the race."""
    grid = history.count_grid if of_counts else history.grid
    spacing = int(grid[1]) if len(grid) > 1 else 1
    return min(-(-window // spacing) * spacing, history.steps)


def _reached(history: History, name: str) -> FloatArray:
    return history.sums[name][: history.size]


def window_bounds(grid: IntArray, window: int) -> tuple[IntArray, IntArray]:
    """For every grid point after the first: its index and that of the start of its window."""
    end = np.arange(1, len(grid))
    start = np.searchsorted(grid, grid[1:] - window, side="right") - 1
    return end, np.minimum(np.maximum(start, 0), end - 1)


def ctr(history: History, window: int = WINDOW) -> Band:
    """Moving-average click rate: (C(t) - C(t - w)) / w, with C the cumulative clicks (w = t at the start).

    The window is rounded up to the grid on which sums are stored.
    """
    grid, clicks = history.grid[: history.size], _reached(history, "clicks")
    end, start = window_bounds(grid, window)
    rate = (clicks[end] - clicks[start]) / (grid[end] - grid[start])[:, None]
    return band(grid[end], rate, history.alive)


def reference(history: History, name: str, window: int = WINDOW) -> Band:
    """Moving average of ``best_value`` (oracle) or ``random_value`` (random): thin lines in a click-rate plot."""
    grid, sums = history.grid[: history.size], _reached(history, name)
    end, start = window_bounds(grid, window)
    return band(grid[end], (sums[end] - sums[start]) / (grid[end] - grid[start])[:, None], history.alive)


def cumulative_clicks(history: History) -> Band:
    """C(t) = sum of rewards up to t."""
    return band(history.grid[: history.size], _reached(history, "clicks"), history.alive)


def pseudo_regret(history: History, *, average: bool = False) -> Band:
    """sum of best_value - value: from the simulator's truth, not from the coin. ``average``: divided by t."""
    return _regret(history, _reached(history, "best_value") - _reached(history, "value"), average)


def realised_regret(history: History, *, average: bool = False) -> Band:
    """sum of best_reward - reward: clicks of the optimal slate with the same luck, less those earned."""
    return _regret(history, _reached(history, "best_clicks") - _reached(history, "clicks"), average)


def _regret(history: History, regret: FloatArray, average: bool) -> Band:
    grid = history.grid[: history.size]
    if average:
        return band(grid[1:], regret[1:] / grid[1:, None], history.alive)
    return band(grid, regret, history.alive)


def _window_counts(history: History, window: int) -> tuple[IntArray, IntArray]:
    """Grid points and how often each item (or shelf) was shown in the window before, (H, R, n_counted)."""
    grid = history.count_grid[: history.count_size]
    end, start = window_bounds(grid, window)
    return grid[end], history.counts[end] - history.counts[start]


@lru_cache(maxsize=4)
def _n_log_n(most: int) -> FloatArray:
    """n log n of 0 to ``most``: looked up, because counts are small whole numbers and logarithms are slow."""
    n = np.arange(most + 1, dtype=np.float64)
    return np.asarray(n * np.log(np.maximum(n, 1)))


def entropy(history: History, window: int = WINDOW) -> Band:
    """Selection entropy: -sum p log p over the items shown in the window, divided by log min(K, window).

    1: everything is shown equally often; 0: one item only. Of a large catalogue, shelves take the place of items.
    """
    x, shown = _window_counts(history, window)
    return band(x, normalised_entropy(shown), history.alive)


def normalised_entropy(shown: IntArray) -> FloatArray:
    """-sum p log p / log min(K, n) of counts (..., K) that sum to n: 1 if all are equal, 0 if there is but one."""
    total = shown.sum(axis=-1)
    some = np.maximum(total, 1)
    largest = int(shown.max(initial=1))
    table = _n_log_n(1 << (largest - 1).bit_length())  # a power of two: few tables do for all windows
    nats = np.maximum(np.log(some) - table[shown].sum(axis=-1) / some, 0.0)
    return np.asarray(nats / np.log(np.maximum(np.minimum(shown.shape[-1], total), 2)))


def coverage(history: History, window: int = WINDOW) -> Band:
    """Share of the items (of a large catalogue, of the shelves) shown at least once in the window."""
    x, shown = _window_counts(history, window)
    return band(x, (shown > 0).mean(axis=2), history.alive)


def _spectrum_at(history: History, step: int | None) -> Spectrum | None:
    past = [s for s in history.spectra if step is None or s.step <= step]
    return past[-1] if past else None


def spectrum(history: History, step: int | None = None, arm: int | None = None) -> Band | None:
    """Eigenvalues of the design matrix by rank, at the last snapshot up to ``step``.

    The mid line is the median and the band the middle 80 % over rows (and arms, unless one ``arm`` is chosen).
    None for an agent that has no design matrix, or before its first snapshot.
    """
    found = _spectrum_at(history, step)
    if found is None:
        return None
    values = found.eigenvalues[history.alive] if history.alive.any() else found.eigenvalues
    if arm is not None and values.shape[1] > 1:
        if arm >= values.shape[1]:
            return None
        values = values[:, arm : arm + 1]
    flat = values.reshape(-1, values.shape[2])
    flat = flat[:, ~np.isnan(flat).all(axis=0)]
    low, mid, high = np.nanquantile(flat, [0.1, 0.5, 0.9], axis=0)
    return Band(np.arange(1, flat.shape[1] + 1, dtype=np.float64), mid, low, high, int(history.alive.sum()))


def smallest_eigenvalue(history: History) -> Band | None:
    """lambda_min of the design matrix over time; per arm: the median over arms. None without a matrix."""
    return _of_spectra(history, lambda smallest, _: smallest)


def condition_number(history: History) -> Band | None:
    """lambda_max / lambda_min over time; per arm: the median over arms. None without a matrix."""
    return _of_spectra(history, lambda smallest, largest: largest / smallest)


def calibration(history: History, level: float = 0.95) -> Band | None:
    """Share of the candidates whose expected reward lies in the agent's own interval of that level (of `LEVELS`).

    An honest agent's curve lies on the level: above, it doubts too much; below, it is too sure of itself. None for an
    agent that states no doubt, or before its first snapshot.
    """
    if not history.calibrations:
        return None
    inside = np.stack([c.inside[:, LEVELS.index(level)] for c in history.calibrations])
    return band(np.array([c.step for c in history.calibrations]), inside, history.alive)


def _of_spectra(history: History, of: Callable[[FloatArray, FloatArray], FloatArray]) -> Band | None:
    if not history.spectra:
        return None
    values = [
        np.median(of(np.nanmin(s.eigenvalues, axis=2), np.nanmax(s.eigenvalues, axis=2)), axis=1)
        for s in history.spectra
    ]
    return band(np.array([s.step for s in history.spectra]), np.stack(values), history.alive)


def total(history: History, name: str) -> FloatArray:
    """A sum over the whole run, float64 (R,): one of ``History.SUMS``."""
    sums: FloatArray = history.sums[name][history.size - 1]
    return sums


def stopped(history: History) -> IntArray:
    """Last point of the grid that each run which ended early has reached, int64 (stopped runs,)."""
    lived = np.isfinite(_reached(history, "value")[:, ~history.alive]).sum(axis=0)
    steps: IntArray = history.grid[lived - 1]
    return steps


def click_rate(history: History, step: int | None = None) -> FloatArray:
    """Clicks per step up to the last stored point (not beyond ``step``), float64 (R,)."""
    at = history.size - 1
    if step is not None:
        at = min(at, int(np.searchsorted(history.grid, step, side="right")) - 1)
    rate: FloatArray = history.sums["clicks"][at] / max(int(history.grid[at]), 1)
    return rate


def oracle_share(history: History) -> FloatArray:
    """Share of the oracle's gain over random choice: (value - random) / (oracle - random), float64 (R,).

    0 is as good as random choice, 1 as good as the oracle. Expected rewards of what was shown, over the whole run;
    NaN where oracle and random choice are worth the same.
    """
    random = total(history, "random_value")
    room = total(history, "best_value") - random
    return np.asarray((total(history, "value") - random) / np.where(room > 0, room, np.nan))


def compare(a: History, b: History) -> Comparison:
    """Paired comparison of two agents on the same rows, up to the last step both have reached."""
    size = min(a.size, b.size)
    both = a.alive & b.alive
    gap = (a.sums["clicks"][:size] - b.sums["clicks"][:size])[:, both]  # (G, n)
    n = gap.shape[1]
    difference = estimate(gap[-1])
    better, p = paired_test(gap[-1])
    mean = gap.mean(axis=1) if n else np.zeros(size)
    at = _ahead_for_good(mean[None])[0]
    return Comparison(
        difference=difference,
        rows=n,
        probability_better=better,
        p_value=p,
        break_even_step=None if at < 0 else int(a.grid[at]),
        break_even_interval=_break_even_interval(gap, a.grid) if at >= 0 and n > 1 else None,
        exploration_cost=max(0.0, -float(mean.min())) if n else 0.0,
    )


def corrected(comparison: Comparison, p_value: float) -> Estimate:
    """The difference with an interval as wide as the correction of its p-value asks for (Holm, say).

    At the level 1 - .05 p / p_value, where p is the pair's own: it holds zero if and only if ``p_value`` is above .05.
    """
    from scipy.special import stdtrit

    d, n, p = comparison.difference, comparison.rows, comparison.p_value
    if n < 2 or not math.isfinite(d.low) or p_value <= p:
        return d
    share = max(p / p_value, 1e-6)
    half = (d.high - d.low) / 2 * float(stdtrit(n - 1, 1 - 0.025 * share)) / _t(n)
    return Estimate(d.mean, d.mean - half, d.mean + half)


def paired_test(gap: FloatArray) -> tuple[float, float]:
    """Of paired differences (n,): probability that their mean is above zero, and two-sided p-value (Student t).

    (0.5, 1) where the rows cannot tell.
    """
    from scipy.special import stdtr

    n = len(gap)
    if n < 2 or (spread := float(gap.std(ddof=1))) == 0:
        return 0.5, 1.0
    t = float(gap.mean()) / (spread / n**0.5)
    return float(stdtr(n - 1, t)), float(2 * stdtr(n - 1, -abs(t)))


def _ahead_for_good(gaps: FloatArray) -> IntArray:
    """Index of the point from which each curve of ``gaps (B, G)`` stays positive; 0 if it always was, -1 if never."""
    behind = gaps[:, 1:] <= 0
    if behind.shape[1] == 0:
        return np.full(len(gaps), -1)
    last = np.where(behind.any(axis=1), behind.shape[1] - behind[:, ::-1].argmax(axis=1), 0)  # after the last <= 0
    out = np.where(last == 0, 0, last + 1)
    return np.where(behind[:, -1], -1, out)


def _break_even_interval(gap: FloatArray, grid: IntArray) -> tuple[int, int] | None:
    n = gap.shape[1]
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=1000)  # rows, with replacement
    at = _ahead_for_good(draws @ gap.T / n)
    never = len(grid)
    low, high = np.quantile(np.where(at < 0, never, at), [0.025, 0.975], method="nearest")
    return None if high == never else (int(grid[int(low)]), int(grid[int(high)]))


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down correction: adjusted p-values in the order given.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    out, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        out[int(i)] = running
    return out
