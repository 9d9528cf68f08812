"""Draw a run: its progress, a leaderboard, four plots and the conclusions."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits.base.formatting import count, count_of
from bandits.results import metrics, paired_tests
from bandits.results import text as words
from bandits.results.figures import Bands, bands
from bandits.results.figures import board as plots
from bandits.results.result import Result
from bandits.results.style import styles
from bandits.results.zoom import zoom
from bandits.runtime.pool import Job
from ui import session
from ui.arena import draft
from ui.live_panel import panel
from ui.owner import owner

from .options import View

TICK = 1.0  # seconds between updates
_SCOPE = (
    "Confidence intervals cover new visitor sequences in this same environment, not other environments.",
    "All conclusions hold after correction for multiple comparisons.",
)


def show(job: Job, *, key: str, view: View = View()) -> None:  # noqa: B008 - a constant
    """Draw a job, once a second while it is active; the page is rerun once when it ends."""
    st.fragment(_board, run_every=TICK if job.active else None)(job, view, key, job.active)


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
    elif row.button("Pause", icon=":material/pause:", shortcut="Alt+P", help="Interrupt this run; queued runs start."):
        session.pool().pause(job, me)
        st.rerun()
    description = "End this run. Its results so far are kept, and it can be resumed."
    if row.button("Stop", icon=":material/stop:", shortcut="Alt+S", disabled=not job.active, help=description):
        session.pool().stop(job, me)
        st.rerun()
    return job


class BoardContent(NamedTuple):
    """A run at one moment, ready to be sent: the same for all sessions with the same view of it."""

    packed: bytes
    sentences: list[str]


def _board(job: Job, view: View, key: str, was_active: bool) -> None:
    previous = session.previous(job) if view.previous else None
    moment = (job.id, version(job), view, previous and (previous.id, version(previous)))
    content = _content(job, view, previous, moment)
    st.progress(min(job.progress, 1.0), text=status(job))
    panel.mount(content.packed, key=key)
    if content.sentences:
        bullets = "\n".join(f"- {sentence}" for sentence in content.sentences)
        st.markdown(bullets.replace(" %", "\u00a0%"))  # no line begins with a percent sign
    if was_active and not job.active:
        st.session_state.refused = st.session_state.pop("shown-refusals", [])  # the rerun keeps them on the page
        st.rerun()


def version(job: Job) -> tuple[object, ...]:
    """Return a key that changes whenever the job has something new to draw."""
    reached = tuple((h.step, len(h.spectra)) for h in job.histories.values())
    return job.status, reached, tuple(sorted(job.waiting))


@st.cache_resource(max_entries=64, show_spinner=False)
def _content(_job: Job, _view: View, _previous: Job | None, moment: object) -> BoardContent:  # noqa: ARG001 - the key
    curves = None
    if _previous is not None:
        curves = _previous_curves(_previous, _view, _job.experiment.steps, (_previous.id, version(_previous)))
    with _job.lock:
        result = _job.result
        specs = plots(result, **_view.figure_options(), before=curves)
        specs = zoom(specs, result) if _view.zoom else specs
        tiles = _tiles(_job, result, _previous.result if _previous else None)
        sentences = _sentences(_job, result)
    ended_early = _job.status in ("stopped", "failed")
    for spec in specs:
        for placeholder in spec["layout"].get("annotations", ()) if ended_early else ():
            placeholder["text"] = "This run ended before its first results."
        spec["layout"]["uirevision"] = f"{_job.id}{_view.x}{_view.log_regret}{_view.fourth}"
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    simulator = _job.experiment.simulator_class()
    note = (
        f"{simulator.rate_title} over the whole run with its 95 % confidence interval, and the difference from the "
        f"leader in {simulator.reward_noun}. Select an agent to hide it in all plots."
    )
    return BoardContent(panel.pack(specs, alt, 300, tiles, note), sentences)


@st.cache_resource(max_entries=16, show_spinner=False)
def _previous_curves(
    _previous: Job,
    view: View,
    steps: int,
    moment: object,  # noqa: ARG001 - a part of the key
) -> Bands:
    """Compute the curves of the previous run up to the last step of the new one."""
    options = {name: v for name, v in view.figure_options().items() if name not in ("log_regret", "fourth")}
    with _previous.lock:
        return bands(_previous.result, until=steps, **options)


def status(job: Job) -> str:
    """Describe the progress of a run in one line."""
    step, steps = count(job.step), count(job.experiment.steps)
    if job.status == "queued":
        if session.pool().broken:
            return "The workers do not start (see the server's log); trying again"
        if ahead := session.pool().queue_position(job):
            return f"Queued: {count_of(ahead, 'runs')} ahead"
        return "Queued: starts when another run ends" if session.pool().busy else "Starting the workers"
    if job.status == "running":
        left = job.seconds_left
        text = f"Step {step} of {steps}" + (f" · about {max(1, round(left))} s left" if left is not None else "")
        return text + "".join(f" · {label} is being trained on logged data first" for label in sorted(job.waiting))
    if job.status == "finished":
        replications = count_of(job.experiment.replications, "replications")
        text = f"Finished: {steps} steps, {replications}, in {job.seconds:.1f} s"
        return f"{text} · {job.error}" if job.error else text
    if job.status == "paused":
        return f"Paused at step {step} of {steps}"
    if job.status == "stopped":
        return f"Stopped at step {step} of {steps}; results so far are kept" + (f" · {job.error}" if job.error else "")
    return f"Failed: {job.error}"


def _tiles(job: Job, result: Result, previous: Result | None) -> list[dict[str, str]]:
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
            if history.step < leader.step or history.step < job.step:
                detail += f" · at step {count(history.step)}"
            if not alive:
                detail = "all replications diverged"
            elif alive < history.rows:
                detail += f" · {history.rows - alive} of {history.rows} replications diverged"
            if previous is not None and label in previous.histories:
                earlier = previous.histories[label]
                value = f"{metrics.estimate(metrics.click_rate(earlier, history.step)).mean:.3f}"
                until = ", same step" if earlier.step > history.step else ""
                detail += f" · previous run{until}: {value}" if value not in (rate, "nan") else ""
        style = tile_styles[label]
        tiles.append({"label": label, "color": style.color, "dash": style.dash,
                      "rate": rate, "spread": spread, "detail": detail})  # fmt: skip
    return tiles


def _difference(difference: float, noun: str) -> str:
    amount = count_of(abs(difference), noun)
    return "tied" if amount.startswith("0 ") else f"{'+' if difference > 0 else '−'}{amount}"


def _sentences(job: Job, result: Result) -> list[str]:
    """State the conclusions of a run that has ended, and what its intervals cover."""
    if job.active or not result.histories:
        return words.agent_notes(result)
    conclusions = [*words.divergence_notes(result), *words.leader_comparisons(result), *words.agent_notes(result)]
    conclusions.append(words.learning_summary(result))
    shared = not job.experiment.simulator_class().layout_per_row(job.experiment.simulator)
    if shared and job.experiment.replications > 1:
        conclusions.append(" ".join(_SCOPE[: 2 if len(result.histories) > 2 else 1]))
    return conclusions
