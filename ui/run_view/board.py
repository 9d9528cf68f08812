"""Draw a run: its progress, a leaderboard, four plots and the conclusions, all of one moment."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits.base.formatting import count, count_of, time_left
from bandits.results import metrics, paired_tests
from bandits.results import text as words
from bandits.results.figures import Bands, bands
from bandits.results.figures import board as plots
from bandits.results.previous_run import ParameterChange, parameter_changes
from bandits.results.result import Result
from bandits.results.style import styles
from bandits.results.zoom import zoom
from bandits.runtime.pool import Job
from ui import session
from ui.arena import draft
from ui.glossary.terms import link
from ui.live_panel import panel
from ui.owner import owner

from .frames import Frames
from .options import View

TICK = 1.0  # seconds between updates
_SCOPE = "Confidence intervals cover new visitor sequences in this same environment, not other environments."


def show(
    job: Job,
    *,
    key: str,
    view: View = View(),  # noqa: B008 - a constant
    place: DeltaGenerator | None = None,
    fill: bool = False,
    choose_reference: bool = False,
) -> None:
    """Draw a job, once a second while it is active; the page is rerun once when it ends.

    Parameters
    ----------
    place : DeltaGenerator, optional
        An ``st.empty`` for the progress; by default it is drawn above the leaderboard.
    fill : bool
        Let the plots fill the rest of the window, without the conclusions.
    choose_reference : bool
        Let the user choose the agent that the conclusions compare with.
    """
    every = TICK if job.active else None
    st.fragment(_board, run_every=every)(job, view, key, place, fill, choose_reference, job.active)


def run_buttons(job: Job, row: DeltaGenerator, *, changed: bool = False) -> Job:
    """Draw the buttons that suit the job's state: pause, resume or continue, and stop; return the job to show.

    Parameters
    ----------
    changed : bool
        The controls differ from the run. To continue it would discard the changes, so that button is disabled.

    Raises
    ------
    UserError
        Another user started the run.
    """
    me = owner()
    if job.status == "finished":
        description = "Run the same number of steps again, starting from the last step."
        if changed:
            description = "The controls have changed: press Run to use them, or Undo to restore those of this run."
        if row.button("Continue", icon=":material/fast_forward:", shortcut="Alt+P", help=description, disabled=changed):
            job = session.follow(session.pool().extend(job, 2 * job.experiment.steps, me))
            draft.load(job.experiment)
            st.rerun()
    elif job.status in ("paused", "stopped", "failed"):
        if row.button("Resume", icon=":material/resume:", shortcut="Alt+P", help="Continue from the last step."):
            session.pool().resume(job, me)
            st.rerun()
    elif job.active and row.button("Pause", icon=":material/pause:", shortcut="Alt+P", help="Queued runs start."):
        session.pool().pause(job, me)
        st.rerun()
    description = "End this run. Its results so far are kept, and it can be resumed."
    if row.button("Stop", icon=":material/stop:", shortcut="Alt+S", disabled=not job.active, help=description):
        session.pool().stop(job, me)
        st.rerun()
    return job


class BoardContent(NamedTuple):
    """A run at one moment, ready to be sent: the same for all sessions with the same view of it."""

    status: str
    progress: float | None  # share of the steps that have been computed; None at the end
    packed: bytes


def _board(
    job: Job,
    view: View,
    key: str,
    place: DeltaGenerator | None,
    fill: bool,
    choose_reference: bool,
    was_active: bool,
) -> None:
    previous = session.previous(job) if view.previous else None
    reference = st.session_state.get(_reference_key(job), "") if choose_reference else ""
    content = _frames().get(
        (job, view, fill, previous),
        lambda: _moment(job, previous),
        lambda: _content(job, view, previous, fill=fill),
    )
    place = st.container(key="run-status").empty() if place is None else place
    if content.progress is None:
        place.caption(content.status)
    else:
        place.progress(content.progress, text=content.status)
    panel.mount(content.packed, key=key)
    if choose_reference and not fill and not job.active and len(job.result.histories) > 2:
        _choose_reference(job)
    if not fill and (sentences := _notes(job) if job.active else _conclusions(job, reference, (job.id, version(job)))):
        bullets = "\n".join(f"- {sentence}" for sentence in sentences)
        st.markdown(bullets.replace(" %", "\u00a0%"))  # no line begins with a percent sign
    if was_active and not job.active:
        st.session_state.refused = st.session_state.pop("shown-refusals", [])  # the rerun keeps them on the page
        st.rerun()


def _reference_key(job: Job) -> str:
    return f"reference-{job.id[:12]}"


def _choose_reference(job: Job) -> None:
    """Draw the choice of the agent that the conclusions compare with, and the correction that applies."""
    result = job.result
    labels = [label for label, history in result.histories.items() if history.alive.any()]
    leader = f"the leader ({words.ranking(result)[0]})"  # no agent's name has parentheses
    with st.container(key="reference", horizontal=True, vertical_alignment="bottom", gap="small"):
        key = _reference_key(job)
        st.selectbox("Compared with", ["", *labels], format_func=lambda label: label or leader, key=key, width=260)
        st.caption(
            f"Corrected for all pairs of agents ({link('holm-correction')}): valid whichever agent you compare with.",
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
        curves = _previous_curves(previous, view, tuple(changes), (previous.id, version(previous)))
    text, progress = status(job), None if job.status == "finished" else min(job.progress, 1.0)
    with job.lock:
        result = job.result
        specs = plots(result, **view.figure_options(), before=curves, changes=changes)
        specs = zoom(specs, result) if view.zoom else specs
        tiles = _tiles(job, result)
        caption, note = _explanation(job, result, previous, changes)
    ended_early = job.status in ("stopped", "failed")
    for spec in specs:
        for placeholder in spec["layout"].get("annotations", ()) if ended_early else ():
            placeholder["text"] = "This run ended before its first results."
        spec["layout"]["uirevision"] = f"{job.id}{view.x}{view.log_regret}{view.fourth}"
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    packed = panel.pack(specs, alt, 300, tiles, note, caption=caption, fill=fill, final=not job.active)
    return BoardContent(text, progress, packed)


def _explanation(
    job: Job, result: Result, previous: Job | None, changes: dict[str, ParameterChange]
) -> tuple[str, str]:
    """Describe the tiles and the dotted curves: in a few words, and in full."""
    simulator = job.experiment.simulator_class()
    caption = f"{simulator.rate_title} of the whole run, ± 95 % confidence interval"
    note = (
        f"{simulator.rate_title} over the whole run with its 95 % confidence interval, and the difference from the "
        f"leader in {simulator.reward_noun}. Select an agent to hide it in all plots."
    )
    described = []
    for label, change in changes.items() if previous is not None else ():
        now, earlier = result.histories.get(label), previous.histories.get(label) if previous is not None else None
        if now is None or earlier is None or earlier.size < 2:
            continue
        step = min(now.step, earlier.step)
        was, rate = (metrics.estimate(metrics.click_rate(h, step)).mean for h in (earlier, now))
        described.append(f"{label}: {change.text} ({was:.3f} to {rate:.3f})")
    if not described:
        return caption, note
    dotted = f"Dotted: previous run. {'; '.join(described)}"
    return dotted, (
        f"{dotted}. In parentheses: {simulator.rate_title.lower()} of both runs up to the same step. The runs have the "
        f"same simulator and random numbers. Tiles: {note[0].lower()}{note[1:]}"
    )


@st.cache_resource(max_entries=16, show_spinner=False)
def _previous_curves(
    _previous: Job,
    view: View,
    changed: tuple[str, ...],
    moment: object,  # noqa: ARG001 - a part of the key
) -> Bands:
    """Compute the curves of the previous run, of the agents that have changed since."""
    options = {name: v for name, v in view.figure_options().items() if name not in ("log_regret", "fourth")}
    with _previous.lock:
        found = bands(_previous.result, **options)
    return {plot: {label: band for label, band in of.items() if label in changed} for plot, of in found.items()}


def status(job: Job) -> str:
    """Describe the progress of a run in one line."""
    step, steps = count(_reached(job)), count(job.experiment.steps)
    if job.status == "offered":
        return "Not started: a long run waits for Run"
    if job.status == "queued":
        if session.pool().broken:
            return "The workers do not start (see the server's log); trying again"
        if ahead := session.pool().queue_position(job):
            return f"Queued: {count_of(ahead, 'runs')} ahead"
        return _waiting_for_a_worker(job)
    if job.status == "running":
        return _running(job)
    if job.status == "finished":
        replications = count_of(job.experiment.replications, "replications")
        text = f"Finished: {steps} steps, {replications}, in {job.seconds:.1f} s"
        return f"{text} · {job.error}" if job.error else text
    if job.status == "paused":
        return f"Paused at step {step} of {steps}"
    if job.status == "stopped":
        return f"Stopped at step {step} of {steps}; results so far are kept" + (f" · {job.error}" if job.error else "")
    return f"Failed: {job.error}"


def _waiting_for_a_worker(job: Job) -> str:
    if session.pool().busy:
        return "Queued: starts when another run ends"
    if session.pool().starting:
        seconds = count(time.monotonic() - job.queued)
        return f"Starting workers: loading libraries · {seconds} s"
    return "Queued: starts when a worker is free"


def _running(job: Job) -> str:
    """State what is being computed, and the time left where it is known."""
    steps, reached = job.experiment.steps, {label: h.step for label, h in job.histories.items()}
    computing = {label: step for label, step in reached.items() if step < steps and label not in job.waiting}
    done = len(reached) - len(computing) - len(job.waiting)
    if not any(reached.values()) and not job.waiting:
        parts = [f"Preparing simulator and agents · {count(job.seconds)} s"]
    elif done == 0:
        parts = [f"Step {count(max(reached.values(), default=0))} of {count(steps)}"]
    elif done == len(reached):
        parts = [f"All {count_of(done, 'agents')} finished; storing the results"]
    else:
        parts = [f"{done} of {count_of(len(reached), 'agents')} finished"]
        if len(computing) > 2:
            parts.append(f"slowest at step {count(min(computing.values()))} of {count(steps)}")
        else:
            parts += [f"{label} at step {count(step)} of {count(steps)}" for label, step in computing.items()]
    parts += [f"{label} is being trained on logged data" for label in sorted(job.waiting)]
    return " · ".join(parts + ([] if job.seconds_left is None else [time_left(job.seconds_left)]))


def _reached(job: Job) -> int:
    """Return the last step that any agent has reached: the one that the curves show."""
    return max((h.step for h in job.histories.values()), default=job.step)


def _tiles(job: Job, result: Result) -> list[dict[str, str]]:
    """Make the leaderboard, one tile per agent, best first; it is also the plots' legend."""
    tile_styles = styles(job.experiment)
    order = words.ranking(result)
    waiting = [label for label in job.experiment.labels if label not in order]
    leader = result.histories[order[0]] if order else None
    tiles, noun = [], job.experiment.simulator_class().reward_noun
    for place, label in enumerate([*order, *waiting]):
        rate, spread, detail = "–", "", "in training" if label in job.waiting else "waiting"
        if job.status in ("stopped", "failed"):
            detail = "no results"
        if label in order and leader is not None:
            history = result.histories[label]
            estimate = metrics.estimate(metrics.click_rate(history))
            half = (estimate.high - estimate.low) / 2
            alive = int(history.alive.sum())
            if alive:
                rate = f"{estimate.mean:.3f}"
                spread = f" ± {half:.3f}" if half >= 0.0005 else " ± <0.001" if half > 0 else ""
            detail = "leads" if place == 0 and alive else _difference(paired_tests.mean_lead(history, leader), noun)
            if history.step < leader.step or history.step < _reached(job):
                detail += f" · at step {count(history.step)}"
            if not alive:
                detail = "all replications diverged"
            elif alive < history.rows:
                detail += f" · {history.rows - alive} of {history.rows} replications diverged"
        style = tile_styles[label]
        tiles.append({"label": label, "color": style.color, "dash": style.dash,
                      "rate": rate, "spread": spread, "detail": detail})  # fmt: skip
    return tiles


def _difference(difference: float, noun: str) -> str:
    amount = count_of(abs(difference), noun)
    return "tied" if amount.startswith("0 ") else f"{'+' if difference > 0 else '−'}{amount}"


def _notes(job: Job) -> list[str]:
    """State what is known of a run before it ends."""
    with job.lock:
        return words.agent_notes(job.result)


@st.cache_data(max_entries=64, show_spinner=False)
def _conclusions(_job: Job, reference: str, moment: object) -> list[str]:  # noqa: ARG001 - a part of the key
    """State the conclusions of a run that has ended, and what its intervals cover.

    They are computed once for all sessions and views, and hold no lock, as the run no longer changes.
    """
    result = _job.result
    if not result.histories:
        return words.agent_notes(result)
    compared, shock = words.reference_comparisons(result, reference), words.shock_summary(result)
    conclusions = [*words.divergence_notes(result), *words.rare_reward_notes(result), *compared, *shock]
    conclusions += [*words.agent_notes(result), words.learning_summary(result)]
    shared = not _job.experiment.simulator_class().layout_per_row(_job.experiment.simulator)
    if shared and _job.experiment.replications > 1:
        many = " The comparisons over the whole run hold together after correction for multiple comparisons"
        many += "; the one after the shock is corrected separately." if shock else "."
        conclusions.append(_SCOPE + many * (len(result.histories) > 2))
    return conclusions
