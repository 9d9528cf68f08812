"""New items: what each launch got, agent by agent, and when its fair share was reached."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bandits import Experiment, read
from bandits.results.change.marks import description
from bandits.results.figures.board import board
from bandits.results.items import new_items
from bandits.results.items.demand import demand, measurable
from bandits.runtime.pool import Job
from bandits.simulators.launches import Launch
from bandits_app.labs import lab
from bandits_app.run_view.status import status
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.params_form import form
from bandits_app.widgets.text import escape_markdown, glued, safe_agents
from bandits_app.widgets.until_end import until_end


def choose(job: Job) -> Experiment:
    """Draw the controls; return the experiment that they describe.

    Raises
    ------
    UserError
        The launches do not fit the simulator.
    """
    base = lab.choose_base(
        job,
        "items",
        lambda e: countable(e) and launched(e),
        default="launch",
        label="Launches",
        help="What is launched, in which simulator, and which agents run.",
    )
    return _edited(base)


def _edited(base: Experiment) -> Experiment:
    """Draw the list of launches and withdrawals; return the experiment with it."""
    cls = type(base.simulator)
    data = base.model_dump(mode="json", by_alias=True)
    key = f"items-{base.hash[:12]}"
    # with what was added and removed
    given = {**data["simulator"], **st.session_state.get(f"{key}-entered", {})}
    with st.popover("Edit launches", icon=":material/tune:", type="tertiary"):
        st.caption("Steps, numbers, categories and quality of what is launched and withdrawn.")
        entered: dict[str, Any] = form(
            cls, ["changes"], given, key, lambda kind: kind.suggested(base.steps)
        )
    st.session_state[f"{key}-entered"] = entered
    return read({**data, "simulator": {**data["simulator"], **entered}})


def launched(experiment: Experiment) -> bool:
    """Return whether anything is launched in a run."""
    return any(isinstance(change, Launch) for change in experiment.simulator.all_changes.values())


def countable(experiment: Experiment) -> bool:
    """Return whether items are counted one by one, and what is optimal is known."""
    return measurable(experiment) is not None


def show(job: Job) -> None:
    """Draw a run; update while it is computed."""
    until_end(_show, job)


def _show(job: Job) -> None:
    st.caption(escape_markdown(f"{status(job)}. {description(job.experiment)}"))
    if not job.result.histories:
        return
    # takes a while the first time: outside the lock
    demand(job.experiment)
    with job.lock:
        result = job.result
        specs = [*new_items.cohort_figures(result), board(result)[0]]
        table = None if job.live else new_items.launch_table(result)
        sentences = [] if job.live else new_items.conclusions(result)
    if sentences:
        first = [f"**{escape_markdown(sentence)}**" for sentence in sentences]  # of each launch
        text = first[0] if len(first) == 1 else "\n".join(f"- {sentence}" for sentence in first)
        st.markdown(glued(text))
    panel.draw(specs, key="items-board", revision=job.id, height=320)
    if table is not None:
        st.dataframe(safe_agents(table), hide_index=True, key="items-table")
        st.caption(glued(new_items.about(job.result)))


def _lacks(experiment: Experiment) -> str:
    if not launched(experiment):
        return "Nothing is launched in the Arena's run. Press **Run**."
    if not countable(experiment):
        return (
            "In the Arena's run, items are too many to be counted one by one, or what is optimal "
            "is not known. Press **Run**."
        )
    return ""


NEW_ITEMS = lab.Lab(
    "New items",
    "Which agent finds a new item that no visitor has seen, and when? Choose launches and press "
    "**Run**. The page compares the share of traffic that a launch gets with its fair share: "
    "what the optimal choice would give it. For new titles, it shows what their pictures earn.",
    key="items",
    above="launches",
    choose=choose,
    show=show,
    lacks=_lacks,
)
