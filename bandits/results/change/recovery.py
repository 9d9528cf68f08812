"""How long agents take to recover from the changes of a simulator.

An agent has recovered when the expected reward of what it shows, averaged over the last 500 steps,
is back at 95 % of that of the best choice of the moment. Its interval inverts a studentised
bootstrap over replications [1]_: the step is above the interval if the shortfall is significant up
to there, and below it if the excess is. Coverage is measured in `tests/results/test_recovery.py`.

References
----------
.. [1] Efron, Tibshirani (1993), An introduction to the bootstrap, section 12.5 (bootstrap-t).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bandits.base.formatting import count, percent
from bandits.base.types import BoolArray, FloatArray
from bandits.experiments.history import History
from bandits.results.metrics import whole_windows
from bandits.results.run import Run
from bandits.simulators.base import SimulatorParams

WINDOW = 500  # steps
LEVEL = 0.95  # of the optimum
# with fewer replications the interval covers less than stated
MIN_ROWS = 8
RESAMPLES = 400


class Recovery(NamedTuple):
    """Steps from the last change until an agent is back at 95 % of the optimum.

    Attributes
    ----------
    step : int or None
        Of the mean over replications; 0 if the change cost less than that; None: not within the
        run.
    low, high : int or None
        95 % interval; ``high`` is None if its end lies beyond the run. Both are None with fewer
        than `MIN_ROWS` replications, or if the whole interval lies beyond it.
    recovered_share : float
        Share of the replications that recovered within the run, each by itself.
    """

    step: int | None
    low: int | None
    high: int | None
    recovered_share: float


def last_change(params: SimulatorParams) -> int | None:
    """Return the step at which the last change comes to rest; None without one.

    Seasons never rest.
    """
    span = change_span(params)
    return None if span is None else span[1]


def change_span(params: SimulatorParams) -> tuple[int, int] | None:
    """Return the steps at which the last change begins and comes to rest; None without one.

    Seasons never rest.
    """
    spans = [
        (change.begins, change.ends)
        for change in params.all_changes.values()
        if change.ends is not None
    ]
    return max(spans, key=lambda span: (span[1], span[0]), default=None)


def recovery(result: Run, label: str) -> Recovery | None:
    """Compute how long an agent takes to recover from the last change.

    None without steps after one.

    Parameters
    ----------
    result : Run
    label : str
        Of the agent.
    """
    change = last_change(result.experiment.simulator)
    return None if change is None else recovery_from(result.histories[label], change)


def recovery_from(history: History, change: int, *, family: int = 1) -> Recovery | None:
    """Compute the recovery from a change at a step; None if fewer than `WINDOW` steps follow it.

    A window begins and ends at stored steps, and holds none before the change. All intervals of a
    ``family`` hold together in 95 % of runs (Bonferroni)."""
    grid = history.grid[: history.size]
    ends, starts = whole_windows(grid, WINDOW)
    after = grid[starts] >= change
    ends, starts = ends[after], starts[after]
    if len(ends) == 0 or not history.alive.any():
        return None
    shown, best = (history.sums[name][:, history.alive] for name in ("value", "best_value"))
    gap = shown[ends] - shown[starts] - LEVEL * (best[ends] - best[starts])  # (G, R)
    mean = gap.mean(axis=1)

    def first(there: BoolArray) -> int | None:
        at = int(there.argmax())
        return (0 if at == 0 else int(grid[ends[at]]) - change) if there.any() else None

    low, high = _band(gap, family) if gap.shape[1] >= MIN_ROWS else (None, None)
    return Recovery(
        step=first(mean >= 0),
        low=None if high is None else first(high >= 0),
        high=None if low is None else first(low >= 0),
        recovered_share=float((gap >= 0).any(axis=0).mean()),
    )


class Before(NamedTuple):
    """How close to the optimum an agent was before a change.

    Attributes
    ----------
    share : float
        Of the optimum, in the last `WINDOW` steps before the change; of the means over
        replications.
    reached : bool
        Whether it was at `LEVEL` in any window of `WINDOW` steps before the change.
    """

    share: float
    reached: bool


def before_change(history: History, begins: int) -> Before | None:
    """Compute how close to the optimum an agent was before a change.

    None if fewer than `WINDOW` steps precede it.
    """
    grid = history.grid[: history.size]
    ends, starts = whole_windows(grid[grid <= begins], WINDOW)
    if not len(ends) or not history.alive.any():
        return None
    shown, best = (
        history.sums[name][:, history.alive].mean(axis=1) for name in ("value", "best_value")
    )
    earned, possible = shown[ends] - shown[starts], best[ends] - best[starts]
    return Before(
        float(earned[-1] / possible[-1]) if possible[-1] > 0 else math.nan,
        bool((earned >= LEVEL * possible).any()),
    )


def _band(gap: FloatArray, family: int) -> tuple[FloatArray, FloatArray]:
    """Compute the ends of 95 % bootstrap-t intervals of the mean of ``gap (G, R)`` at each step,
    two of (G,).
    """
    R = gap.shape[1]
    weights = (
        np.random.default_rng(0).multinomial(R, np.full(R, 1 / R), size=RESAMPLES * family).T / R
    )
    mean, error = gap.mean(axis=1), gap.std(axis=1, ddof=1) / math.sqrt(R)
    means = gap @ weights
    errors = np.sqrt(np.maximum(np.square(gap) @ weights - means**2, 0.0) / (R - 1))
    t = (means - mean[:, None]) / np.where(errors > 0, errors, np.inf)
    low, high = np.quantile(t, [0.025 / family, 1 - 0.025 / family], axis=1)
    return mean - high * error, mean - low * error


def sentences(result: Run) -> list[str]:
    """State when each agent recovered from the last change, and which never was where it could
    return to.
    """
    every = {
        label: recovery(result, label) for label in result.histories if competes(result, label)
    }
    found = {label: r for label, r in every.items() if r is not None}
    span = change_span(result.experiment.simulator)
    if span is None or not found:
        return []
    begins, ends = span
    missing = [label for label, r in found.items() if r.step is None]
    never = {
        label: _never_there(label, before_change(result.histories[label], begins))
        for label in missing
    }
    never = {label: text for label, text in never.items() if text}
    parts = [
        f"{label} {_spoken(r, _reached(result, label))}"
        for label, r in found.items()
        if label not in never
    ]
    meaning = f"within {percent(1 - LEVEL)} of the best choice over {WINDOW} steps"
    change = f"at step {count(begins)} ({meaning})"
    if ends > begins:
        change = (
            f"from step {count(begins)} to {count(ends)} ({meaning}, counted from step "
            f"{count(ends)})"
        )
    return [
        *([f"Recovery from the change {change}: {'; '.join(parts)}."] if parts else []),
        *never.values(),
    ]


def _never_there(label: str, before: Before | None) -> str:
    """State that an agent cannot recover because it was never at `LEVEL`; empty if it was."""
    if before is None or before.reached or math.isnan(before.share):
        return ""
    return (
        f"{label} had nothing to recover: it never reached {percent(LEVEL)} of the best choice "
        f"before the change ({percent(before.share)} in the last {WINDOW} steps before it)."
    )


def in_words(result: Run, label: str) -> str:
    """State when an agent recovered from the last change, for a cell of a table."""
    found = recovery(result, label) if competes(result, label) else None
    if found is None:
        return "–"
    return _spoken(found, _reached(result, label))


def competes(result: Run, label: str) -> bool:
    """Return whether an agent does not know the truth, and finished in some replication."""
    agent = result.experiment.agent_class(result.experiment.labels.index(label))
    return "truth" not in agent.needs and bool(result.histories[label].alive.any())


def _reached(result: Run, label: str) -> int | None:
    """Return the step that an agent has reached; None at the end of the run."""
    step = result.histories[label].step
    return step if step < result.experiment.steps else None


def _spoken(found: Recovery, reached: int | None) -> str:
    """State a recovery; where only a step before the end is ``reached``, what lies beyond is not
    known yet.
    """
    if found.step is None:
        text = "not within the run" if reached is None else f"not by step {count(reached)}"
    else:
        text = f"after {count(found.step)} steps" if found.step else "at once"
    if (
        found.low is None
        or (found.low == found.high == 0)
        or (found.high is None and reached is not None)
    ):
        return text
    return (
        f"{text} (95 % CI {count(found.low)} to "
        f"{'beyond the run' if found.high is None else count(found.high)})"
    )
