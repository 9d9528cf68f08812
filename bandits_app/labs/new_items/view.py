"""Draw a run with launches: what each launch got, agent by agent, and when its fair share was reached."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment
from bandits.results.change.marks import description
from bandits.results.figures.board import board
from bandits.results.items import new_items
from bandits.results.items.demand import demand
from bandits.runtime.pool import Job
from bandits_app.labs.lab import Lab
from bandits_app.run_view.status import status
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown, glued, safe_cell
from bandits_app.widgets.until_end import until_end

from . import choice


def show(job: Job) -> None:
    """Draw a run; update while it is computed."""
    until_end(_show, job)


def _show(job: Job) -> None:
    st.caption(escape_markdown(f"{status(job)}. {description(job.experiment)}"))
    if not job.result.histories:
        return
    demand(job.experiment)  # takes a while the first time: outside the lock
    with job.lock:
        result = job.result
        specs = [*new_items.cohort_figures(result), board(result)[0]]
        table = None if job.active else new_items.launch_table(result)
        sentences = [] if job.active else new_items.conclusions(result)
    if sentences:
        first = [f"**{escape_markdown(sentence)}**" for sentence in sentences]  # of each launch
        text = first[0] if len(first) == 1 else "\n".join(f"- {sentence}" for sentence in first)
        st.markdown(glued(text))
    panel.draw(specs, key="items-board", revision=job.id, height=320)
    if table is not None:
        st.dataframe(
            table.assign(Agent=[safe_cell(label) for label in table["Agent"]]), hide_index=True, key="items-table"
        )
        st.caption(glued(new_items.about(job.result)))


def _lacks(experiment: Experiment) -> str:
    if not choice.launched(experiment):
        return "Nothing is launched in the Arena's run. Press **Run**."
    if not choice.countable(experiment):
        return (
            "In the Arena's run, items are too many to be counted one by one, or what is optimal is not known. "
            "Press **Run**."
        )
    return ""


NEW_ITEMS = Lab(
    "New items",
    "Which agent finds a new item that no visitor has seen, and when? Choose launches and press **Run**. The page "
    "compares the share of traffic that a launch gets with its fair share: what the optimal choice would give it. For "
    "new titles, it shows what their pictures earn.",
    key="items",
    above="launches",
    choose=choice.choose,
    show=show,
    lacks=_lacks,
)
