"""The start of Home: three ways into the app (teach, tune, research), and the facts of the pet
shop.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from bandits.experiments.experiment import Experiment
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.results.describe import parameter_changes
from bandits.results.result import Result
from bandits.runtime.pool import Job
from bandits.simulators.petshop import CATEGORIES, PERSONAS
from bandits_app.session import draft
from bandits_app.session.followed import submit_and_follow
from bandits_app.session.workers import pool

# of the session: the run that Home shows
_SEEN = "home-run"


def adjustable(experiment: Experiment) -> bool:
    """Return whether the controls differ from an experiment in nothing but the agents' parameters.

    What else a user has set up in the Arena stays there.
    """
    drafted = draft.current().experiment()
    return drafted is not None and (
        drafted == experiment or bool(parameter_changes(experiment, drafted))
    )


def shown_run(experiment: Experiment) -> Job:
    """Return the run that Home shows, once its sliders are drawn: that of the controls where these
    are `adjustable`.

    Raises
    ------
    UserError
    """
    job = _shown(experiment)
    st.session_state[_SEEN] = job.id
    return job


def _shown(experiment: Experiment) -> Job:
    drafted, source = draft.current().experiment(), draft.requested_run()
    if drafted is None or not adjustable(experiment):
        return _unowned(experiment)
    if source:
        draft.forget_request()
        # the run that was seen here until now is the previous one
        st.session_state.job = st.session_state.get(_SEEN) or _unowned(experiment).id
        return submit_and_follow(drafted, by_slider=source == "slider")
    job = pool().get(st.session_state.get("job", ""))
    return job if job is not None and job.experiment == drafted else _unowned(experiment)


def offer_sliders(experiment: Experiment) -> None:
    """State why the run has no sliders, and offer to load it into the controls."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("The Arena's controls hold another experiment.", width="content")
        if st.button(
            "Show the sliders of this run",
            icon=":material/tune:",
            help="Loads this run into the controls; Undo in the Arena restores yours.",
        ):
            draft.load(experiment)
            st.rerun()


def _unowned(experiment: Experiment) -> Job:
    """Return the run of an experiment; it has no owner, and the next visitor resumes it."""
    # a failed run is shown as failed
    job = pool().get(experiment.hash)
    return pool().submit(experiment) if job is None or job.status == "stopped" else job


class Entrance(NamedTuple):
    """A way into the app: a page, with the experiment of a preset.

    Parameters
    ----------
    title, icon, text : str
    page : str
        Script of the page.
    preset : str
        Name of the preset that is loaded into the controls; none by default.
    runs : bool
        Run the preset too; otherwise it is only loaded.
    view : str
        Of the page; its first by default.
    """

    title: str
    icon: str
    text: str
    page: str
    preset: str = ""
    runs: bool = False
    view: str = ""


ENTRANCES = (
    Entrance(
        "Teach",
        "school",
        "Thirteen lessons: predict, see a run, compare. With handouts.",
        "learn",
    ),
    Entrance(
        "Tune",
        "tune",
        "Find the parameter values of an agent that earn the most.",
        "sweep",
        preset="race",
    ),
    Entrance(
        "Research",
        "science",
        "Examine how each agent explores and what it has learned.",
        "arena",
        preset="race",
        runs=True,
        view="diagnostics",
    ),
)


def entrances() -> None:
    """Draw the ways into the app.

    Raises
    ------
    UserError
    """
    st.html(Path(__file__).with_name("home.css"))
    with st.container(key="doors"):
        for column, entrance in zip(
            st.columns(len(ENTRANCES), gap="small"), ENTRANCES, strict=True
        ):
            with column:
                pressed = st.button(
                    entrance.title,
                    icon=f":material/{entrance.icon}:",
                    key=f"door-{entrance.title}",
                    width="stretch",
                )
                st.caption(entrance.text)
            if pressed:
                _enter(entrance)


def _enter(entrance: Entrance) -> None:
    """Load the preset of an entrance, if any, run it if it is to start at once, and open its page.

    Raises
    ------
    UserError
    """
    if entrance.preset:
        experiment = presets()[entrance.preset].experiment
        draft.load(experiment)
        if entrance.runs:
            submit_and_follow(experiment)
    st.switch_page(
        f"{entrance.page}.py", query_params={"view": entrance.view} if entrance.view else None
    )


def describe_shop(experiment: Experiment, result: Result) -> str:
    """Describe the shop in one sentence, with its lowest and highest CTR once the run has begun."""
    # the parameters of the pet shop
    shop: Any = experiment.simulator
    text = (
        f"{shop.n_products:,} products in {len(CATEGORIES)} categories, {shop.n_users:,} users of "
        f"{len(PERSONAS)} personas, one product for each visit."
    )
    history = max(result.histories.values(), key=lambda one: one.step, default=None)
    if history is None or not history.step:
        return text
    random, best = (
        metrics.total(history, name).mean() / history.step
        for name in ("random_value", "best_value")
    )
    return (
        f"{text} Random choice earns a click-through rate of {random:.2f}, the best choice "
        f"{best:.2f}."
    )


def click_probabilities(experiment: Experiment) -> None:
    """Show how likely each persona clicks a product of each category."""
    personas = [name.replace("_", " ").capitalize() for name in PERSONAS]
    shop: Any = experiment.simulator
    table = pd.DataFrame(shop.click_rates, pd.Index(personas, name="Persona"), CATEGORIES)
    st.markdown(
        "Agents do not know these probabilities: they observe the persona and the category, and "
        "learn from clicks."
    )
    st.table(table.map("{:.2f}".format))
