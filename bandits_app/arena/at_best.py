"""Compare the agents of a run at their best, on request."""

from __future__ import annotations

from functools import partial

import streamlit as st

from bandits import UserError
from bandits.base.formatting import count_of
from bandits.runtime.pool import Job
from bandits.sweeps.at_best import VALUES, families
from bandits.sweeps.at_best_job import AtBestJob
from bandits.sweeps.manager import SweepManager
from bandits_app.session import followed, workers
from bandits_app.session.owner import address, owner
from bandits_app.widgets.text import refuse
from bandits_app.widgets.until_end import until_end

_TASK, _ABOUT = "at-best-task", "at-best-about"


def about(job: Job) -> str:
    """Return the values at which the agents of a run are at their best, or other notes on the run;
    empty without any.
    """
    run, sentence = st.session_state.get(_ABOUT, ("", ""))
    store = workers.pool().store
    return sentence if run == job.id else (store and store.notes(job.id)) or ""


def offer(job: Job, manager: SweepManager) -> None:
    """Offer to tune the agents of a run that has ended and to compare them then; follow the
    comparison once it is known.
    """
    if job.live or not job.result.histories:
        return
    try:
        families(job.experiment)
    except UserError:
        return
    task: AtBestJob | None = st.session_state.get(_TASK)
    if task is None or task.experiment != job.experiment:
        _button(job, manager)
    elif task.status == "finished" and task.found is not None:
        del st.session_state[_TASK]
        st.session_state[_ABOUT] = task.run, task.found.sentence
        try:
            followed.submit_and_follow(task.found.experiment)
        except UserError as error:
            refuse(error)
        else:
            st.rerun()
    else:
        until_end(_show, task)


def _button(job: Job, manager: SweepManager) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Compare each at its best",
            icon=":material/tune:",
            key="at-best",
            on_click=_start,
            args=(job, manager),
            help=(
                f"Sweeps the main parameter of each agent over {VALUES} values, with early "
                "stopping, and compares the agents at their best values on new visitors."
            ),
        )
        if not about(job):
            st.caption(
                "The agents run at the values in the sidebar. Others may change who leads.",
                width="stretch",
            )


def _start(job: Job, manager: SweepManager) -> None:
    pool = workers.pool()
    submit = partial(pool.submit, owner=owner(), address=address())
    st.session_state[_TASK] = AtBestJob(job.experiment, manager, submit, owner(), pool.store)


def _show(task: AtBestJob) -> None:
    if task.active:
        done = f"{count_of(task.sweeps, 'sweeps')} of {VALUES} values each"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(min(task.progress, 1.0), text=f"Tuning the agents: {done}", width="stretch")
            st.button("Stop", icon=":material/stop:", key="at-best-stop", on_click=task.stop)
    elif task.status == "failed":
        refuse(task.error)
    else:
        st.caption("The agents were not tuned: the sweeps were stopped.")
