"""A run on the page: how far it is, who leads, four plots, and what it means."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits.base.formatting import count, count_of
from bandits.results import metrics
from bandits.results import text as words
from bandits.results.figures import Bands, bands
from bandits.results.figures import board as plots
from bandits.results.result import Result
from bandits.results.style import styles
from bandits.runtime.pool import Job
from ui import session
from ui.arena import draft
from ui.live_panel import panel
from ui.owner import owner

from .options import View

TICK = 1.0  # seconds between looks at a run


def show(job: Job, *, key: str, view: View = View()) -> None:  # noqa: B008 - a constant
    """Draw a job, again every second while it runs; the page is redrawn once when it ends."""
    st.fragment(_board, run_every=TICK if job.active else None)(job, view, key, job.active)


def run_buttons(job: Job, row: DeltaGenerator, *, changed: bool = False) -> Job:
    """The buttons that suit the job's state: pause, resume or continue, and stop. Returns the job to show.

    A run goes on with its own settings: where the controls have been ``changed``, that would throw the changes away.

    Raises
    ------
    UserError
        It is somebody else's run.
    """
    me, goes_on = owner(), job.status in ("paused", "stopped", "failed")
    if job.status == "finished":
        more = "As many steps again, from where it ended."
        if changed:
            more = "The controls have changed: Run begins anew with them; Undo brings back those of this run."
        if row.button("Continue", icon=":material/fast_forward:", shortcut="Alt+P", help=more, disabled=changed):
            job = session.follow(session.pool().extend(job, 2 * job.experiment.steps, me))
            draft.load(job.experiment)
            st.rerun()
    elif goes_on:
        if row.button("Resume", icon=":material/resume:", shortcut="Alt+P", help="Go on from the step it has reached."):
            session.pool().resume(job, me)
            st.rerun()
    elif row.button("Pause", icon=":material/pause:", shortcut="Alt+P", help="Rest, and let other runs go first."):
        session.pool().pause(job, me)
        st.rerun()
    ending = "End this run. What was computed stays, and it can be resumed."
    if row.button("Stop", icon=":material/stop:", shortcut="Alt+S", disabled=not job.active, help=ending):
        session.pool().stop(job, me)
        st.rerun()
    return job


class BoardContent(NamedTuple):
    """One moment of a run, ready to be sent: the same for everybody who looks at it in the same way."""

    packed: bytes
    sentences: list[str]


def _board(job: Job, view: View, key: str, was_active: bool) -> None:
    before = session.previous(job) if view.before else None
    moment = (job.id, version(job), view, before and (before.id, version(before)))
    frame = _content(job, view, before, moment)
    st.progress(min(job.progress, 1.0), text=status(job))
    panel.mount(frame.packed, key=key)
    if frame.sentences:
        told = "\n".join(f"- {sentence}" for sentence in frame.sentences)
        st.markdown(told.replace(" %", "\u00a0%"))  # no line begins with a percent sign
    if was_active and not job.active:
        st.session_state.refused = st.session_state.pop("said", [])  # a run that ends takes no sentence away
        st.rerun()


def version(job: Job) -> tuple[object, ...]:
    """Changes whenever there is something else to be drawn."""
    reached = tuple((h.step, len(h.spectra)) for h in job.histories.values())
    return job.status, reached, tuple(sorted(job.waiting))


@st.cache_resource(max_entries=64, show_spinner=False)
def _content(_job: Job, _view: View, _before: Job | None, moment: object) -> BoardContent:  # noqa: ARG001 - the key
    behind = _behind_it(_before, _view, _job.experiment.steps, (_before.id, version(_before))) if _before else None
    with _job.lock:
        result = _job.result
        specs = plots(result, **_view.drawn(), before=behind)
        tiles = _tiles(_job, result, _before.result if _before else None)
        sentences = _sentences(_job, result)
    ended_early = _job.status in ("stopped", "failed")
    for spec in specs:
        for waiting in spec["layout"].get("annotations", ()) if ended_early else ():
            waiting["text"] = "This run ended before there was anything to draw here."
        spec["layout"]["uirevision"] = f"{_job.id}{_view.x}{_view.log_regret}{_view.fourth}"
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    note = "Over the whole run, ± 95 % interval, and how far behind the leader. Press an agent to hide it in all plots."
    return BoardContent(panel.pack(specs, alt, 300, tiles, note), sentences)


@st.cache_resource(max_entries=16, show_spinner=False)
def _behind_it(
    _before: Job,
    view: View,
    steps: int,
    moment: object,  # noqa: ARG001 - a part of the key
) -> Bands:
    """Curves of the run before, as far as the new one goes."""
    axes = {name: value for name, value in view.drawn().items() if name not in ("log_regret", "fourth")}
    with _before.lock:
        return bands(_before.result, until=steps, **axes)


def status(job: Job) -> str:
    """How far a run is, in one line."""
    step, steps = count(job.step), count(job.experiment.steps)
    if job.status == "queued":
        if session.pool().broken:
            return "The workers do not start; the server's log tells why. They are being tried again"
        ahead = session.pool().queue_position(job)
        if ahead:
            return f"Waiting: {ahead} other run{'s' if ahead > 1 else ''} first"
        return "Next in line, as soon as another run ends" if session.pool().busy else "Warming up"
    if job.status == "running":
        left = job.seconds_left
        text = f"Step {step} of {steps}" + (f" · about {max(1, round(left))} s left" if left is not None else "")
        return text + "".join(f" · {label} is being trained, it will catch up" for label in sorted(job.waiting))
    if job.status == "finished":
        times = job.experiment.replications
        text = f"Finished: {steps} steps, {times} run{'s' if times > 1 else ''} each, in {job.seconds:.1f} s"
        return f"{text} · {job.error}" if job.error else text
    if job.status == "paused":
        return f"Paused at step {step} of {steps}"
    if job.status == "stopped":
        return f"Stopped at step {step} of {steps}; what was computed stays" + (f" · {job.error}" if job.error else "")
    return f"Failed: {job.error}"


def _tiles(job: Job, result: Result, before: Result | None) -> list[dict[str, str]]:
    """The leaderboard, one tile per agent, best first; also the plots' legend."""
    looks = styles(job.experiment)
    order = words.ranking(result)
    waiting = [label for label in job.experiment.labels if label not in order]
    leader = result.histories[order[0]] if order else None
    tiles, noun = [], job.experiment.simulator_class().reward_noun
    for place, label in enumerate([*order, *waiting]):
        rate, spread, detail = "–", "", "in training" if label in job.waiting else "waiting"
        if job.status in ("stopped", "failed"):
            detail = "no points"
        if label in order and leader is not None:
            history = result.histories[label]
            found = metrics.estimate(metrics.click_rate(history))
            half = (found.high - found.low) / 2
            alive = int(history.alive.sum())
            if alive:
                rate = f"{found.mean:.3f}"
                spread = f" ± {half:.3f}" if half >= 0.0005 else " ± <0.001" if half > 0 else ""
            detail = "leads" if place == 0 and alive else _behind(metrics.mean_lead(history, leader), noun)
            if history.step < leader.step or history.step < job.step:
                detail += f" · at step {count(history.step)}"
            if alive < history.rows:
                detail = f"{detail} · {alive} of {history.rows} runs alive" if alive else "all runs diverged"
            if before is not None and label in before.histories:
                earlier = before.histories[label]
                was = f"{metrics.estimate(metrics.click_rate(earlier, history.step)).mean:.3f}"
                then = " by this step" if earlier.step > history.step else ""
                detail += f" · before{then}: {was}" if was not in (rate, "nan") else ""
        look = looks[label]
        tiles.append({"label": label, "color": look.color, "dash": look.dash,
                      "rate": rate, "spread": spread, "detail": detail})  # fmt: skip
    return tiles


def _behind(difference: float, noun: str) -> str:
    apart = count_of(abs(difference), noun)
    return "level" if apart.startswith("0 ") else f"{'+' if difference > 0 else '−'}{apart}"


def _sentences(job: Job, result: Result) -> list[str]:
    if job.active or not result.histories:
        return words.agent_notes(result)
    found = [*words.divergence_notes(result), *words.leader_comparisons(result), *words.agent_notes(result)]
    shared = not job.experiment.simulator_class().layout_per_row(job.experiment.simulator)
    scope = "Intervals speak for this one world, met in another order and with other luck, not for others like it."
    scope += " Each agrees with a test that allows for all pairs of agents." if len(result.histories) > 2 else ""
    return [*found, words.learning_summary(result), *([scope] if shared and job.experiment.replications > 1 else [])]
