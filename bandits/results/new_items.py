"""What launched items got, launch by launch: shares of traffic and of regret, and when the fair share was reached."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from bandits.base.formatting import count, percent
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.simulators import Simulator

from . import metrics
from .change_marks import mark
from .curve_figure import clip_band, curves, empty_figure
from .demand import Cohort, Demand, demand
from .launches import LEAST, NEAR, WINDOW, Launched, cohort_shares, fair_share, launches
from .metrics import Band, Estimate, estimate
from .result import Result
from .style import RATE, Spec, styles

MOST = 6  # launches that are drawn


class RegretShare(NamedTuple):
    """How much of the regret since a launch was lost by showing its items.

    Attributes
    ----------
    share : Estimate
        Of the regret of all decisions since then; NaN in replications without regret.
    clicks : Estimate
        Expected clicks lost by showing them.
    """

    share: Estimate
    clicks: Estimate


def share_band(history: History, cohort: Cohort) -> Band:
    """Compute the share of the last `WINDOW` decisions that showed items of a launch, from the launch on."""
    grid, shown = cohort_shares(history, cohort)
    ends, starts = _windows(grid)
    share = (shown[ends] - shown[starts]) / (grid[ends] - grid[starts])[:, None]
    return clip_band(metrics.band(grid[ends], share, np.ones(share.shape[1], np.bool_)), 0.0, 1.0)


def fair_band(wanted: Demand, history: History, cohort: Cohort) -> Band:
    """Compute the share of an optimal choice in the same windows as `share_band`."""
    grid, _ = cohort_shares(history, cohort)
    ends, starts = _windows(grid)
    fair = np.array([fair_share(wanted, cohort, a, b) for a, b in zip(grid[starts], grid[ends], strict=True)])
    return Band(grid[ends], fair, fair, fair, 1)


def _windows(grid: FloatArray) -> tuple[IntArray, IntArray]:
    """Return ends and starts, as places in the grid, of windows of up to `WINDOW` steps; none is empty."""
    if len(grid) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ends = np.arange(1, len(grid))
    return ends, np.maximum(np.searchsorted(grid, grid[1:] - WINDOW, side="right") - 1, 0)


def regret_share(result: Result, history: History, cohort: Cohort) -> RegretShare | None:
    """Measure the regret of the decisions that showed items of a launch.

    None where segments x items are not counted, and where visitors have different candidates.

    The regret of an item for a segment is that of the first visitor of the segment in an interval of stored counts:
    exact where the expected rewards of a segment stand still between two changes; see `approximate`.
    """
    segments, sums = history.segments, history.segment_sums
    if segments is None or sums is None:
        return None
    spec = result.experiment.simulator_class().describe(result.experiment.simulator)
    if spec.n_candidates != spec.n_items:
        return None
    grid = segments.grid[: segments.reached(history.step)]
    first = int(np.searchsorted(grid, cohort.step))
    if first >= len(grid) - 1:
        return None
    e = result.experiment
    simulator = e.simulator_class()(e.simulator, Streams(e.seed, range(e.replications)))
    lost = np.zeros(history.rows)
    for at in range(first, len(grid) - 1):
        shown = segments.counts[at + 1] - segments.counts[at]  # (R, G, K)
        gap = _gaps(simulator, int(grid[at]), int(grid[at + 1]), shown.sum(axis=2) > 0)
        lost += np.where(cohort.items[:, None], shown * gap, 0.0).sum(axis=(1, 2))
    regret = sum(sums.total("best_value", s) * sign - sums.total("value", s) * sign
                 for s, sign in ((int(grid[-1]), 1), (int(grid[first]), -1)))  # fmt: skip
    regret = np.asarray(regret).sum(axis=1)
    share = np.divide(lost, regret, out=np.full(len(lost), np.nan), where=regret > 0)
    return RegretShare(estimate(share[history.alive]), estimate(lost[history.alive]))


def approximate(experiment: Experiment) -> bool:
    """Tell that shares of regret are approximate: the expected rewards of a segment differ within an interval.

    They do so where preferences drift or have seasons, and in the simulator Artwork, whose users of a segment differ.
    """
    kinds = {change.kind for change in experiment.simulator.all_changes.values()}
    return experiment.simulator.kind != "petshop" or bool(kinds & {"drift", "season"})


def _gaps(simulator: Simulator, first: int, last: int, wanted: BoolArray) -> FloatArray:
    """Return what each item loses against the best, for the segments ``wanted (R, G)`` of an interval, (R, G, K)."""
    R, G = wanted.shape
    gaps, missing = np.zeros((R, G, simulator.spec.n_items)), wanted.copy()
    rows = np.arange(R)
    for step in range(first, last):
        if not missing.any():
            break
        round = simulator.round_at(step)
        new = missing[rows, round.segments]
        if new.any():
            p = simulator.probabilities(round)
            best = np.where(round.available, p, -np.inf).max(axis=1, keepdims=True)
            gaps[rows[new], round.segments[new]] = (best - p)[new]
            missing[rows[new], round.segments[new]] = False
    return gaps


def cohort_figures(result: Result) -> list[Spec]:
    """Draw the share of each launch over the steps, agent by agent, beside the share of an optimal choice."""
    wanted = demand(result.experiment)
    looks, noun = styles(result.experiment), result.experiment.simulator_class().item_noun
    drawn = []
    for i, cohort in enumerate(wanted.cohorts[:MOST] if wanted is not None else ()):
        passed = {label: h for label, h in result.histories.items() if h.step > cohort.step and h.alive.any()}
        title = f"Share of {_counted(int(cohort.items[0].sum()), noun)} launched at {count(cohort.step)}"
        if wanted is not None and len({c.step for c in wanted.cohorts}) < len(wanted.cohorts):
            title = f"Launch {i + 1}: {title[0].lower()}{title[1:]}"
        bands = {label: share_band(h, cohort) for label, h in passed.items()}
        longest = max(passed.values(), key=lambda h: h.step, default=None)
        fair = {} if wanted is None or longest is None else {"fair share": fair_band(wanted, longest, cohort)}
        note = (
            f"Share of the last {count(WINDOW)} decisions that showed one of them. Dashed: the fair share, that of an "
            "optimal choice. Bands: 95 % confidence interval of the mean over replications."
        )
        layout = {"title": {"text": title}, "meta": {"note": note}}
        figure = curves(
            bands, looks, title=title, note=note, y_title="share of decisions", y_format=RATE, references=fair,
            end_labels=True, empty="The run has not reached the launch yet.",
        ) if bands else empty_figure(layout, "The run has not reached the launch yet.")  # fmt: skip
        drawn.append(mark(figure, result.experiment))
    return drawn


def launch_table(result: Result) -> pd.DataFrame | None:
    """Return one row per agent and launch that it has passed; None where the items of launches are not counted."""
    wanted = demand(result.experiment)
    rows, about = [], "≈ " if approximate(result.experiment) else ""
    for label in result.experiment.labels:
        history = result.histories.get(label)
        if wanted is None or history is None:
            continue
        for one, cohort in zip(launches(history, wanted), wanted.cohorts, strict=False):
            lost = regret_share(result, history, cohort)
            rows.append(
                {
                    "Agent": label,
                    "Launch": f"{count(one.items)} at step {count(one.step)}",
                    "Share of traffic": rate(_share(one.share)),
                    "Fair share": f"{one.fair_share:.3f}",
                    "Share of regret": "–"
                    if lost is None or math.isnan(lost.share.mean)
                    else about + rate(_share(lost.share)),
                    "Fair share reached": reached(one),
                }
            )
    return pd.DataFrame(rows) if rows else None


def conclusions(result: Result) -> list[str]:
    """State for each launch which agents reached its fair share, and which never do."""
    wanted = demand(result.experiment)
    if wanted is None:
        return []
    noun, found = result.experiment.simulator_class().item_noun, []
    histories = {label: h for label, h in result.histories.items() if h.alive.any()}
    measured = {label: launches(h, wanted) for label, h in histories.items()}
    for i, cohort in enumerate(wanted.cohorts):
        own = {label: each[i] for label, each in measured.items() if len(each) > i and not math.isnan(each[i].reached)}
        if not own:
            continue
        sooner = sorted((s, label) for label, one in own.items() if (s := one.steps_to_fair_share) is not None)
        never = [label for label, one in own.items() if one.steps_to_fair_share is None]
        parts = [f"{label} after {count(steps)} steps" for steps, label in sooner]
        parts += [f"never: {', '.join(never)}"] if never else []
        new = _counted(int(cohort.items[0].sum()), noun)
        found.append(
            f"When the {new} launched at step {count(cohort.step)} reached their fair share and kept it to the end: "
            f"{'; '.join(parts)}."
        )
    return found


ABOUT = (
    f"Fair share: that of an optimal choice. Reached: from then on, the share in every {WINDOW:,} steps differs from "
    f"it by at most {percent(NEAR)}, or {LEAST:g}, or what chance explains, whichever is largest; median of the "
    "replications, with its 95 % interval. Share of regret: of the clicks lost since the launch, the part that was "
    "lost by showing the new items; it is approximate (≈) where preferences drift or have seasons, or users of a "
    "segment differ: preferences are then taken once per segment and interval of stored counts."
)


def reached(one: Launched) -> str:
    """Say when the fair share was reached: never is an answer."""
    if math.isnan(one.reached):
        return f"unknown (fewer than {count(WINDOW)} steps follow)"
    if one.steps_to_fair_share is None:
        return f"never ({percent(one.reached)} of the replications reached it)"
    text = f"after {count(one.steps_to_fair_share)} steps"
    if one.low is None:
        return text
    return f"{text} ({count(one.low)} to {'beyond the run' if one.high is None else count(one.high)})"


def rate(e: Estimate) -> str:
    """Write a rate with its interval; a dash where it is not known."""
    if not math.isfinite(e.mean):
        return "–"
    return f"{e.mean:.3f}" if not math.isfinite(e.low) else f"{e.mean:.3f} ({e.low:.3f} to {e.high:.3f})"


def _share(e: Estimate) -> Estimate:
    """Clip the interval of a share to its range."""
    return Estimate(e.mean, max(e.low, 0.0), min(e.high, 1.0))


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
