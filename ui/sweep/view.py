"""The parts of the page Sweep: the sweep that is looked at, its landscape, its cells."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import Any

import pandas as pd
import streamlit as st

from bandits import Experiment, UserError
from bandits.base.files import home
from bandits.base.formatting import count, number, percent
from bandits.results import text
from bandits.results.metrics import Estimate
from bandits.runtime.pool import Pool
from bandits.sweeps import Sweep, read, url
from bandits.sweeps.analysis.records import Explained
from bandits.sweeps.figures import grid, scatter
from bandits.sweeps.manager import SweepJob, SweepManager
from ui import session
from ui.arena import draft
from ui.live_panel import panel
from ui.owner import owner
from ui.text import escape_markdown, refuse

from . import axes

TICK = 1.0
_SEEN, _CELL = "sweep-seen", "sweep-cell"


def sweeper() -> SweepManager:
    """All sweeps of this server."""
    pool = session.pool()
    return _sweeper(pool, id(pool))


@st.cache_resource(show_spinner=False)
def _sweeper(_pool: Pool, which: int) -> SweepManager:  # noqa: ARG001 - the key: a pool that is made anew has sweeps of its own
    return SweepManager(_pool, home() / "sweeps", os.environ.get("BANDITS_CLUSTER", ""))


# -- which sweep is looked at --------------------------------------------------------------------------------------


_judged = lru_cache(maxsize=16)(read)  # a thousand points take a moment, and the page is drawn at every touch


def size(data: dict[str, Any]) -> tuple[str, bool]:
    """How much is asked for, or why it cannot be, in a sentence; and whether it can."""
    if not data["axes"]:
        return "Choose at least one parameter.", False
    try:
        sweep = _judged(json.dumps(data))
    except UserError as sentence:
        said = str(sentence).removeprefix("axes: ").replace("low must be below high", "From must be below To")
        for axis in data["axes"]:
            said = said.replace(axis["path"], axes.title(data, axis["path"]))
        return f"{escape_markdown(said[:1].upper() + said[1:])}.", False
    return f"{_size(sweep)}, all with the same visitors and the same luck.", True


def _size(sweep: Sweep) -> str:
    e = sweep.experiment
    return f"{count(sweep.size)} points × {count(e.replications)} runs × {count(e.steps)} steps"


def start(data: dict[str, Any]) -> SweepJob:
    """Begin a sweep and look at it.

    Raises
    ------
    UserError
    """
    return _keep(sweeper().submit(read(data), owner()))


def _keep(found: SweepJob) -> SweepJob:
    """Look at a sweep from now on, here and by the address."""
    st.session_state[_SEEN] = found.id
    said = url.to_query(found.sweep)
    if st.query_params.to_dict() != said:
        st.query_params.from_dict(said)
    return found


def current() -> SweepJob | None:
    """The sweep this session looks at: the one it began, or the one its address tells, if it is known here.

    Any other address only fills in the controls: a link must not make a server compute for hours.

    Raises
    ------
    UserError
        The address is not one of a sweep that can be run.
    """
    seen = st.session_state.get(_SEEN)
    if seen is not None and (found := sweeper().get(seen)) is not None:
        axes.again(found.sweep)
        return _keep(found)
    if seen is None and url.holds_sweep(st.query_params):
        sweep = url.parse_query(st.query_params.to_dict())
        _adopt(sweep)
        st.session_state[_SEEN] = sweep.hash
        return sweeper().get(sweep.hash)
    return None


def stop(found: SweepJob) -> None:
    """Have it stopped.

    Raises
    ------
    UserError
    """
    sweeper().stop(found, owner())


def _adopt(sweep: Sweep) -> None:
    """Put a sweep into the controls."""
    draft.load(sweep.experiment)
    axes.give(sweep)


# -- what it shows -------------------------------------------------------------------------------------------------


def show(found: SweepJob, metric: str) -> None:
    """Draw a sweep, again every second while it goes on; the page is redrawn once when it ends."""
    st.fragment(_show, run_every=TICK if found.active else None)(found, metric, found.active)


def _show(found: SweepJob, metric: str, was_active: bool) -> None:
    st.progress(min(found.progress, 1.0), text=status(found))
    picked = st.session_state.get(_CELL, {}).get(found.id)
    with found.lock:
        if found.sweep.is_grid:
            specs = [grid.landscape_figure(found.landscape, metric, picked, finished=not found.active)]
        else:
            specs = scatter.figures(found.landscape, metric, picked, finished=not found.active)
        leader = found.landscape.leader(metric)
        chosen = leader if picked is None else picked
        specs += grid.point_curves(found.landscape, chosen, metric)
    for spec in specs:
        spec["layout"]["uirevision"] = f"{found.id}{metric}"
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    panel.mount(panel.pack(specs, alt, 340), key="sweep", picked=lambda: _pick(found, metric))
    if leader is not None:
        _cell(found, metric, chosen if chosen is not None else leader, leader)
        _told(found, metric)
    if was_active and not found.active:
        st.rerun()


def _pick(found: SweepJob, metric: str) -> None:
    """Look at the cell that was pressed."""
    if (place := panel.at("sweep")) is None:
        return
    with found.lock:
        point = (grid if found.sweep.is_grid else scatter).point_at(found.landscape, metric, *place)
    if point is not None:
        st.session_state.setdefault(_CELL, {})[found.id] = point


def status(found: SweepJob) -> str:
    """How far a sweep is, in one line."""
    left = found.seconds_left
    if found.status == "running":
        return f"Sweeping: {100 * found.progress:.0f} %" + (f", about {max(1, round(left))} s left" if left else "")
    if found.status == "failed":
        return f"Failed: {escape_markdown(found.error)}"
    share = found.landscape.saved_share
    saved = f", {100 * share:.0f} % of the runs were not needed" if share else ""
    said = {"finished": f"Finished{saved}", "stopped": f"Stopped at {100 * found.progress:.0f} %"}[found.status]
    return f"{said}. {escape_markdown(found.error)}" if found.error else said


def _cell(found: SweepJob, metric: str, point: int, leader: int) -> None:
    """The chosen point in a line, and the way to the Arena."""
    with found.lock:
        cell = next((c for c in found.landscape.results(metric) if c.point == point), None)
    if cell is None:
        return
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    at = ", ".join(
        f"{grid.parameter_title(found.sweep, i)} **{grid.format_value(value)}**" for i, value in enumerate(cell.values)
    )
    if point == leader:
        good = "the best"
    elif cell.best:
        good = "not shown to be worse than the best"
    else:
        good = f"worse than the best by {text.interval_ends(_turned(cell.gap))}"
    judged = f", {good}" if not found.active else ""
    row.markdown(f"{at}: {number(cell.estimate.mean)} ({text.interval_ends(cell.estimate)}){judged}.")
    if row.button("Open in the Arena", icon=":material/monitoring:", key="sweep-open"):
        try:
            job = session.pool().submit(found.landscape.sweep.point(point), owner())
        except UserError as sentence:
            refuse(sentence)
            return
        session.follow(job)
        draft.load(job.experiment)
        st.switch_page("pages/arena.py")


def _turned(gap: Estimate) -> Estimate:
    """How far behind, from how far ahead."""
    return Estimate(-gap.mean, -gap.high, -gap.low)


def _told(found: SweepJob, metric: str) -> None:
    with found.lock:
        landscape = found.landscape
        cells, matters = landscape.results(metric), landscape.importance(metric)
        pairing, explained = landscape.pairing(metric), landscape.explained(metric)
    if not found.active:
        good = sum(cell.best for cell in cells)
        so = {1: "it stands alone", len(cells): "so few runs cannot tell them apart"}.get(good, "choose any of these")
        st.markdown(
            f"- {good} of {len(cells)} points are not shown to be worse than the best (paired t tests, Holm's "
            f"correction): {so}. The best was chosen by the very runs that its interval is made of, so "
            "that is somewhat too high."
        )
    if pairing == pairing:
        st.markdown(
            f"- The same visitors and the same luck for all make the interval of a difference "
            f"{number(pairing)} times narrower than separate runs would."
        )
    if matters:
        paths = [axis.path for axis in found.sweep.axes]
        rows = [
            {
                "Parameter": grid.parameter_title(found.sweep, paths.index(m.path)), "Best": grid.format_value(m.best),
                "As good": ", ".join(map(grid.format_value, m.good)), "Worst": grid.format_value(m.worst),
                "Clicks lost at worst, of 1,000 users": f"{number(m.cost.mean)} ({text.interval_ends(m.cost)})"
                if m.matters else "not shown to be any",
                "Explains": percent(m.share),
            }
            for m in matters
        ]  # fmt: skip
        st.subheader("What matters", anchor=False)
        st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
        st.caption(
            "Worst: the value at which even the best choice of the other parameters earns least. Explains: the share "
            "of the differences between points that this parameter makes by itself."
        )

    if explained:
        _explained(found.sweep, explained)


def _explained(sweep: Sweep, explained: list[Explained]) -> None:
    """What each parameter explains, where points are scattered."""
    paths = [axis.path for axis in sweep.axes]
    at = [paths.index(one.path) for one in explained]
    rows = [
        {
            "Parameter": grid.parameter_title(sweep, i), "Best": grid.format_value(one.best),
            "As good": (", " if sweep.axes[i].values else " to ").join(map(grid.format_value, one.good)),
            "Explains": percent(one.share),
        }
        for i, one in zip(at, explained, strict=True)
    ]  # fmt: skip
    st.subheader("What matters", anchor=False)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    st.caption(
        "As good: what the points reach that are not shown to be worse than the best. Explains: the share of the "
        "differences between points that this parameter makes by itself, on a random forest fitted to the points, as "
        "far as it foretells points that it has not seen."
    )


def show_previous_sweep(experiment: Experiment | None) -> None:
    """What sweeps already say of a draft's agents, before it is run."""
    for answer in sweeper().nearest_points(experiment) if experiment is not None else ():
        at = ", ".join(
            f"{grid.parameter_title(answer.sweep, i)} {grid.format_value(v)}"
            for i, v in enumerate(answer.sweep.values_at(answer.point))
        )
        near = "" if answer.exact else "at the nearest of its points, "
        st.caption(
            f":material/grid_on: Swept before: {escape_markdown(answer.label)} earned {number(answer.estimate.mean)} "
            f"({text.interval_ends(answer.estimate)}, {answer.runs} runs) {near}{at}."
        )


# -- what is kept --------------------------------------------------------------------------------------------------


def shelf() -> None:
    """Every sweep that is going on or kept, to open or delete."""
    found = sweeper().stored_sweeps()
    if not found:
        return
    st.subheader("Sweeps", anchor=False)
    with st.container(height=420 if len(found) > 4 else "content", border=False):  # many are scrolled
        for line in found:
            sweep = line.sweep
            with st.container(border=True):
                left, see, drop = st.columns([4, 1, 1], vertical_alignment="center")
                part = "" if line.progress >= 1 else f", {100 * line.progress:.0f} % done"
                left.markdown(f"**{escape_markdown(described(sweep))}**  \n{escape_markdown(_size(sweep))}{part}")
                if see.button("Open", key=f"sweep-{sweep.hash}", icon=":material/open_in_new:", width="stretch"):
                    st.session_state[_SEEN] = sweep.hash
                    _adopt(sweep)
                    st.switch_page("pages/sweep.py")
                if drop.button("Delete", key=f"drop-{sweep.hash}", icon=":material/delete:", width="stretch"):
                    st.dialog("Delete this sweep?")(_ask)(sweep)


def described(sweep: Sweep) -> str:
    """An agent and what was varied: LinUCB: Exploration, Ridge."""
    varied = ", ".join(grid.parameter_title(sweep, i) for i in range(len(sweep.axes)))
    return f"{sweep.experiment.labels[0]}: {varied}"


def _ask(sweep: Sweep) -> None:
    st.markdown(f"{escape_markdown(described(sweep))}, {_size(sweep)}. It cannot be brought back, only computed again.")
    with st.container(horizontal=True):
        if st.button("Delete for good", type="primary", on_click=_drop, args=(sweep,), key="go-sweep"):
            st.rerun()
        if st.button("Cancel", key="keep-sweep"):
            st.rerun()


def _drop(sweep: Sweep) -> None:
    try:
        sweeper().delete(sweep.hash, owner())
    except UserError as sentence:
        st.toast(escape_markdown(str(sentence)), icon=":material/block:")
