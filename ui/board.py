"""A run on the page: how far it is, who leads, four plots, and what it means."""

from __future__ import annotations

import re
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits import Refused, metrics, words
from bandits.figures import board as plots
from bandits.figures import styles
from bandits.jobs import Job
from bandits.result import Result

from . import draft, runs
from .live import live_panel

TICK = 1.0  # seconds between looks at a run


def show(job: Job, *, window: int, key: str) -> None:
    """Draw a job, again every second while it runs; the page is redrawn once when it ends."""
    st.fragment(_board, run_every=TICK if job.active else None)(job, window, key, job.active)


def refuse(sentence: Refused) -> None:
    """Say why not; what the visitor typed is quoted as text, not as markup that could load a picture."""
    text = re.sub(r"([\\`*_\[\]<>$:!~])", r"\\\1", str(sentence))
    st.error(f"This cannot be done: {text}.", icon=":material/block:")


def steer(job: Job, rest_at: DeltaGenerator, stop_at: DeltaGenerator) -> Job:
    """The buttons that suit the job's state: pause, resume or continue, and stop. Returns the job to show.

    Raises
    ------
    Refused
        It is somebody else's run.
    """
    me, goes_on = runs.owner(), job.status in ("paused", "stopped", "failed")
    if job.status == "finished":
        more = "As many steps again, from where it ended."
        if rest_at.button("Continue", icon=":material/fast_forward:", width="stretch", help=more):
            job = runs.keep(runs.pool().extend(job, 2 * job.experiment.steps, me))
            draft.load(job.experiment)
            st.rerun()
    elif goes_on:
        if rest_at.button("Resume", icon=":material/resume:", width="stretch"):
            runs.pool().resume(job, me)
            st.rerun()
    elif rest_at.button("Pause", icon=":material/pause:", width="stretch"):
        runs.pool().pause(job, me)
        st.rerun()
    if stop_at.button("Stop", icon=":material/stop:", disabled=not job.active, width="stretch"):
        runs.pool().stop(job, me)
        st.rerun()
    return job


def _board(job: Job, window: int, key: str, was_active: bool) -> None:
    with job.lock:
        result = job.result
        specs = plots(result, window)
        tiles = _tiles(job, result)
        sentences = _sentences(job, result)
    st.progress(min(job.progress, 1.0), text=status(job))
    st.html(tiles)
    for spec in specs:
        spec["layout"]["uirevision"] = job.id
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    live_panel(specs, key=key, alt=alt)
    if sentences:
        st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
    if was_active and not job.active:
        st.rerun()


def status(job: Job) -> str:
    """How far a run is, in one line."""
    step, steps = words.count(job.step), words.count(job.experiment.steps)
    if job.status == "queued":
        ahead = runs.pool().ahead(job)
        if ahead:
            return f"Waiting: {ahead} other run{'s' if ahead > 1 else ''} first"
        return "Next in line, as soon as another run ends" if runs.pool().busy else "Warming up"
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


def _tiles(job: Job, result: Result) -> str:
    """The leaderboard, one tile per agent, best first; also the plots' legend."""
    looks = styles(job.experiment)
    order = words.ranking(result)
    waiting = [label for label in job.experiment.labels if label not in order]
    leader = result.histories[order[0]] if order else None
    tiles, noun = [], job.experiment.simulator_class().reward_noun
    for place, label in enumerate([*order, *waiting]):
        rate, detail = "–", "in training" if label in job.waiting else "waiting"
        if label in order and leader is not None:
            history = result.histories[label]
            found = metrics.estimate(metrics.click_rate(history))
            half = (found.high - found.low) / 2
            rate = f"{found.mean:.3f}" + (f"<small> ± {half:.3f}</small>" if half > 0 else "")
            detail = "leads" if place == 0 else _behind(metrics.ahead_by(history, leader), noun)
            if history.step < leader.step or history.step < job.step:
                detail += f" · at step {words.count(history.step)}"
            if (alive := int(history.alive.sum())) < history.rows:
                detail += f" · {alive} of {history.rows} runs alive"
        look = looks[label]
        tiles.append(
            f'<li style="border-left-color:{look.color}"><b>{escape(label)}</b>'
            f'<span class="rate">{rate}</span><span class="detail">{escape(detail)}</span></li>'
        )
    return f'<style>{_STYLE}</style><ol class="board" aria-label="Leaderboard: clicks per step">{"".join(tiles)}</ol>'


def _behind(difference: float, noun: str) -> str:
    return f"{'+' if difference > 0 else '−'}{words.count(abs(difference))} {noun}"


def _sentences(job: Job, result: Result) -> list[str]:
    if job.active or not result.histories:
        return []
    found = words.verdicts(result)
    shared = getattr(job.experiment.simulator, "layout", "shared") == "shared"
    scope = "Intervals speak for this one shop or data set, met in another order and with other luck, not for all."
    return [*found, words.lesson(result), *([scope] if shared and job.experiment.replications > 1 else [])]


_STYLE = """
.board{list-style:none;margin:0!important;padding:0!important;display:grid;gap:.6rem;
grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr))}
.board li{margin:0!important;padding:.45rem .75rem .5rem;border:1px solid rgba(128,140,140,.35);border-left:5px solid;
border-radius:.6rem;display:flex;flex-direction:column;font-variant-numeric:tabular-nums;min-width:0}
.board b{font-weight:600;font-size:.9rem;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.board .rate{font-size:1.35rem;font-weight:600;line-height:1.3}
.board small{font-size:.8rem;font-weight:400;opacity:.75}
.board .detail{font-size:.8rem;opacity:.75}
@media (max-width:700px){.board{grid-template-columns:repeat(2,minmax(0,1fr))}}
"""
