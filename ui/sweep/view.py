"""Show a sweep: its progress, its landscape, one point of it, and the conclusions."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.base.formatting import number, percent
from bandits.results import text
from bandits.results.metrics import Estimate
from bandits.sweeps import Sweep
from bandits.sweeps.analysis.records import Explained, Importance, PointResult
from bandits.sweeps.analysis.run_metrics import METRICS
from bandits.sweeps.figures import grid, scatter
from bandits.sweeps.manager import SweepJob
from ui import session
from ui.arena import draft
from ui.live_panel import panel
from ui.owner import owner
from ui.text import escape_markdown, refuse

TICK = 1.0  # seconds between updates
NARROWER = 1.05  # factor from which an interval counts as narrower
_POINT = "sweep-cell"


def show(job: SweepJob, metric: str) -> None:
    """Draw a sweep, and update it every second while it runs; the page is redrawn once when it ends."""
    st.fragment(_show, run_every=TICK if job.active else None)(job, metric, job.active)


def _show(job: SweepJob, metric: str, was_active: bool) -> None:
    st.progress(min(job.progress, 1.0), text=status(job))
    selected = st.session_state.get(_POINT, {}).get(job.id)
    with job.lock:
        if job.sweep.is_grid:
            specs = [grid.landscape_figure(job.landscape, metric, selected, finished=not job.active)]
        else:
            specs = scatter.figures(job.landscape, metric, selected, finished=not job.active)
        leader = job.landscape.leader(metric)
        point = leader if selected is None else selected
        specs += grid.point_curves(job.landscape, point, metric)
    for spec in specs:
        spec["layout"]["uirevision"] = f"{job.id}{metric}"
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    panel.mount(panel.pack(specs, alt, 340), key="sweep", picked=lambda: _select_point(job, metric))
    if leader is not None:
        _point(job, metric, point if point is not None else leader, leader)
        _conclusions(job, metric)
    if was_active and not job.active:
        st.rerun()


def _select_point(job: SweepJob, metric: str) -> None:
    """Select the point that was clicked in a figure."""
    if (place := panel.picked_point("sweep")) is None:
        return
    with job.lock:
        point = (grid if job.sweep.is_grid else scatter).point_at(job.landscape, metric, *place)
    if point is not None:
        st.session_state.setdefault(_POINT, {})[job.id] = point


def status(job: SweepJob) -> str:
    """Describe the progress of a sweep in one line."""
    left = job.seconds_left
    if job.status == "running":
        return f"Sweeping: {100 * job.progress:.0f} %" + (f", about {max(1, round(left))} s left" if left else "")
    if job.status == "failed":
        return f"Failed: {escape_markdown(job.error)}"
    saved = job.landscape.saved_share
    finished = "Finished" + (f"; {100 * saved:.0f} % of the replications were not needed" if saved else "")
    message = finished if job.status == "finished" else f"Stopped at {100 * job.progress:.0f} %"
    return f"{message}. {escape_markdown(job.error)}" if job.error else message


def describe_values(sweep: Sweep, values: tuple[object, ...], *, bold: bool = False) -> str:
    """List the parameters of a point: Exploration bonus 2, Ridge 1."""
    mark = "**" if bold else ""
    return ", ".join(
        f"{grid.parameter_title(sweep, i)} {mark}{grid.format_value(value)}{mark}"  # type: ignore[arg-type]
        for i, value in enumerate(values)
    )


def interval(estimate: Estimate) -> str:
    """Format a confidence interval: 95 % CI 0.413 to 0.42."""
    ends = text.interval_ends(estimate)
    return f"95 % CI {ends}" if estimate.low == estimate.low else ends


def _point(job: SweepJob, metric: str, point: int, leader: int) -> None:
    """Describe the selected point in one line, with a button that opens it in the Arena."""
    with job.lock:
        result = next((r for r in job.landscape.results(metric) if r.point == point), None)
    if result is None:
        return
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    verdict = f", {_verdict(result, leader)}" if not job.active else ""
    values = describe_values(job.sweep, result.values, bold=True)
    mean = f"{METRICS[metric].title.lower()} {number(result.estimate.mean)} ({interval(result.estimate)})"
    row.markdown(f"{values}: {mean}{verdict}.")
    if row.button("Open in the Arena", icon=":material/monitoring:", key="sweep-open"):
        try:
            run = session.pool().submit(job.landscape.sweep.point(point), owner())
        except UserError as error:
            refuse(error)
            return
        session.follow(run)
        draft.load(run.experiment)
        st.switch_page("pages/arena.py")


def _verdict(result: PointResult, leader: int) -> str:
    if result.point == leader:
        return "the best point"
    if result.best:
        return "not significantly worse than the best"
    deficit = Estimate(-result.gap.mean, -result.gap.high, -result.gap.low)
    return f"worse than the best by {number(deficit.mean)} ({interval(deficit)})"


def _conclusions(job: SweepJob, metric: str) -> None:
    with job.lock:
        landscape = job.landscape
        results, importance = landscape.results(metric), landscape.importance(metric)
        pairing, explained = landscape.pairing(metric), landscape.explained(metric)
    if not job.active:
        st.markdown(f"- {_best_region(sum(r.best for r in results), len(results))}")
    if pairing == pairing:
        st.markdown(f"- {_pairing(pairing)}")
    if importance:
        _sensitivity(job.sweep, importance)
    if explained:
        _explained_variance(job.sweep, explained)


def _best_region(tied: int, total: int) -> str:
    """State how many points are statistically tied with the best."""
    test = "(paired t tests, Holm's correction)"
    bias = " The estimate of the best point is slightly optimistic (selection bias)."
    if tied == total > 1:
        return f"All {total} points are statistically tied {test}; more replications may separate them."
    if tied == 1:
        return f"None of the other {total - 1} points is statistically tied with the best {test}.{bias}"
    return f"{tied} of {total} points are statistically tied for the best {test}; choose any of them.{bias}"


def _pairing(factor: float) -> str:
    """State how much common random numbers narrow the interval of a difference."""
    if factor < NARROWER:
        return "Common random numbers do not narrow the confidence interval of a difference in this sweep."
    return (
        f"Common random numbers make the confidence interval of a difference {number(factor)} times narrower than "
        "independent random numbers would."
    )


def _sensitivity(sweep: Sweep, importance: list[Importance]) -> None:
    """Show the sensitivity to each parameter of a grid."""
    paths = [axis.path for axis in sweep.axes]
    rows = [
        {
            "Parameter": grid.parameter_title(sweep, paths.index(each.path)), "Best": grid.format_value(each.best),
            "Tied with best": ", ".join(map(grid.format_value, each.good)), "Worst": grid.format_value(each.worst),
            "Worst-case loss per 1,000 visitors": f"{number(each.cost.mean)} clicks ({interval(each.cost)})"
            if each.matters else "not significant",
            "Explained variance": percent(each.share),
        }
        for each in importance
    ]  # fmt: skip
    st.subheader("Sensitivity", anchor=False)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    st.caption(
        "Tied with best: values of the points that are not significantly worse than the best. Worst: the value with "
        "which even the best choice of the other parameters earns least; the loss is relative to the best point. "
        "Explained variance: share of the variance between points that the parameter explains by itself (first-order "
        "Sobol index)."
    )


def _explained_variance(sweep: Sweep, explained: list[Explained]) -> None:
    """Show the explained variance of each parameter among scattered points."""
    paths = [axis.path for axis in sweep.axes]
    at = [paths.index(one.path) for one in explained]
    rows = [
        {
            "Parameter": grid.parameter_title(sweep, i), "Best": grid.format_value(one.best),
            "Tied with best": (", " if sweep.axes[i].values else " to ").join(map(grid.format_value, one.good)),
            "Explained variance": percent(one.share),
        }
        for i, one in zip(at, explained, strict=True)
    ]  # fmt: skip
    st.subheader("Sensitivity", anchor=False)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    st.caption(
        "Tied with best: values of the points that are not significantly worse than the best. Explained variance: "
        "share of the variance between points that the parameter explains by itself, estimated with a random forest "
        "(first-order Sobol index times the out-of-bag R²); it needs at least ten points."
    )
