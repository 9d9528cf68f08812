"""Show a sweep: its progress, its landscape, one point of it, the conclusions.

Its files, and earlier results.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits import Experiment, UserError, read
from bandits.base.formatting import count_of, duration, number, time_left
from bandits.results import words
from bandits.results.export import csv_of, parquet_of
from bandits.results.figures.style import Spec
from bandits.results.metric_registry import OBJECTIVES, Metric
from bandits.runtime.job import Job
from bandits.sweeps.analysis.nearest import NearestPoint, nearest_points, nearest_proposed
from bandits.sweeps.analysis.records import PointResult
from bandits.sweeps.figures import grid, lines, scatter
from bandits.sweeps.manager import SweepJob
from bandits_app.session import draft as drafts
from bandits_app.session import followed, workers
from bandits_app.session.owner import owner
from bandits_app.widgets import buttons
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown, refuse
from bandits_app.widgets.until_end import until_end

from . import agent, conclusions, selection

_POINT = "sweep-cell"


def show(job: SweepJob, metric: str, slot: DeltaGenerator) -> None:
    """Draw a sweep, and update it every second while it runs.

    The page is redrawn once when it ends.

    Parameters
    ----------
    job : SweepJob
    metric : str
    slot : DeltaGenerator
        An ``st.empty`` for the progress.
    """
    until_end(_show, job, metric, slot)


def _show(job: SweepJob, metric: str, slot: DeltaGenerator) -> None:
    # read once: the bar, its text and the verdicts are of one moment
    active, progress = job.active, job.progress
    if active:
        slot.progress(progress, text=status(job, progress))
    else:
        slot.caption(status(job, progress))
    selected = st.session_state.get(_POINT, {}).get(job.id)
    setting = current_setting(job)
    with job.lock:
        specs = _figures(job, metric, selected, None if setting is None else setting.point)
        leader, candidates = (
            job.landscape.leader(metric),
            int(job.landscape.candidates(metric).sum()),
        )
        results = {result.point: result for result in job.landscape.results(metric)}
        comparable = not conclusions.varies_simulators(job)
        # what the conclusion names
        middle = job.landscape.recommended(metric) if comparable and not active else None
        named = leader if middle is None else middle.point
        point = named if selected is None else selected
        specs += lines.curves_by_choice(job.landscape, metric)
        specs += grid.point_curves(job.landscape, point, metric)
    conclusions.first(job, metric)
    packed = panel.pack(specs, 340, revision=f"{job.id}{metric}")
    panel.mount(packed, key="sweep", picked=lambda: _select_point(job, metric))
    if leader is not None:
        if result := results.get(leader if point is None else point):
            mark = {named: "Recommended", leader: "Best"}.get(result.point, "")
            _point(job, metric, result, mark, None if job.status == "finished" else candidates)
        # else the best point is in another simulator
        if comparable and setting is not None and (result := results.get(setting.point)):
            _setting(job, metric, result, leader, exact=setting.exact, active=active)
        conclusions.resolution(job, metric)
        conclusions.show(job, metric)


def _figures(job: SweepJob, metric: str, selected: int | None, setting: int | None) -> list[Spec]:
    if job.sweep.is_grid:
        return [
            grid.landscape_figure(
                job.landscape, metric, selected, setting=setting, finished=not job.active
            )
        ]
    return scatter.figures(
        job.landscape, metric, selected, setting=setting, finished=not job.active
    )


def current_setting(job: SweepJob) -> NearestPoint | None:
    """Return the point nearest to the agent in the sidebar.

    None without one, or if it differs in other parameters.
    """
    draft = drafts.current()
    try:
        experiment = read({**draft.data(), "agents": [draft.agents[agent.chosen(draft)]]})
    except UserError:
        return None
    if not job.sweep.is_grid:
        with job.lock:
            return nearest_proposed(job.landscape.sweep, job.landscape.estimate_at, experiment)
    return next(iter(nearest_points([(job.sweep, job.estimate_at)], experiment)), None)


def _select_point(job: SweepJob, metric: str) -> None:
    if (place := panel.picked_point("sweep")) is None:
        return
    with job.lock:
        point = (grid if job.sweep.is_grid else scatter).point_at(job.landscape, metric, *place)
    if point is not None:
        st.session_state.setdefault(_POINT, {})[job.id] = point


def status(job: SweepJob, progress: float) -> str:
    """Describe a sweep in one line, with the finished share of its work."""
    left = job.seconds_left
    if job.waiting:
        return (
            "Waiting for a worker: other work is being computed"
            if workers.pool().busy
            else "Preparing simulator and agents"
        )
    if job.status == "running":
        return f"Sweeping: {100 * progress:.0f} %" + (f", {time_left(left)}" if left else "")
    if job.status == "failed":
        return f"Failed: {escape_markdown(job.error)}"
    saved = job.landscape.saved_share
    took = f" in {duration(job.seconds)}" if job.seconds is not None else ""
    finished = f"Finished{took}" + (
        f"; {100 * saved:.0f} % of the replications were not needed" if saved else ""
    )
    message = finished if job.status == "finished" else f"Stopped at {100 * progress:.0f} %"
    return f"{message}. {escape_markdown(job.error)}" if job.error else message


def _point(
    job: SweepJob, metric: str, result: PointResult, mark: str, candidates: int | None
) -> None:
    """Describe the selected point, or the recommended one, in one line, with a button that opens it
    in the Arena.

    Before the sweep has finished, ``candidates`` is the number of points among which the leader was
    chosen."""
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    first = mark == "Best"
    rows = count_of(result.runs, "replications")
    among = (
        "" if candidates is None else f" so far, of {count_of(candidates, 'points')} with {rows}"
    )
    best = f"**{mark}{among if first else ''}:** " if mark else ""
    shown = OBJECTIVES[metric].of(job.sweep.experiment)
    verdict = "" if first or candidates is not None else f", {_verdict(result, shown)}"
    values = grid.described(job.sweep, result.values, "**")
    mean = f"{words.mean(result.estimate, shown.form)} {shown.unit}"
    interval = words.interval(result.estimate, shown.form)
    row.markdown(f"{best}{values}: {shown.title.lower()} {mean} ({interval}){verdict}.")
    if row.button("Open in the Arena", icon=":material/monitoring:", key="sweep-open"):
        try:
            run = workers.pool().submit(job.landscape.sweep.point(result.point), owner())
        except UserError as error:
            refuse(error)
            return
        followed.open_in_arena(run)


def _verdict(result: PointResult, metric: Metric) -> str:
    return {
        "tied": f"tied with the best: the estimated loss is {_loss(result, metric)}",
        "unclear": f"too noisy to tell: the estimated loss is {_loss(result, metric)}",
        "worse": f"worse than the best by {_loss(result, metric)}",
        "dropped": f"dropped after {count_of(result.runs, 'replications')}",
    }[result.state]


def _loss(result: PointResult, metric: Metric) -> str:
    """Format what a point loses against the best: 0.03 clicks per step (95 % CI 0.02 to 0.04)."""
    deficit = -result.gap
    return (
        f"{words.mean(deficit, metric.form)} {metric.gap_unit} "
        f"({words.interval(deficit, metric.form)})"
    )


def _setting(
    job: SweepJob, metric: str, result: PointResult, leader: int, *, exact: bool, active: bool
) -> None:
    """State what the setting in the sidebar loses against the best point."""
    values = grid.described(job.sweep, result.values, "**")
    shown = OBJECTIVES[metric].of(job.sweep.experiment)
    name = (
        f"Your setting ({values})"
        if exact
        else f"The computed point nearest to your setting ({values})"
    )
    if result.point == leader:
        verdict = "is the best point so far" if active else "is the best point"
    elif result.state == "dropped":
        verdict = f"was dropped after {count_of(result.runs, 'replications')}"
    elif active:
        verdict = f"has lost {_loss(result, shown)} against the best so far"
    else:
        verdict = f"is {_verdict(result, shown)}"
    st.markdown(f"{name}, ✕ in the plot, {verdict}.")


def files(job: SweepJob, metric: str) -> None:
    """Draw the download buttons; files are made when they are clicked."""
    name = f"sweep-{job.id[:8]}"

    landscape = job.landscape
    offered: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("Points (CSV)", "csv", "text/csv", lambda: csv_of(landscape.table(metric))),
        (
            "Points (Parquet)",
            "parquet",
            "application/octet-stream",
            lambda: parquet_of(landscape.table(metric)),
        ),
        (
            "Summary (JSON)",
            "summary.json",
            "application/json",
            lambda: json.dumps(
                landscape.summary(metric), indent=2, ensure_ascii=False, allow_nan=False
            ),
        ),
        ("Sweep (JSON)", "json", "application/json", lambda: job.sweep.model_dump_json(indent=2)),
    ]
    for label, ending, mime, make in offered:
        buttons.download(
            label,
            make,
            f"{name}.{ending}",
            mime,
            lock=job.lock,
            key=f"sweep-export-{ending}",
            width="stretch",
            disabled=not landscape.completed.any(),
        )
    st.caption(
        "Figures: the menu **⋮** at the upper right of every plot saves it as PNG or SVG. The "
        "address of this page contains the whole sweep. On the command line, run `python -m "
        "bandits sweep FILE.json`."
    )


def show_previous_results(experiment: Experiment | None, job: Job) -> None:
    """Show the nearest swept point of every agent that a sweep covers, unless the run above has
    measured the agent.
    """
    if experiment is None:
        return
    shown, rest = job.experiment, {"agents"}
    alike = job.status == "finished" and experiment.model_dump(exclude=rest) == shown.model_dump(
        exclude=rest
    )
    agents = zip(experiment.labels, experiment.agents, strict=True)
    measured = {label for label, agent in agents if alike and agent in shown.agents}
    for found in selection.manager().nearest_points(experiment):
        if found.label in measured:
            continue
        at = grid.described(found.sweep, found.sweep.values_at(found.point))
        nearest = "" if found.exact else "the nearest point, "
        replications = count_of(found.runs, "replications")
        noun = shown.simulator_class().reward_noun
        interval = (
            f"{words.interval(found.estimate, 'rate')}; {replications}"
            if found.runs > 1
            else replications
        )
        st.caption(
            f":material/grid_on: From a previous sweep: {escape_markdown(found.label)} earned "
            f"{number(found.estimate.mean)} {noun} per step ({interval}) at {nearest}{at}."
        )
