"""The presets, and the buttons that start, pause, continue and stop a run.

The buttons act in callbacks: a button's own value is lost where another event interrupts the page
before the page reaches it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits import UserError
from bandits.experiments.experiment import Experiment
from bandits.experiments.presets import presets
from bandits.runtime.pool import Job
from bandits_app.session import draft, followed, workers
from bandits_app.session.owner import owner
from bandits_app.session.refusals import Refusal
from bandits_app.widgets import menu


def preset_of(experiment: Experiment | None) -> str | None:
    """Return the name of the preset with this experiment; None if there is none."""
    return next(
        (name for name, preset in presets().items() if preset.experiment == experiment), None
    )


def described_change(about: str) -> str:
    """State what Run does with changed controls; ``about`` describes the preset that they hold."""
    if about:
        return f"Press **Run** to start it. {about}"
    return "The controls have changed. Press **Run** to update the results."


def choose_preset(row: DeltaGenerator, held: str | None) -> None:
    """Draw the menu of presets, with the one that the controls hold."""
    menu.presets(
        row,
        "preset",
        draft.current().version,
        presets(),
        held,
        lambda name: draft.load(presets()[name].experiment),
    )


def start(row: DeltaGenerator) -> None:
    """Draw the button that runs the experiment in the controls."""
    row.button(
        "Run",
        type="primary",
        icon=":material/play_arrow:",
        shortcut="Ctrl+Enter",
        on_click=draft.request_run,
    )


def control(job: Job, row: DeltaGenerator, *, changed: bool = False) -> None:
    """Draw the buttons that suit the job's state: pause, resume or continue; and stop.

    Parameters
    ----------
    changed : bool
        The controls differ from the run. To continue it would discard the changes, so that button
        is disabled.
    """
    pool = workers.pool()
    if job.status == "finished":
        description = "Run the same number of steps again, starting from the last step."
        if changed:
            description = (
                "The controls have changed: press Run to use them, or Undo to restore those of "
                "this run."
            )
        row.button(
            "Continue",
            icon=":material/fast_forward:",
            shortcut="Alt+P",
            help=description,
            disabled=changed,
            on_click=_attempt,
            args=(_extend, job),
        )
    elif job.status in ("paused", "stopped", "failed"):
        row.button(
            "Resume",
            icon=":material/resume:",
            shortcut="Alt+P",
            help="Continue from the last step.",
            on_click=_attempt,
            args=(pool.resume, job),
        )
    elif job.active:
        row.button(
            "Pause",
            icon=":material/pause:",
            shortcut="Alt+P",
            help="Queued runs start.",
            on_click=_attempt,
            args=(pool.pause, job),
        )
    description = "End this run. Its results so far are kept, and it can be resumed."
    row.button(
        "Stop",
        icon=":material/stop:",
        shortcut="Alt+S",
        help=description,
        disabled=not job.active,
        on_click=_attempt,
        args=(pool.stop, job),
    )


def _attempt(action: Callable[[Job, str], object], job: Job) -> None:
    """Do what a button asks for; the page shows why where it is refused."""
    try:
        action(job, owner())
    except UserError as error:
        st.session_state.refused = [Refusal(str(error))]


def _extend(job: Job, user: str) -> None:
    extended = followed.follow(workers.pool().extend(job, 2 * job.experiment.steps, user))
    draft.load(extended.experiment)
