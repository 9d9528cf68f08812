"""Compute metrics from histories; every metric is one function with its formula."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray, IntArray
from bandits.experiments.history import History
from bandits.experiments.snapshots import LEVELS, Spectrum

# Default number of steps of a moving average
WINDOW = 1000
# Part of the steps over which the final click-through rate is measured
LATE = 0.2


class Band(NamedTuple):
    """A curve with its 95 % confidence band.

    Attributes
    ----------
    x, mid, low, high : float64 (G,)
    rows : int
        Number of replications; those that diverged are excluded.
    """

    x: FloatArray
    mid: FloatArray
    low: FloatArray
    high: FloatArray
    rows: int


class Estimate(NamedTuple):
    """Mean over rows and its 95 % confidence interval (Student t); NaN ends for a single row."""

    mean: float
    low: float
    high: float

    def __neg__(self) -> Estimate:
        return Estimate(-self.mean, -self.high, -self.low)

    def __abs__(self) -> Estimate:
        return -self if self.mean < 0 else self


@lru_cache(maxsize=4096)
def t_quantile(rows: int, family: int = 1) -> float:
    """Return the quantile 1 - .025 / ``family`` of Student's t with ``rows - 1`` degrees of
    freedom.
    """
    from scipy.special import stdtrit

    return float(stdtrit(rows - 1, 1 - 0.025 / family))


def band(x: IntArray | FloatArray, values: FloatArray, alive: np.ndarray) -> Band:
    """Compute mean +- t_(n-1) s / sqrt(n) over the n running rows of ``values (G, R)``.

    A single row has no interval: low = mid = high.
    """
    kept = values[:, alive]
    n = kept.shape[1]
    grid = np.asarray(x, dtype=np.float64)
    if n == 0:
        empty = np.full(len(grid), np.nan)
        return Band(grid, empty, empty, empty, 0)
    mid = kept.mean(axis=1)
    half = t_quantile(n) * kept.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(grid))
    return Band(grid, mid, mid - half, mid + half, n)


def estimate(values: FloatArray, *, family: int = 1) -> Estimate:
    """Compute mean +- t_(n-1) s / sqrt(n) over ``values (n,)``, without NaN (diverged rows).

    All intervals of a ``family`` hold their means together in 95 % of runs (Bonferroni).
    """
    kept = values[np.isfinite(values)]
    if len(kept) == 0:
        return Estimate(float("nan"), float("nan"), float("nan"))
    mean = float(kept.mean())
    half = (
        t_quantile(len(kept), family) * float(kept.std(ddof=1)) / len(kept) ** 0.5
        if len(kept) > 1
        else float("nan")
    )
    return Estimate(mean, mean - half, mean + half)


def effective_window(history: History, window: int, *, of_counts: bool = False) -> int:
    """Return the window a curve uses: at least the spacing of the stored sums (or counts), at most
    the run.
    """
    grid = history.count_grid if of_counts else history.grid
    spacing = int(grid[1]) if len(grid) > 1 else 1
    return min(-(-window // spacing) * spacing, history.steps)


def _reached(history: History, name: str) -> FloatArray:
    return history.sums[name][: history.size]


def window_bounds(grid: IntArray | FloatArray, window: int) -> tuple[IntArray, IntArray]:
    """Return for every grid point after the first its index and that of the start of its window."""
    end = np.arange(1, len(grid))
    start = np.searchsorted(grid, grid[1:] - window, side="right") - 1
    return end, np.minimum(np.maximum(start, 0), end - 1)


def whole_windows(grid: IntArray | FloatArray, window: int) -> tuple[IntArray, IntArray]:
    """Return the grid points that end a whole window, and those at which their windows start, by
    index.
    """
    start = np.searchsorted(grid, grid - window, side="right") - 1
    end = np.flatnonzero(start >= 0)
    return end, start[end]


def replayed(history: History) -> bool:
    """Return whether a log was replayed, so that only some decisions count."""
    return "counted" in history.sums


def decisions(history: History) -> FloatArray:
    """Return the decisions that count at each grid point reached, float64 (G, R) or (G, 1): steps,
    or events.
    """
    if replayed(history):
        return _reached(history, "counted")
    return np.asarray(history.grid[: history.size, None], np.float64)


def ctr(history: History, window: int = WINDOW) -> Band:
    """Compute the moving-average click-through rate (C(t) - C(t - w)) / w, with C the cumulative
    clicks.

    At the start w = t. The window is rounded up to the grid on which sums are stored. Where a log
    is replayed, w is the number of events that count in the window: all clicks of the window
    divided by all events that count, as one replication may count none. There is no rate until one
    counts in any replication."""
    grid, clicks, n = history.grid[: history.size], _reached(history, "clicks"), decisions(history)
    end, start = window_bounds(grid, window)
    earned, counted = clicks[end] - clicks[start], n[end] - n[start]
    rate = _linear_ratio(earned, counted, history.alive) if replayed(history) else earned / counted
    return band(grid[end], rate, history.alive)


def _linear_ratio(earned: FloatArray, counted: FloatArray, alive: np.ndarray) -> FloatArray:
    """Return values (G, R) whose mean over the running rows is the ratio of the sums of ``earned``
    and ``counted``.

    Their standard error is that of the ratio (linearised). NaN where nothing counts in any running
    row.

    References
    ----------
    Cochran (1977), Sampling Techniques, section 6.4.
    """
    total = counted[:, alive].sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = earned[:, alive].sum(axis=1, keepdims=True) / total
        return np.asarray(ratio + (earned - ratio * counted) * int(alive.sum()) / total)


def per_visit(history: History, name: str, window: int = WINDOW) -> Band | None:
    """Compute a sum divided by the visits that ended in the window; None where there are no visits.

    Both are sums over all replications (see `ctr`), as one replication may end none. ``steps`` is
    the length of a visit."""
    if "visits" not in history.sums:
        return None
    grid, visits = history.grid[: history.size], _reached(history, "visits")
    sums = _of_visits(history, name)
    end, start = window_bounds(grid, window)
    earned, counted = sums[end] - sums[start], visits[end] - visits[start]
    return band(grid[end], _linear_ratio(earned, counted, history.alive), history.alive)


def per_visit_rows(history: History, name: str, *, late: bool = False) -> FloatArray | None:
    """Compute the same for the whole run, or its last fifth, float64 (R,); NaN without a visit."""
    if "visits" not in history.sums:
        return None
    visits, sums = _reached(history, "visits"), _of_visits(history, name)
    at = late_start(history.grid[: history.size]) if late else 0
    ended = visits[-1] - visits[at]
    return np.asarray((sums[-1] - sums[at]) / np.where(ended > 0, ended, np.nan))


def _of_visits(history: History, name: str) -> FloatArray:
    if name != "steps":
        return _reached(history, name)
    steps = np.broadcast_to(history.grid[: history.size, None], (history.size, history.rows))
    return np.where(np.isnan(_reached(history, "visits")), np.nan, steps)


def counted_decisions(history: History) -> Band:
    """Compute the number of decisions that count so far: of a replayed log, those that equal the
    logged ones.
    """
    n = np.broadcast_to(decisions(history), (history.size, history.rows))
    return band(history.grid[: history.size], n, history.alive)


def counted(history: History) -> FloatArray | None:
    """Return how many decisions of a replayed log count, float64 (R,).

    None where no log was replayed.
    """
    return decisions(history)[-1] if replayed(history) else None


def reference(history: History, name: str, window: int = WINDOW) -> Band:
    """Compute the moving average of ``best_value`` (oracle) or ``random_value`` (random choice)."""
    grid, sums = history.grid[: history.size], _reached(history, name)
    end, start = window_bounds(grid, window)
    return band(
        grid[end], (sums[end] - sums[start]) / (grid[end] - grid[start])[:, None], history.alive
    )


def cumulative_clicks(history: History) -> Band:
    """Compute the cumulative clicks C(t), the sum of rewards up to t."""
    return cumulative(history, "clicks")


def cumulative(history: History, name: str) -> Band:
    """Return one of the sums of a history: clicks, or ``best_value`` (oracle) or
    ``random_value``.
    """
    return band(history.grid[: history.size], _reached(history, name), history.alive)


def pseudo_regret(history: History, *, average: bool = False) -> Band:
    """Compute the sum of best_value - value from true expected rewards.

    With ``average`` divided by t.
    """
    return _regret(history, _reached(history, "best_value") - _reached(history, "value"), average)


def realised_regret(history: History, *, average: bool = False) -> Band:
    """Compute the sum of best_reward - reward under the same random numbers.

    With ``average`` divided by t.
    """
    return _regret(history, _reached(history, "best_clicks") - _reached(history, "clicks"), average)


def _regret(history: History, regret: FloatArray, average: bool) -> Band:
    grid = history.grid[: history.size]
    if average:
        return band(grid[1:], regret[1:] / grid[1:, None], history.alive)
    return band(grid, regret, history.alive)


def _window_counts(history: History, window: int) -> tuple[IntArray, IntArray]:
    """Return grid points and how often each item (or bucket) was shown in the preceding window, (H,
    R, n_counted).
    """
    grid = history.count_grid[: history.count_size]
    end, start = window_bounds(grid, window)
    return grid[end], history.counts[end] - history.counts[start]


@lru_cache(maxsize=4)
def _n_log_n(most: int) -> FloatArray:
    """Tabulate n log n from 0 to ``most``.

    Counts are small integers, and a lookup is faster than a logarithm.
    """
    n = np.arange(most + 1, dtype=np.float64)
    return np.asarray(n * np.log(np.maximum(n, 1)))


def entropy(history: History, window: int = WINDOW) -> Band:
    """Compute the selection entropy -sum p log p / log min(K, window) over the items shown in the
    window.

    1: all items are shown equally often; 0: one item only. Large catalogues are counted in buckets
    of items."""
    x, shown = _window_counts(history, window)
    return band(x, normalised_entropy(shown), history.alive)


def normalised_entropy(shown: IntArray) -> FloatArray:
    """Compute -sum p log p / log min(K, n) of counts (..., K) with sum n: 1 if uniform, 0 if
    concentrated.
    """
    total = shown.sum(axis=-1)
    some = np.maximum(total, 1)
    largest = int(shown.max(initial=1))
    # rounded up to a power of two, so that few tables are made
    table = _n_log_n(1 << (largest - 1).bit_length())
    nats = np.maximum(np.log(some) - table[shown].sum(axis=-1) / some, 0.0)
    return np.asarray(nats / np.log(np.maximum(np.minimum(shown.shape[-1], total), 2)))


def final_entropy(history: History) -> FloatArray:
    """Compute the selection entropy of the last window, float64 (R,).

    NaN in diverged rows and before any count.
    """
    _, shown = _window_counts(history, WINDOW)
    last = normalised_entropy(shown[-1]) if len(shown) else np.nan
    return np.where(history.alive, last, np.nan)


def catalogue_coverage(history: History, window: int = WINDOW) -> Band:
    """Compute the share of items (buckets in a large catalogue) shown at least once in the
    window.
    """
    x, shown = _window_counts(history, window)
    return band(x, (shown > 0).mean(axis=2), history.alive)


def _spectrum_at(history: History, step: int | None) -> Spectrum | None:
    past = [s for s in history.spectra if step is None or s.step <= step]
    return past[-1] if past else None


class Rest(NamedTuple):
    """The eigenvalues of a design matrix outside the span of the features: the ridge, up to as many
    as the matrix has columns.
    """

    ridge: float
    columns: int


def spectrum(
    history: History, step: int | None = None, arm: int | None = None, rest: Rest | None = None
) -> Band | None:
    """Return the eigenvalues of the design matrix by rank, at the last snapshot up to ``step``.

    The mid line is the median and the band the middle 80 % over rows (and arms, unless one ``arm``
    is chosen). With ``rest``, all eigenvalues of the matrix rather than those on the span of the
    features. None for an agent without a design matrix, or before its first snapshot."""
    found = _spectrum_at(history, step)
    if found is None:
        return None
    values = found.eigenvalues[history.alive] if history.alive.any() else found.eigenvalues
    if arm is not None and values.shape[1] > 1:
        if arm >= values.shape[1]:
            return None
        values = values[:, arm : arm + 1]
    if rest is not None:
        values = _with_rest(values, rest)
    flat = values.reshape(-1, values.shape[2])
    flat = flat[:, ~np.isnan(flat).all(axis=0)]
    # the same numbers, several times faster
    quantile = np.nanquantile if np.isnan(flat).any() else np.quantile
    low, mid, high = quantile(flat, [0.1, 0.5, 0.9], axis=0)
    return Band(
        np.arange(1, flat.shape[1] + 1, dtype=np.float64), mid, low, high, int(history.alive.sum())
    )


def _with_rest(values: FloatArray, rest: Rest) -> FloatArray:
    """Complete eigenvalues (R, M, m), NaN-padded, to those of the whole matrix, descending."""
    more = np.full((*values.shape[:2], max(rest.columns - values.shape[2], 0)), np.nan)
    whole = np.concatenate([values, more], axis=2)
    # a diverged row has none
    whole[np.isnan(whole) & ~np.isnan(values[:, :, :1])] = rest.ridge
    return np.asarray(-np.sort(-whole, axis=2))


def smallest_eigenvalue(history: History) -> Band | None:
    """Compute lambda_min of the design matrix over time (median over arms).

    None without a matrix.
    """
    return _of_spectra(history, lambda smallest, _: smallest)


def condition_number(history: History) -> Band | None:
    """Compute lambda_max / lambda_min over time (median over arms); None without a matrix."""
    return _of_spectra(history, lambda smallest, largest: largest / smallest)


def calibration(history: History, level: float = 0.95) -> Band | None:
    """Compute the coverage of the agent's own intervals of a level (of `LEVELS`) over the
    candidates.

    On the level the agent is calibrated, above it underconfident, below it overconfident. None for
    an agent without uncertainty, or before its first snapshot."""
    if not history.calibrations:
        return None
    inside = np.stack([c.inside[:, LEVELS.index(level)] for c in history.calibrations])
    return band(np.array([c.step for c in history.calibrations]), inside, history.alive)


def exploration_rate(history: History) -> Band | None:
    """Compute the share of decisions that are not the agent's own best estimate, at each snapshot.

    Estimated on the next rounds of the run (4 to 32); of a slate, the share of its items. None in
    runs that were stored without it, and before the first snapshot."""
    if not (checks := history.exploration_checks):
        return None
    return band(
        np.array([c.step for c in checks]), np.stack([c.explored for c in checks]), history.alive
    )


def mean_exploration_rate(history: History, step: int | None = None) -> FloatArray | None:
    """Average the exploration rate over the snapshots up to ``step``, float64 (R,).

    None where it is unknown.
    """
    known = [
        check.explored for check in history.exploration_checks if step is None or check.step <= step
    ]
    return np.asarray(np.mean(known, axis=0)) if known else None


def _of_spectra(
    history: History, of: Callable[[FloatArray, FloatArray], FloatArray]
) -> Band | None:
    if not history.spectra:
        return None
    values = [
        np.median(of(np.nanmin(s.eigenvalues, axis=2), np.nanmax(s.eigenvalues, axis=2)), axis=1)
        for s in history.spectra
    ]
    return band(np.array([s.step for s in history.spectra]), np.stack(values), history.alive)


def total(history: History, name: str) -> FloatArray:
    """Return a sum over the whole run, float64 (R,): one of ``History.SUMS``."""
    sums: FloatArray = history.sums[name][history.size - 1]
    return sums


def stopped(history: History) -> IntArray:
    """Return the last grid point that each diverged replication reached, int64 (diverged,)."""
    known = _reached(history, "clicks" if replayed(history) else "value")
    points = np.isfinite(known[:, ~history.alive]).sum(axis=0)
    steps: IntArray = history.grid[points - 1]
    return steps


def click_rate(history: History, step: int | None = None) -> FloatArray:
    """Compute clicks per step up to the last stored point (not beyond ``step``), float64 (R,).

    Where a log is replayed, per event that counts; NaN where none does.
    """
    at = history.size - 1
    if step is not None:
        at = min(at, int(np.searchsorted(history.grid, step, side="right")) - 1)
    if not replayed(history):
        return np.asarray(history.sums["clicks"][at] / max(int(history.grid[at]), 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(history.sums["clicks"][at] / history.sums["counted"][at])


def late_start(grid: IntArray) -> int:
    """Return the index of the grid point at which the last fifth of a run begins."""
    return max(min(int(np.searchsorted(grid, grid[-1] * (1 - LATE))), len(grid) - 2), 0)


def late_click_rate(history: History) -> FloatArray:
    """Compute clicks per step (or per event that counts) over the last fifth of the steps reached,
    float64 (R,).
    """
    clicks, n = _reached(history, "clicks"), decisions(history)
    at = late_start(history.grid[: history.size])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((clicks[-1] - clicks[at]) / (n[-1] - n[at]))


def optimal_choice(history: History, window: int = WINDOW) -> Band | None:
    """Compute the share of the decisions of the window that were the best choice.

    None in runs that were stored without it, and without truth.
    """
    if "optimal" not in history.sums:
        return None
    grid, optimal = history.grid[: history.size], _reached(history, "optimal")
    end, start = window_bounds(grid, window)
    share = (optimal[end] - optimal[start]) / (grid[end] - grid[start])[:, None]
    return band(grid[end], share, history.alive)


def optimal_share(history: History) -> FloatArray | None:
    """Compute the share of all decisions that were the best choice, float64 (R,).

    Any of several equally good ones counts. None where it is unknown.
    """
    if "optimal" not in history.sums:
        return None
    return np.asarray(total(history, "optimal") / max(history.step, 1))


def oracle_share(history: History) -> FloatArray:
    """Compute the share of the oracle's gain over random choice: (value - random) / (oracle -
    random), float64 (R,).

    0 is as good as random choice, 1 as good as the oracle. Expected rewards of what was shown, over
    the whole run; NaN where oracle and random choice are worth the same."""
    random = total(history, "random_value")
    room = total(history, "best_value") - random
    return np.asarray((total(history, "value") - random) / np.where(room > 0, room, np.nan))
