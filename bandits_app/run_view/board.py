"""Draw a run: its progress, the main conclusion, a leaderboard, plots and the other conclusions,
all of one moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits.base.formatting import count, count_of, number, percent
from bandits.results import guard_cost, metrics, words
from bandits.results.caveats import (
    agent_notes,
    beside_table,
    divergence_notes,
    rare_reward_notes,
    replay_notes,
    scope,
    stopped_notes,
    table_notes,
)
from bandits.results.change import recovery
from bandits.results.change.marks import variation_budget
from bandits.results.comparison import paired_tests
from bandits.results.comparison.conclusion import (
    learning_summary,
    main_comparison,
    ranking,
    shock_summary,
)
from bandits.results.comparison.run_title import compared_with
from bandits.results.describe import ParameterChange, parameter_changes, relabelled
from bandits.results.figures.board import Bands, bands
from bandits.results.figures.board import board as plots
from bandits.results.figures.curves import zoom
from bandits.results.figures.style import styles
from bandits.results.instant import difference, gain
from bandits.results.metric_registry import METRICS, first_three, main_metric
from bandits.results.result import Result
from bandits.runtime.pool import Job
from bandits_app.glossary import link
from bandits_app.session import followed
from bandits_app.session.results import shared
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown, glued
from bandits_app.widgets.until_end import part

from .frames import Frames
from .options import View
from .status import reached, status

# seconds between updates
TICK = 1.0


def show(
    job: Job,
    *,
    key: str,
    view: View = View(),  # noqa: B008
    above: DeltaGenerator | None = None,
    fill: bool = False,
    choose_reference: bool = False,
) -> None:
    """Draw a job, once a second while it is active; the page is rerun once when it ends.

    Parameters
    ----------
    above : DeltaGenerator, optional
        The container that the progress is drawn into; by default it stands above the leaderboard.
    fill : bool
        Let the plots fill the rest of the window, with the main conclusion alone.
    choose_reference : bool
        Let the user choose the agent that the conclusions compare with.
    """
    every, shown = TICK if job.active else None, _Shown(job, view, fill)
    # A fragment of its own: one that writes to a container outside it fails where a page was
    # interrupted before it.
    with (above or st).container(key="run-status", width="stretch"):
        part(_progress, shown, every=every)
    part(_board, shown, key, choose_reference, every is not None, every=every)


class _Shown(NamedTuple):
    """What is drawn of which run."""

    job: Job
    view: View
    fill: bool

    def content(self) -> BoardContent:
        """Return the run at this moment: the same one in both fragments and for all sessions."""
        job, view, fill = self
        # a run that no page shows gives way to others
        job.seen = time.monotonic()
        previous = followed.previous(job) if view.previous else None
        return _frames().get(
            # not the jobs: they would stay in memory
            (job.id, view, fill, previous and previous.id),
            lambda: _moment(job, previous),
            lambda: _content(job, view, previous, fill=fill),
        )


class BoardContent(NamedTuple):
    """A run at one moment, ready to be sent: the same for all sessions with the same view of it."""

    status: str
    # share of the steps that have been computed; None at the end
    progress: float | None
    packed: bytes


def _progress(shown: _Shown) -> None:
    content = shown.content()
    # a caption takes the place of the bar
    place = st.empty()
    if content.progress is None:
        place.caption(content.status)
    else:
        place.progress(content.progress, text=content.status)


def _board(shown: _Shown, key: str, choose_reference: bool, was_active: bool) -> None:
    job, fill = shown.job, shown.fill
    reference = ""
    if not job.live:
        reference = compared_with(job.experiment)
        if choose_reference:
            reference = st.session_state.get(_reference_key(job), reference)
    # its height is reserved: no plot moves when the conclusion comes
    first = st.container(key="conclusion")
    # before the conclusions, which take longer
    panel.mount(shown.content().packed, key=key)
    found = _so_far(job) if job.live else _conclusions(job, reference, (job.id, version(job)))
    if found.first:
        first.markdown(glued(found.first if job.live else f"**{found.first}**"))
    # those of visits are compared with the first agent that does not plan
    chosen = choose_reference and not job.experiment.offers("visits")
    if chosen and not fill and not job.live and len(job.result.histories) > 2:
        _choose_reference(job)
    if not fill and found.others:
        st.container(key="conclusions").markdown(
            glued("\n".join(f"- {sentence}" for sentence in found.others))
        )
    if was_active and not job.active:
        # the rerun keeps them on the page
        st.session_state.refused = st.session_state.pop("shown-refusals", [])
        st.rerun()


def _reference_key(job: Job) -> str:
    return f"reference-{job.id[:12]}"


def _choose_reference(job: Job) -> None:
    """Draw the choice of the agent that the conclusions compare with, and the correction that
    applies.
    """
    result = job.result
    labels = [label for label, history in result.histories.items() if history.alive.any()]
    # no agent's name has parentheses
    leader = f"the leader ({ranking(result)[0]})"
    with st.container(key="reference", horizontal=True, vertical_alignment="bottom", gap="small"):
        key, asked = _reference_key(job), compared_with(job.experiment)
        st.selectbox(
            "Compared with",
            ["", *labels],
            index=1 + labels.index(asked) if asked in labels else 0,
            format_func=lambda label: label or leader,
            key=key,
            width=260,
        )
        pairs = count_of(paired_tests.family_of(job.experiment), "pairs")
        st.caption(
            f"Corrected for the {pairs} of agents ({link('bonferroni-correction')}): valid "
            "whichever agent you compare with.",
            width="stretch",
        )


@st.cache_resource(show_spinner=False)
def _frames() -> Frames[BoardContent]:
    return Frames(TICK)


def version(job: Job) -> tuple[Hashable, ...]:
    """Return a key that changes whenever the job has something new to draw."""
    reached = tuple((h.step, len(h.spectra)) for h in job.histories.values())
    return job.status, reached, tuple(sorted(job.waiting))


def _moment(job: Job, previous: Job | None) -> tuple[Hashable, ...]:
    return *version(job), status(job), previous and version(previous)


def _content(job: Job, view: View, previous: Job | None, *, fill: bool) -> BoardContent:
    changes, curves = {}, None
    if previous is not None:
        changes = parameter_changes(previous.experiment, job.experiment)
        curves = relabelled(
            _previous_curves(previous, view, (previous.id, version(previous))), changes
        )
    shown, progress = status(job), None if job.status == "finished" else min(job.progress, 1.0)
    table = [] if job.live else beside_table(job.experiment)
    with job.lock:
        result = job.result
        specs = plots(result, **view.figure_options(), before=curves, changes=changes)
        specs = (zoom(specs, result) if view.zoom else specs)[: view.plots]
        tiles = _tiles(job, result)
        caption, note = _explanation(job, result, previous, changes)
    caption = ". ".join([caption, *table])
    ended_early = job.status in ("stopped", "failed")
    # other plots name what lies outside of them there
    empty = [spec for spec in specs if not any(len(trace["x"]) for trace in spec["data"])]
    for spec in empty if ended_early else ():
        for placeholder in spec["layout"].get("annotations", ()):
            placeholder["text"] = "This run ended before its first results."
    revision = f"{job.id}{view.x}{view.log_regret}{view.fourth}{view.zoom}"
    packed = panel.pack(
        specs,
        300,
        tiles,
        note,
        revision=revision,
        caption=caption,
        fill="alone" if fill else "window" if len(specs) > 2 else "",
        final=not job.active,
    )
    return BoardContent(shown, progress, packed)


def _explanation(
    job: Job, result: Result, previous: Job | None, changes: dict[str, ParameterChange]
) -> tuple[str, str]:
    """Describe the tiles and the dotted curves: in a few words, and in full."""
    simulator, metric = job.experiment.simulator_class(), main_metric(job.experiment)
    caption = f"{metric.title} of the whole run, ± 95 % confidence interval"
    visits = job.experiment.offers("visits")
    note = (
        f"{metric.title} over the whole run with its 95 % confidence interval, and the "
        f"difference from the leader in {metric.unit if visits else simulator.reward_noun}. Select "
        "an agent to hide it in all plots."
    )
    if job.experiment.offers("replay"):
        note = (
            f"{simulator.rate_title} of the events that count, with its 95 % confidence interval, "
            "and their number in all replications. Agents count different events: nothing is "
            "paired. Select an agent to hide it in all plots."
        )
    paired = not job.experiment.offers("replay")
    described, rate_title, rates = [], simulator.rate_title.lower(), ""
    for label, change in changes.items() if previous is not None else ():
        now, earlier = (
            result.histories.get(label),
            previous.histories.get(change.label) if previous is not None else None,
        )
        if now is None or earlier is None or earlier.size < 2:
            continue
        step = min(now.step, earlier.step)
        if step == job.experiment.steps and now.alive.all() and earlier.alive.all() and paired:
            gained = gain(job.experiment, now, earlier, family=len(changes))
            stated = difference(gained, change.before, job.experiment)
            described.append(f"{label}, {change.text}: {stated}")
            continue
        if visits:
            described.append(f"{label}: {change.text}")
            continue
        rates = " Rates are those of both runs up to the same step."
        was, rate = (
            words.plain(metrics.estimate(metrics.click_rate(h, step))) for h in (earlier, now)
        )
        described.append(f"{label}: {change.text} ({rate_title} {was} to {rate})")
    if not described:
        return caption, note
    common = "simulator and random numbers" if paired else "simulator"
    dotted = f"Dotted: previous run. {'; '.join(described)}"
    return dotted, (
        f"{dotted}.{rates} The runs have the same {common}. Tiles: {note[0].lower()}{note[1:]}"
    )


@shared(number=16)
def _previous_curves(
    _previous: Job,
    view: View,
    moment: object,  # noqa: ARG001
) -> Bands:
    with _previous.lock:
        result = _previous.result
        return bands(result, [*first_three(result.experiment), view.fourth], view.options)


def _tiles(job: Job, result: Result) -> list[dict[str, str]]:
    """Make the leaderboard, one tile per agent, best first; it is also the plots' legend."""
    tile_styles = styles(job.experiment)
    order = ranking(result)
    waiting = [label for label in job.experiment.labels if label not in order]
    leader = result.histories[order[0]] if order else None
    tiles, noun = [], job.experiment.simulator_class().reward_noun
    metric, visits = main_metric(job.experiment), job.experiment.offers("visits")
    for place, label in enumerate([*order, *waiting]):
        more = ""
        rate, spread, detail = "–", "", "in training" if label in job.waiting else "waiting"
        if job.status in ("stopped", "failed"):
            detail = "no results"
        if label in order and leader is not None:
            history = result.histories[label]
            estimate = metric.estimate(history)
            alive = int(history.alive.sum())
            if alive:
                rate, spread = (
                    words.plain(estimate, metric.form),
                    words.spread(estimate, metric.form),
                )
            if metrics.replayed(history):
                detail = (
                    f"{count(float(metrics.decisions(history)[-1][history.alive].sum()))} events "
                    "count"
                )
            elif place == 0 and alive:
                detail = "leads"
            elif visits:
                detail = _signed(estimate.mean - metric.estimate(leader).mean, metric.unit)
            else:
                detail = _difference(paired_tests.mean_lead(history, leader), noun)
            optimal = METRICS["optimal_choice"].estimate(history).mean
            if math.isfinite(optimal) and not visits:
                more = f"Optimal choice: {percent(optimal)}"
            if history.step < leader.step or history.step < reached(job):
                detail += f" · at step {count(history.step)}"
            if not alive:
                detail = "all replications diverged"
            elif alive < history.rows:
                detail += f" · {history.rows - alive} of {history.rows} replications diverged"
        style = tile_styles[label]
        tiles.append(
            {
                "label": label,
                "name": job.experiment.names[label],
                "color": style.color,
                "dash": style.dash,
                "rate": rate,
                "spread": spread,
                "detail": detail,
                # under the pointer, and for screen readers: a phone's tile has no room for it
                "more": more,
            }
        )
    return tiles


def _signed(difference: float, unit: str) -> str:
    if not math.isfinite(difference):
        return "no visit yet"
    text = number(abs(difference))
    return "tied" if text == "0" else f"{'+' if difference > 0 else '−'}{text} {unit}"


def _difference(difference: float, noun: str) -> str:
    amount = count_of(abs(difference), noun)
    return "tied" if amount.startswith("0 ") else f"{'+' if difference > 0 else '−'}{amount}"


class _Found(NamedTuple):
    """The sentence above the plots, which may be empty, and those below them."""

    first: str
    others: list[str]


def _so_far(job: Job) -> _Found:
    """State who leads a run that goes on or is paused, which is no conclusion."""
    with job.lock:
        result, order = job.result, ranking(job.result)
        first = ""
        if len(order) > 1 and result.histories[order[0]].step:
            paused = "the run is paused, and " if job.status == "paused" else ""
            first = (
                f"{job.experiment.names[order[0]]} leads so far; {paused}conclusions follow at the "
                "end."
            )
        return _Found(first, agent_notes(result))


@shared(number=64)
def _conclusions(_job: Job, reference: str, moment: object) -> _Found:  # noqa: ARG001
    """State the conclusions of a run that has ended, and what its intervals cover.

    They are computed once for all sessions and views, and hold no lock, as the run no longer
    changes."""
    result = _job.result
    if not result.histories:
        return _Found("", agent_notes(result))
    (first, compared), shock = main_comparison(result, reference), shock_summary(result)
    conclusions = stopped_notes(result) if _job.status in ("stopped", "failed") else []
    conclusions += [*divergence_notes(result), *rare_reward_notes(result), *compared, *shock]
    conclusions += [
        *recovery.sentences(result),
        *guard_cost.fallback_sentences(result),
        *variation_budget(_job.experiment),
    ]
    conclusions += agent_notes(result)
    if first:
        conclusions += filter(None, [learning_summary(result)])
    else:
        # an agent alone
        first = learning_summary(result)
    # names of columns are a user's texts
    conclusions += map(escape_markdown, table_notes(result))
    if _job.experiment.offers("replay"):
        return _Found(first, [*replay_notes(result), *conclusions])
    visits = _job.experiment.offers("visits")
    shared = not _job.experiment.simulator_class().layout_per_row(_job.experiment.simulator)
    if shared and _job.experiment.replications > 1:
        many = " The intervals of the differences over the whole run hold together"
        many += "; the one after the shock is corrected separately." if shock else "."
        if visits:
            many = " The intervals of the comparisons per visit hold together." * bool(compared)
        conclusions.append(scope(_job.experiment) + many * (len(result.histories) > 2))
    return _Found(first, conclusions)
