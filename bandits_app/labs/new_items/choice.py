"""The controls of the lab New items: which launches, in which run."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bandits import Experiment, read
from bandits.results.items.demand import measurable
from bandits.runtime.pool import Job
from bandits.simulators.launches import Launch
from bandits_app.labs import lab
from bandits_app.widgets.params_form import form


def choose(job: Job) -> Experiment:
    """Draw the controls; return the experiment that they describe.

    Raises
    ------
    UserError
        The launches do not fit the simulator.
    """
    base = lab.choose_base(
        job, "items", lambda e: countable(e) and launched(e), default="launch", label="Launches",
        help="What is launched, in which simulator, and which agents run.",
    )  # fmt: skip
    return _edited(base)


def _edited(base: Experiment) -> Experiment:
    """Draw the list of launches and withdrawals; return the experiment with it."""
    cls = type(base.simulator)
    data = base.model_dump(mode="json", by_alias=True)
    key = f"items-{base.hash[:12]}"
    given = {**data["simulator"], **st.session_state.get(f"{key}-entered", {})}  # with what was added and removed
    with st.popover("Edit launches", icon=":material/tune:", type="tertiary"):
        st.caption("Steps, numbers, categories and quality of what is launched and withdrawn.")
        entered: dict[str, Any] = form(cls, ["changes"], given, key, lambda kind: kind.suggested(base.steps))
    st.session_state[f"{key}-entered"] = entered
    return read({**data, "simulator": {**data["simulator"], **entered}})


def launched(experiment: Experiment) -> bool:
    """Return whether anything is launched in a run."""
    return any(isinstance(change, Launch) for change in experiment.simulator.all_changes.values())


def countable(experiment: Experiment) -> bool:
    """Return whether items are counted one by one, and what is optimal is known."""
    return measurable(experiment) is not None
