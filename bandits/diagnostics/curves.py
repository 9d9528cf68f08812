"""Diagnostic quantities of one agent over time, as bands.

Those that the Arena draws too are in `results.metrics`.
"""

from __future__ import annotations

import math

import numpy as np

from bandits.agents import AgentParams, agent_class
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.history import History
from bandits.experiments.snapshots import BINS
from bandits.results import metrics
from bandits.results.metrics import Band

# of the impressions, where the stored counts span more steps than are compared
RESAMPLES = 8


def root_condition_number(history: History) -> Band | None:
    """Compute √(λ max / λ min) over time: a ratio of standard deviations.

    None without a design matrix.
    """
    band = metrics.condition_number(history)
    if band is None:
        return None
    mid, low, high = (np.sqrt(np.maximum(edge, 0)) for edge in (band.mid, band.low, band.high))
    return band._replace(mid=mid, low=low, high=high)


def effective_dimension(history: History, params: AgentParams) -> Band | None:
    """Compute Σ (1 − λ / eigenvalue) over time, with the ridge λ; mean over arms.

    None without a design matrix.

    It counts the directions that data determine rather than the prior.
    """
    ridge = agent_class(params).prior_precision(params)
    if not history.spectra or ridge is None:
        return None
    values = [
        np.nansum(np.maximum(1 - ridge / s.eigenvalues, 0), axis=2).mean(axis=1)
        for s in history.spectra
    ]
    return metrics.band(
        np.array([s.step for s in history.spectra]), np.stack(values), history.alive
    )


def exploration_bonus(history: History) -> Band | None:
    """Return the bonus (or posterior standard deviation) of the chosen arm over time.

    None if none is reported.
    """
    return _of_belief_checks(history, [c.uncertainty for c in history.belief_checks])


def width_bound(history: History) -> Band | None:
    """Compute √(1 / λ min) over time: the largest confidence width √(x′A⁻¹x) of features x of norm
    1.

    With several models, the smallest eigenvalue of all of them, so that the bound holds whichever
    arm is chosen. None without a design matrix."""
    if not history.spectra:
        return None
    smallest = np.stack([np.nanmin(s.eigenvalues, axis=(1, 2)) for s in history.spectra])
    values = 1 / np.sqrt(np.where(smallest > 0, smallest, np.nan))
    return metrics.band(np.array([s.step for s in history.spectra]), values, history.alive)


def random_regret(history: History) -> Band:
    """Compute the cumulative regret of uniformly random choices for the same users."""
    sums = history.sums
    regret = (sums["best_value"] - sums["random_value"])[: history.size]
    return metrics.band(history.grid[: history.size], regret, history.alive)


def predictive_r2(history: History) -> Band | None:
    """Return the explained variance of the candidates' true rewards over time.

    None without predictions.
    """
    return _of_belief_checks(history, [c.explained for c in history.belief_checks])


def pit_histogram_by_replication(history: History) -> FloatArray:
    """Return the final PIT histogram of every replication that has one: shares, (n, BINS)."""
    last = (
        history.belief_checks[-1].pit_histogram[history.alive]
        if history.belief_checks
        else np.empty((0, BINS))
    )
    return np.asarray(last[~np.isnan(last).any(axis=1)])


def pit_histogram(history: History) -> FloatArray | None:
    """Average the final histogram of the probability integral transform over replications, (BINS,).

    Each bin holds the share of true rewards in that tenth of the agent's predictive distribution;
    None if it reports no uncertainty."""
    shares = pit_histogram_by_replication(history)
    return shares.mean(axis=0) if len(shares) else None


def segment_coverage(history: History, times: int = 1) -> list[Band] | None:
    """Compute the share of items shown to each segment at least ``times`` times so far.

    None where segments are not counted.
    """
    if (segments := history.segments) is None:
        return None
    size = segments.reached(history.step)
    shares = (segments.counts[:size] >= times).mean(axis=3)
    return [
        metrics.band(segments.grid[:size], shares[:, :, g], history.alive)
        for g in range(segments.n_segments)
    ]


def random_coverage(history: History) -> FloatArray | None:
    """Compute the coverage of as many uniformly random choices as each segment has seen: (G,)
    shares of the items.

    1 − (1 − 1 / K)^n, mean over replications; NaN for a segment without visitors.
    """
    if (segments := history.segments) is None or not history.alive.any():
        return None
    n = segments.counts[segments.reached(history.step) - 1][history.alive].sum(axis=2)
    share = 1 - (1 - 1 / history.n_items) ** n
    return np.asarray(np.where(n.any(axis=0), share.mean(axis=0), np.nan))


def segment_entropy(history: History, window: int = metrics.WINDOW) -> list[Band] | None:
    """Compute the selection entropy within each segment, over a window no shorter than the grid of
    the counts.
    """
    if (segments := history.segments) is None:
        return None
    grid = segments.grid[: segments.reached(history.step)]
    end, start = metrics.window_bounds(grid, window)
    shown = segments.counts[end] - segments.counts[start]
    values = np.where(shown.any(axis=3), metrics.normalised_entropy(shown), np.nan)
    return [
        metrics.band(grid[end], values[:, :, g], history.alive) for g in range(segments.n_segments)
    ]


def recent_entropy(history: History, steps: int = metrics.WINDOW) -> tuple[float, float]:
    """Compute, over the last ``steps`` steps, selection entropy and the share of items below 1 % of
    the traffic.

    Both depend on the number of impressions. Where the stored counts span more steps, as many are
    drawn from them."""
    shown = _recent_counts(
        history.count_grid[: history.count_size], history.counts, history.alive, steps
    )
    if not len(shown):
        return math.nan, math.nan
    share = shown / np.maximum(shown.sum(axis=1, keepdims=True), 1)
    return float(metrics.normalised_entropy(shown).mean()), float((share < 0.01).mean())


def recent_segment_entropy(history: History, steps: int = metrics.WINDOW) -> FloatArray | None:
    """Compute the selection entropy within each segment over the last ``steps`` steps likewise,
    (G,).

    NaN for a segment without visitors; None where segments are not counted.
    """
    if (segments := history.segments) is None:
        return None
    shown = _recent_counts(
        segments.grid[: segments.reached(history.step)], segments.counts, history.alive, steps
    )
    visited = shown.any(axis=2)
    values = np.where(visited, metrics.normalised_entropy(shown), 0.0).sum(axis=0)
    return np.asarray(
        np.where(visited.any(axis=0), values / np.maximum(visited.sum(axis=0), 1), np.nan)
    )


def _recent_counts(grid: IntArray, counts: IntArray, alive: BoolArray, steps: int) -> IntArray:
    """Count impressions of the last ``steps`` steps in the rows alive, from cumulative counts (n,
    R, ..., K).

    Where the grid is wider than that, return `RESAMPLES` random subsets of that size for every row.
    """
    last, (_, starts) = len(grid) - 1, metrics.window_bounds(grid, steps)
    start = starts[-1] if len(starts) else 0
    shown: IntArray = (counts[last] - counts[start])[alive]
    spanned = int(grid[last] - grid[start])
    if spanned <= steps or not len(shown):
        return shown
    rng = np.random.default_rng(0)
    rows = shown.reshape(-1, shown.shape[-1])
    subsets = [_subsets(row, int(row.sum()) * steps // spanned, rng) for row in rows]
    drawn = np.stack(subsets, axis=1).reshape(RESAMPLES, *shown.shape)
    return drawn.reshape(-1, *shown.shape[1:])


def _subsets(shown: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw ``n`` of the impressions counted in ``shown (K,)`` without replacement:
    (RESAMPLES, K).
    """
    return np.asarray(rng.multivariate_hypergeometric(shown, n, size=RESAMPLES, method="marginals"))


def _of_belief_checks(history: History, values: list[FloatArray]) -> Band | None:
    if not values or np.isnan(np.stack(values)).all():
        return None
    steps = np.array([c.step for c in history.belief_checks])
    known = np.isfinite(np.stack(values)[:, history.alive]).all(axis=1)
    if not known.any():
        return None
    return metrics.band(steps[known], np.stack(values)[known], history.alive)
