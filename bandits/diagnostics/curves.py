"""Curves and shares that only diagnostics draw."""

from __future__ import annotations

import math

import numpy as np

from bandits.agents import AgentParams, agent_class
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.history import History
from bandits.experiments.snapshots import BINS
from bandits.results import metrics
from bandits.results.metrics import Band

LOTS = 8  # times that shows are drawn from those counted


def effective_dimension(history: History, params: AgentParams) -> Band | None:
    """sum (1 - ridge / eigenvalue): directions of which more is known from data than from the prior; mean over arms."""
    ridge = agent_class(params).prior_precision(params)
    if not history.spectra or ridge is None:
        return None
    values = [np.nansum(np.maximum(1 - ridge / s.eigenvalues, 0), axis=2).mean(axis=1) for s in history.spectra]
    return metrics.band(np.array([s.step for s in history.spectra]), np.stack(values), history.alive)


def doubt(history: History) -> Band | None:
    """The scaled width of what the agent would have shown first, at every snapshot; None if it states no doubt."""
    return _of_belief_checks(history, [c.uncertainty for c in history.belief_checks])


def foresight(history: History) -> Band | None:
    """Share of the variance of the candidates' true worth that the agent foresaw; None if it foresees nothing."""
    return _of_belief_checks(history, [c.explained for c in history.belief_checks])


def places_by_run(history: History) -> FloatArray:
    """Shares of the truths in each tenth of the agent's beliefs at the end, (n, BINS): of the runs where it has any."""
    last = history.belief_checks[-1].pit_histogram[history.alive] if history.belief_checks else np.empty((0, BINS))
    return np.asarray(last[~np.isnan(last).any(axis=1)])


def places(history: History) -> FloatArray | None:
    """Their mean over runs, (BINS,); None if it states no doubt."""
    found = places_by_run(history)
    return found.mean(axis=0) if len(found) else None


def segment_coverage(history: History, times: int = 1) -> list[Band] | None:
    """Share of the items that each segment has been shown so often so far; None where segments are not counted."""
    if (told := history.segments) is None:
        return None
    size = told.reached(history.step)
    shares = (told.counts[:size] >= times).mean(axis=3)
    return [metrics.band(told.grid[:size], shares[:, :, g], history.alive) for g in range(told.n_segments)]


def random_coverage(history: History) -> FloatArray | None:
    """What uniformly random choices, as many as each segment has seen, would have shown it: (G,) shares of the items.

    1 - (1 - 1 / K)^n, mean over rows; NaN for who never came.
    """
    if (told := history.segments) is None or not history.alive.any():
        return None
    n = told.counts[told.reached(history.step) - 1][history.alive].sum(axis=2)
    share = 1 - (1 - 1 / history.n_items) ** n
    return np.asarray(np.where(n.any(axis=0), share.mean(axis=0), np.nan))


def segment_entropy(history: History, window: int = metrics.WINDOW) -> list[Band] | None:
    """Selection entropy within each segment, over a window no shorter than the grid it is counted on."""
    if (told := history.segments) is None:
        return None
    grid = told.grid[: told.reached(history.step)]
    end, start = metrics.window_bounds(grid, window)
    shown = told.counts[end] - told.counts[start]
    values = np.where(shown.any(axis=3), metrics.normalised_entropy(shown), np.nan)
    return [metrics.band(grid[end], values[:, :, g], history.alive) for g in range(told.n_segments)]


def traffic(history: History, steps: int = metrics.WINDOW) -> tuple[float, float]:
    """Selection entropy, and the share of the items with less than 1 % of the traffic, over so many steps at the end.

    Both depend on how much is counted, and what is kept may be of more steps: then so many of them are drawn by lot.
    """
    shown = _late(history.count_grid[: history.count_size], history.counts, history.alive, steps)
    if not len(shown):
        return math.nan, math.nan
    share = shown / np.maximum(shown.sum(axis=1, keepdims=True), 1)
    return float(metrics.normalised_entropy(shown).mean()), float((share < 0.01).mean())


def segment_traffic(history: History, steps: int = metrics.WINDOW) -> FloatArray | None:
    """Selection entropy within each segment over so many steps at the end, likewise: (G,), NaN for who never came.

    None where segments are not counted.
    """
    if (told := history.segments) is None:
        return None
    shown = _late(told.grid[: told.reached(history.step)], told.counts, history.alive, steps)
    came = shown.any(axis=2)
    values = np.where(came, metrics.normalised_entropy(shown), 0.0).sum(axis=0)
    return np.asarray(np.where(came.any(axis=0), values / np.maximum(came.sum(axis=0), 1), np.nan))


def _late(grid: IntArray, counts: IntArray, alive: BoolArray, steps: int) -> IntArray:
    """Shows of the last ``steps`` steps in the rows alive (or lots of them), from cumulative counts (n, R, ..., K)."""
    n = len(grid) - 1
    start = max(0, min(int(np.searchsorted(grid, grid[n] - steps, side="right")) - 1, n - 1))
    shown: IntArray = (counts[n] - counts[start])[alive]
    kept = int(grid[n] - grid[start])
    if kept <= steps or not len(shown):
        return shown
    dice = np.random.default_rng(0)
    rows = shown.reshape(-1, shown.shape[-1])
    drawn = [_drawn(row, int(row.sum()) * steps // kept, dice) for row in rows]
    lots = np.stack(drawn, axis=1).reshape(LOTS, *shown.shape)
    return lots.reshape(-1, *shown.shape[1:])


def _drawn(shown: IntArray, n: int, dice: np.random.Generator) -> IntArray:
    """Counts (K,) of ``n`` shows drawn from those counted without putting any back, several times: (LOTS, K)."""
    return np.asarray(dice.multivariate_hypergeometric(shown, n, size=LOTS, method="marginals"))


def _of_belief_checks(history: History, values: list[FloatArray]) -> Band | None:
    if not values or np.isnan(np.stack(values)).all():
        return None
    steps = np.array([c.step for c in history.belief_checks])
    known = np.isfinite(np.stack(values)[:, history.alive]).all(axis=1)
    if not known.any():
        return None
    return metrics.band(steps[known], np.stack(values)[known], history.alive)
