"""State what a sweep shows: the best region, whether it is resolved, and the sensitivity to each
parameter.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits.base.formatting import count_of, number, percent
from bandits.base.types import BoolArray
from bandits.results import words
from bandits.results.caveats import FEW_REWARDS
from bandits.results.metric_registry import OBJECTIVES
from bandits.sweeps import Sweep
from bandits.sweeps.analysis.landscape import EQUIVALENT, LEVEL, Landscape
from bandits.sweeps.analysis.records import Explained, Importance, PointResult, State
from bandits.sweeps.axis import Value
from bandits.sweeps.figures import grid, lines
from bandits.sweeps.manager import SweepJob
from bandits.sweeps.not_worse import not_worse
from bandits.sweeps.refinement import MAX_RATIO, Unresolved, refinable_axes, refine, unresolved
from bandits_app.widgets.text import escape_markdown

from . import axes, selection

# neighbouring values that are listed one by one
MAX_LISTED = 3
# factor from which an interval counts as narrower
NARROWER = 1.05


def first(job: SweepJob, metric: str) -> None:
    """State the conclusion of a sweep that has ended, above its figures: what to choose, and which
    choice is better from which value on.
    """
    if job.active:
        return
    with job.lock:
        along = lines.comparison(job.landscape, metric)
        found = None if varies_simulators(job) else chosen(job.landscape, metric)
    for sentence in filter(None, (found, along)):
        st.markdown(f"**{escape_markdown(sentence)}**")


def chosen(landscape: Landscape, metric: str) -> str:
    """State which point to choose, what it earns, and how sure that is; empty without a best one.
    Of a single parameter, also which values are not significantly worse.

    The point is what the agent has, if it is tied: a change would hardly earn more. Else it is the
    middle of the tied ones: its neighbours are as good, so that it stays good where a little is
    different.
    """
    best, point = landscape.best(metric), landscape.recommended(metric)
    if best is None or point is None:
        return ""
    shown = OBJECTIVES[metric].of(landscape.sweep.experiment)
    states = [result.state for result in landscape.results(metric)]
    tied, unclear = states.count("tied"), states.count("unclear")
    mean = f"{shown.title.lower()} {words.mean(point.estimate, shown.form)}"
    values = grid.described(landscape.sweep, point.values)

    def named(one: PointResult) -> str:
        described = grid.described(landscape.sweep, one.values)
        return f"{described} ({words.mean(one.estimate, shown.form)})"

    alike = ""
    if landscape.sweep.is_grid and len(landscape.sweep.axes) == 1:
        alike = not_worse(landscape, metric)
        alike = f" {alike[0].upper()}{alike[1:]}."
    own = landscape.unchanged(metric)
    so_far = ""
    if own is not None and own.state == "worse":
        worse = "diverged" if own.diverged else "are significantly worse than the best"
        so_far = f" The values so far, {named(own)}, {worse}."
    noisy = ""
    if unclear:
        noisy = (
            f" {unclear} of the others {'is' if unclear == 1 else 'are'} too noisy to tell: more "
            "replications would decide."
        )
    if tied <= 1 and unclear:
        others = "another point is" if unclear == 1 else f"{unclear} other points are"
        return (
            f"{values} earned most ({mean}), but {others} too noisy to tell "
            f"from it: more replications would decide.{so_far}{alike}"
        )
    if own is not None and own.point == point.point:
        why = "the values so far are the best"
        if own.point != best.point:
            why = f"the values so far are tied with the best, {named(best)}"
        return f"Keep {values} ({mean}): {why}.{noisy}{alike}"
    why = "the best point; no other is tied with it"
    if tied > 1:
        top = "" if point.point == best.point else f", {named(best)}"
        why = f"the middle of the {tied} points that are tied with the best{top}"
    return f"Choose {values} ({mean}): {why}.{so_far}{noisy}{alike}"


def show(job: SweepJob, metric: str) -> None:
    """Draw the further conclusions of a sweep.

    Those that need all points, only when it has ended.
    """
    with job.lock:
        landscape = job.landscape
        results, importance = landscape.results(metric), landscape.importance(metric)
        pairing, explained, level = (
            landscape.pairing(metric),
            landscape.explained(metric),
            landscape.level,
        )
        few = landscape.points_with_few_clicks()
    if not job.active:
        st.markdown(f"- {counts([result.state for result in results], level)}")
    noun = job.sweep.experiment.simulator_class().reward_noun
    if few and not job.active:
        st.markdown(
            f"- {few} of {len(results)} points have fewer than {FEW_REWARDS} {noun} in all "
            "replications together; their 95 % confidence intervals may cover as little as 60 %."
        )
    if pairing == pairing:
        st.markdown(f"- {_pairing(pairing)}")
    # with simulators, the best point of each value would lie in another one
    if importance and not (varies_simulators(job) and len(job.sweep.axes) > 1):
        _sensitivity(job.sweep, importance)
    if explained:
        _explained_variance(job.sweep, explained)


def varies_simulators(job: SweepJob) -> bool:
    """Return whether the points of a sweep differ in their simulator."""
    return any(axis.path.startswith("simulator.") for axis in job.sweep.axes)


def refine_button(row: DeltaGenerator, job: SweepJob, metric: str) -> None:
    """Offer to add values around the best point, if a better one may lie between or beyond those of
    the grid.

    Raises
    ------
    UserError
        If the refined sweep is too large, or too many sweeps are running.
    """
    found, _ = _unresolved(job, metric)
    if not found:
        return
    pressed = row.button(
        "Refine around the best",
        icon=":material/zoom_in:",
        key="sweep-refine",
        help=f"Adds {_added(found)} to the grid and computes only the new points.",
    )
    if pressed and (refined := refine(job.landscape, metric)) is not None:
        selection.start(refined)
        axes.fill(refined)
        st.rerun()


def resolution(job: SweepJob, metric: str) -> None:
    """State where a better value may lie, or that the best region is resolved."""
    if job.status == "finished" and not job.sweep.is_grid:
        st.markdown(
            ":material/zoom_in: Optuna chooses all points by itself, so there is nothing to "
            "refine; more **Points** search further."
        )
    found, region = _unresolved(job, metric)
    if found:
        sentences = " ".join(escape_markdown(one.sentence()) for one in found)
        st.markdown(f":material/zoom_in: {sentences} **Refine around the best** adds values there.")
    elif region is not None and not region.all() and refinable_axes(job.sweep):
        # all: the best can lie anywhere
        near = f"its neighbours in the grid are within a factor of {MAX_RATIO:g}"
        st.markdown(
            ":material/check: The best region is resolved: the best value is at no open edge, and "
            f"{near}."
        )


def _unresolved(job: SweepJob, metric: str) -> tuple[list[Unresolved], BoolArray | None]:
    """Return what a finished grid leaves open, and its best region; None for other sweeps."""
    if job.status != "finished" or not job.sweep.is_grid:
        return [], None
    with job.lock:
        return unresolved(job.landscape, metric), job.landscape.best_region(metric)


def _added(found: list[Unresolved]) -> str:
    """List the values that a refinement adds: Ridge 5.62 and 17.8."""
    return "; ".join(f"{one.title} {', '.join(map(grid.format_value, one.added))}" for one in found)


def counts(states: Sequence[State], level: float) -> str:
    """State how many points are tied with the best, too noisy to tell, worse or dropped."""
    rest = "" if level == LEVEL else f"; refinements may use the rest of {percent(LEVEL)}"
    test = f"paired t tests, Tukey's correction for all pairs, level {number(100 * level)} %{rest}"
    parts = [
        f"tied with the best, losing at most {percent(EQUIVALENT)}: {states.count('tied')}",
        "too noisy to tell, not significantly worse but perhaps by more than "
        f"{percent(EQUIVALENT)}: {states.count('unclear')}",
        f"worse: {states.count('worse')}",
    ]
    if dropped := states.count("dropped"):
        parts.append(f"dropped early: {dropped}")
    return (
        f"Of {count_of(len(states), 'points')}, {'; '.join(parts)} ({test}). The estimate of the "
        "best point is slightly optimistic (selection bias)."
    )


def _pairing(factor: float) -> str:
    """State how much common random numbers narrow the interval of a difference."""
    if factor < NARROWER:
        return (
            "Common random numbers do not narrow the confidence interval of a difference in this "
            "sweep."
        )
    return (
        f"Common random numbers make the confidence interval of a difference {number(factor)} "
        "times narrower than independent random numbers would."
    )


def _sensitivity(sweep: Sweep, importance: list[Importance]) -> None:
    paths, noun = [axis.path for axis in sweep.axes], sweep.experiment.simulator_class().reward_noun
    rows = [
        {
            "Parameter": grid.parameter_label(sweep, paths.index(each.path)),
            "Best": grid.format_value(each.best),
            "Tied with best": _listed(sweep, paths.index(each.path), each.good),
            "Worst": grid.format_value(each.worst),
            "Worst-case loss per 1,000 visitors": f"{number(each.cost.mean)} {noun} ({words.interval(each.cost)})"  # noqa: E501
            if each.matters
            else "not significant",
            "Explained variance": percent(each.share),
        }
        for each in importance
    ]
    st.subheader("Sensitivity", anchor=False)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    combined = "; not every combination of them is (see the outline)" if len(paths) > 1 else ""
    st.caption(
        f"**Tied with best**: values of the points that lose at most {percent(EQUIVALENT)} for "
        f"sure{combined}. **Worst**: the value with which an agent earns least, even with the best "
        "values of the other parameters. **Worst-case loss**: what that costs against the best "
        "point; the interval allows for the choice of both by the same data. **Explained "
        "variance**: share of the variance between points that the parameter explains by itself "
        "(first-order Sobol index)."
    )


def _listed(sweep: Sweep, axis: int, good: tuple[Value, ...]) -> str:
    """List values of an axis; more than three neighbours as a range: 0.03 to 0.64."""
    if len(good) == 1:
        return "only this"
    values, shown = sweep.values[axis], list(map(grid.format_value, good))
    numeric = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    first = values.index(good[0])
    if numeric and len(good) > MAX_LISTED and values[first : first + len(good)] == good:
        return f"{shown[0]} to {shown[-1]}"
    return ", ".join(shown)


def _explained_variance(sweep: Sweep, explained: list[Explained]) -> None:
    paths = [axis.path for axis in sweep.axes]
    at = [paths.index(one.path) for one in explained]
    rows = [
        {
            "Parameter": grid.parameter_label(sweep, i),
            "Best": grid.format_value(one.best),
            "Tied with best": (", " if sweep.axes[i].values else " to ").join(
                map(grid.format_value, one.good)
            ),
            "Explained variance": percent(one.share),
        }
        for i, one in zip(at, explained, strict=True)
    ]
    st.subheader("Sensitivity", anchor=False)
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    st.caption(
        f"**Tied with best**: values of the points that lose at most {percent(EQUIVALENT)} for "
        "sure. "
        "**Explained variance**: share of the variance between points that the parameter explains "
        "by itself, estimated with a random forest (first-order Sobol index times the out-of-bag "
        "R²); it needs at least ten points."
    )
