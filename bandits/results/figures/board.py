"""Draw the plots of the Arena and the overlay of several runs, as plain plotly dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.change.marks import description, mark
from bandits.results.metrics import Band

from .curves import MAX_POINTS, agent_curve, clip_band, curves, cut, empty_figure, figure, settled, thin
from .previous_run import ParameterChange
from .style import COUNT, RATE, STEP, Spec, Style, rate_unit, styles

if TYPE_CHECKING:
    from bandits.results.result import Result

__all__ = [
    "MAX_POINTS", "Bands", "Fourth", "XAxis", "agent_traces", "bands", "board", "clip_band", "curves", "empty_figure",
    "figure", "rate", "thin",
]  # fmt: skip
Bands = dict[str, dict[str, Band]]  # by plot and label
XAxis = Literal["step", "log step", "earned"]
Fourth = Literal["spectrum", "calibration", "exploration"]


def rate(experiment: Experiment, history: History, window: int) -> Band:
    """Compute the moving-average reward per step; where rewards are 0 or 1 the band is clipped to that range."""
    band = settled(metrics.ctr(history, window), window)
    if metrics.replayed(history):  # no rate until an event has counted
        band = cut(band, np.isfinite(band.mid))
    return clip_band(band, 0.0, 1.0) if _binary(experiment) else band


def _binary(experiment: Experiment) -> bool:
    """Whether rewards are 0 or 1; not known where the data of a stored run were deleted."""
    try:
        return "binary" in experiment.simulator_class().describe(experiment.simulator).capabilities
    except UserError:
        return False


def board(
    result: Result,
    window: int = metrics.WINDOW,
    *,
    x: XAxis = "step",
    log_regret: bool = False,
    fourth: Fourth = "spectrum",
    level: float = 0.95,
    at: int | None = None,
    arm: int | None = None,
    before: Bands | None = None,
    changes: Mapping[str, ParameterChange] | None = None,
) -> list[Spec]:
    """Draw the four plots of the Arena: reward per step, regret, selection entropy, and the one chosen as ``fourth``.

    Where a log is replayed, the number of events that count takes the place of the regret, which is not known.

    Parameters
    ----------
    result : Result
    window : int
        Steps of the moving averages of reward and entropy.
    x : {"step", "log step", "earned"}
        Horizontal axis of the first three plots; "earned" is the agent's mean cumulative reward.
    log_regret : bool
        Use a logarithmic axis for the regret.
    fourth : {"spectrum", "calibration", "exploration"}
    level : float
        Nominal level of the calibration plot: one of `snapshots.LEVELS`.
    at, arm : int, optional
        Step and arm of the spectrum; by default the latest snapshot and all arms.
    before : dict, optional
        Curves of the previous run from `bands`; agents with the same label are drawn dotted.
    changes : dict of str to ParameterChange, optional
        What has changed since the previous run, by label; the dotted curves name it.
    """
    looks, world = styles(result.experiment), result.experiment.simulator_class()
    noun, runs = world.reward_noun, result.experiment.replications
    best = "slate" if world.slate_size(result.experiment.simulator) > 1 else world.item_noun
    found = bands(result, window, x=x, level=level, at=at, arm=arm)
    ghosts = before or {}
    changed = "; ".join(f"{label}: {change.text}" for label, change in (changes or {}).items())
    seen_before = any(label in looks for label in ghosts.get("rate", {}))
    first = max(result.histories.values(), key=lambda h: h.step, default=None)
    references, rate_window, count_window, taken, counted = {}, window, window, None, "arms"
    if first is not None:
        counted = first.counted
        rate_window = metrics.effective_window(first, window)
        count_window = metrics.effective_window(first, window, of_counts=True)
        known = {"oracle": "best_value", "random choice": "random_value"} if result.experiment.offers("truth") else {}
        for label, name in known.items():
            band = settled(metrics.reference(first, name, window), window)
            references[label] = _against(band, first.grid, first.sums[name], x)
        taken = next((s.step for s in reversed(first.spectra) if at is None or s.step <= at), None)
    dotted = f" Dotted: previous run{f' ({changed})' if changed else ''}." if seen_before else ""
    whole = all(h.alive.all() for h in result.histories.values())
    living = f"{runs} replications" if whole else "the remaining replications"
    banded = f" Bands: 95 % confidence interval of the mean over {living}." if runs > 1 else ""
    marked = f" {changes_named}" if (changes_named := description(result.experiment)) else ""
    over = bool(result.histories) and all(h.step >= h.steps for h in result.histories.values())
    x_title = f"{noun} earned" if x == "earned" else "step"
    common: Spec = {
        "looks": looks, "x_title": x_title, "x_format": COUNT if x == "earned" else STEP, "log_x": x == "log step",
        "changes": changes, "end_labels": True,
    }  # fmt: skip
    wait = "Waiting for the first points."
    replay = result.experiment.offers("replay")
    dashed = "Dashed: oracle (upper) and random choice (lower), expected values: a curve can lie above the oracle by "
    dashed += "chance."
    if replay:
        dashed = "Of events in which the agent chose what the log shows: only these count. True rewards are not known."
    plots = [
        curves(
            found["rate"], title=world.rate_title, y_title=rate_unit(result.experiment), references=references,
            y_format=RATE, caption=f"Average of the last {rate_window:,} {'logged events' if replay else 'steps'}",
            before=ghosts.get("rate"), empty=wait, **common,
            note=f"Moving average over {rate_window:,} steps. {dashed}{banded}{dotted}{marked}",
        ),
        curves(
            found["regret"], title="Counted events", y_title="events", y_format=COUNT,
            caption="Choices that equal the logged ones", before=ghosts.get("regret"), empty=wait, **common,
            note="Events so far in which the agent chose what the log shows: only these are known and learned from. "
            "About one in K of a random log with K items.",
        ) if replay else curves(
            found["regret"], title="Cumulative regret", y_title=f"{noun} lost", log_y=log_regret, y_format=COUNT,
            caption=f"Expected {noun} lost so far",
            before=ghosts.get("regret"), empty=wait, **common,
            note=f"Expected {noun} lost relative to always choosing the best {best}. A flat curve means that "
            "nothing is lost any more.",
        ),
        curves(
            found["entropy"], title="Selection entropy", y_title="normalised entropy", y_range=(0, 1.04),
            y_format=RATE, caption="1: uniform; 0: always the same",
            before=ghosts.get("entropy"), empty=wait, **common,
            note=f"Normalised entropy of the {counted} shown in the last {count_window:,} steps. 1: uniform; "
            "0: always the same.",
        ),
    ]  # fmt: skip
    for plot, name in zip(plots, ("rate", "regret", "entropy"), strict=True):
        plot["data"] += [_stop(label, *end, looks[label]) for label, end in _stops(result, found[name], name).items()]
    if x != "earned":
        plots = [mark(plot, result.experiment) for plot in plots]
    if fourth == "spectrum":
        return [*plots, _spectrum(found["spectrum"], looks, ghosts.get("spectrum"), changes, taken, arm, over)]
    if fourth == "exploration":
        drawn = _exploration(found["exploration"], ghosts.get("exploration"), **common)
        return [*plots, drawn if x == "earned" else mark(drawn, result.experiment)]
    flat = {"x": np.array([0.0, result.experiment.steps]), "mid": np.full(2, level)}
    goal = Band(**flat, low=flat["mid"], high=flat["mid"], rows=0)
    if x != "step":  # the reference line spans the curves
        ends = [b.x for b in found["calibration"].values() if len(b.x) and np.isfinite(b.x).all()]
        goal = goal._replace(x=np.array([min(e[0] for e in ends), max(e[-1] for e in ends)]) if ends else goal.x)
    calibrated = curves(
        found["calibration"], title="Calibration", y_title="interval coverage", y_range=(0, 1.04), y_format=RATE,
        caption=f"Share of true values in the {100 * level:.0f} % interval",
        references={"nominal level": goal}, before=ghosts.get("calibration"), **common,
        note=f"Share of candidates whose true expected reward lies in the agent's own {100 * level:.0f} % interval. "
        "Dashed: nominal level (calibrated). Below: overconfident. Above: underconfident. Agents that do "
        "not estimate their uncertainty have no curve.",
        empty="None of these agents estimates its uncertainty." if over
        else "The first points appear after 5 % of the run.",
    )  # fmt: skip
    return [*plots, calibrated if x == "earned" else mark(calibrated, result.experiment)]


def agent_traces(result: Result, window: int, *, x: XAxis = "step", spectrum: bool = True) -> list[list[Spec]]:
    """Draw only the curves of the agents in the first three plots of `board`, and their spectra in the fourth.

    They are drawn into plots that exist: without references, marks and layouts.
    """
    looks, found = styles(result.experiment), bands(result, window, x=x)
    names = ("rate", "regret", "entropy", *(("spectrum",) if spectrum else ()))
    plots: list[list[Spec]] = []
    for name in names:
        thinned = {label: thin(band) for label, band in found[name].items() if len(band.x)}
        plots.append([trace for label, band in thinned.items() for trace in agent_curve(label, band, looks[label])])
        stops = {} if name == "spectrum" else _stops(result, found[name], name)
        plots[-1] += [_stop(label, *end, looks[label]) for label, end in stops.items()]
    return plots if spectrum else [*plots, []]


def _spectrum(
    found: dict[str, Band],
    looks: dict[str, Style],
    before: dict[str, Band] | None,
    changes: Mapping[str, ParameterChange] | None,
    taken: int | None,
    arm: int | None,
    over: bool,
) -> Spec:
    whose = "over replications" if arm is not None else "over replications and arms"
    plot = curves(
        found, looks, log_y=True, before=before, changes=changes, end_labels=True,
        caption="Low tail: unexplored" + ("" if taken is None else f"; step {taken:,}"),
        title="Eigenvalue spectrum", x_title="eigenvalue rank", y_title="eigenvalue of A",
        note="Eigenvalues of the design matrix A = λI + Σxx′: information collected in each direction of feature "
        f"space. A low tail: directions that are hardly explored. Line: median; band: middle 80 % {whose}"
        f"{'' if taken is None else f', at step {taken:,}'}.",
        empty="None of these agents has a design matrix (ridge model)." if over
        else "The first spectrum appears after 5 % of the run.",
    )  # fmt: skip
    if max((len(b.x) for b in found.values()), default=0) <= 10:  # there is no rank 1.5
        plot["layout"]["xaxis"]["dtick"] = 1
    return plot


def _exploration(found: dict[str, Band], before: dict[str, Band] | None, **common: Any) -> Spec:
    return curves(
        {label: clip_band(band, 0.0, 1.0) for label, band in found.items()},
        title="Exploration rate", y_title="exploration rate", y_range=(-0.02, 1.04), y_format=RATE, before=before,
        caption="Share of decisions that are not greedy", **common,
        note="Share of the decisions that are not the agent's own choice with the highest estimated mean (of a slate: "
        "share of its items), estimated at every snapshot on the next rounds. 0: greedy; 1: never the best estimate.",
        empty="The first points appear after 5 % of the run.",
    )  # fmt: skip


def _stops(result: Result, drawn: dict[str, Band], name: str) -> dict[str, tuple[FloatArray, FloatArray, list[str]]]:
    """Locate the replications that diverged on each agent's curve: points and hover texts."""
    found = {}
    for label, history in result.histories.items():
        steps, counts = np.unique(metrics.stopped(history), return_counts=True)
        band = drawn[label]
        if not len(steps) or not len(band.x):
            continue
        of_counts = name == "entropy"
        grid, size = (history.count_grid, history.count_size) if of_counts else (history.grid, history.size)
        left_out = size - len(band.x)  # first points, which are not drawn
        at = np.clip(np.searchsorted(grid, steps) - left_out, 0, len(band.x) - 1)
        drawn_at = np.isfinite(band.mid[at])  # no curve where all replications have stopped
        if drawn_at.any():
            pairs = zip(counts[drawn_at], steps[drawn_at], strict=True)
            text = [f"{n} replication{'s' if n > 1 else ''} stopped near step {step:,}" for n, step in pairs]
            found[label] = (band.x[at][drawn_at], band.mid[at][drawn_at], text)
    return found


def _stop(label: str, x: FloatArray, y: FloatArray, text: list[str], style: Style) -> Spec:
    return {
        "type": "scatter", "mode": "markers", "name": label.replace("<", "&lt;"), "legendgroup": label, "x": x, "y": y,
        "text": text, "hovertemplate": "%{text}<extra>%{fullData.name}</extra>", "showlegend": False,
        "marker": {"symbol": "x", "size": 11, "color": style.color, "line": {"width": 1}},
    }  # fmt: skip


def bands(
    result: Result,
    window: int = metrics.WINDOW,
    *,
    x: XAxis = "step",
    level: float = 0.95,
    at: int | None = None,
    arm: int | None = None,
    until: int | None = None,
) -> Bands:
    """Compute the curves of each plot of `board` by label, up to the step ``until``."""
    histories = result.histories
    out: Bands = {
        "rate": {label: rate(result.experiment, h, window) for label, h in histories.items()},
        "regret": {
            label: metrics.counted_decisions(h) if metrics.replayed(h) else metrics.pseudo_regret(h)
            for label, h in histories.items()
        },
        "entropy": {label: metrics.entropy(h, window) for label, h in histories.items()},
        "calibration": {
            label: band for label, h in histories.items() if (band := metrics.calibration(h, level)) is not None
        },
        "exploration": {
            label: band for label, h in histories.items() if (band := metrics.exploration_rate(h)) is not None
        },
    }
    for curve in out.values():
        for label in curve:
            h = histories[label]
            kept = cut(curve[label], curve[label].x <= (until or h.steps))
            curve[label] = _against(kept, h.grid, h.sums["clicks"], x)
    spectra = {label: metrics.spectrum(h, at or until, arm) for label, h in histories.items()}
    out["spectrum"] = {label: band for label, band in spectra.items() if band is not None}
    return out


def _against(band: Band, grid: IntArray, earned: FloatArray, x: XAxis) -> Band:
    """Replace the horizontal axis of a curve: log step, or the mean of ``earned (G, R)`` instead of the step."""
    if x == "log step":  # log 0 is undefined
        return cut(band, band.x > 0)
    if x == "earned" and len(band.x):
        at = np.searchsorted(grid, band.x)
        alive = ~np.isnan(earned[at[-1]])
        mean = earned[at][:, alive].mean(axis=1) if alive.any() else np.full(len(at), np.nan)
        return band._replace(x=mean)
    return band
