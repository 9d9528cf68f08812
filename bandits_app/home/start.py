"""Three ways into the app: teach, tune, research."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from bandits.experiments.presets import presets
from bandits_app.session import draft
from bandits_app.session.followed import submit_and_follow


class Door(NamedTuple):
    """A way into the app: a page, with the experiment of a preset.

    Parameters
    ----------
    title, icon, text : str
    preset : str
        Name of the preset that is loaded into the controls.
    page : str
        Script of the page.
    runs : bool
        Run the preset too; otherwise it is only loaded.
    view : str
        Of the page; its first by default.
    """

    title: str
    icon: str
    text: str
    preset: str
    page: str
    runs: bool
    view: str = ""


DOORS = (
    Door("Teach", "school", "Show a class what an agent that never explores loses.", "off", "arena", True),
    Door("Tune", "tune", "Find the parameter values of an agent that earn the most.", "race", "sweep", False),
    Door(
        "Research",
        "science",
        "Examine how each agent explores and what it has learned.",
        preset="race",
        page="arena",
        runs=True,
        view="diagnostics",
    ),
)


def show() -> None:
    """Draw the doors.

    Raises
    ------
    UserError
    """
    st.html(Path(__file__).with_name("home.css"))
    with st.container(key="doors"):
        for column, door in zip(st.columns(len(DOORS), gap="small"), DOORS, strict=True):
            with column:
                pressed = st.button(
                    door.title, icon=f":material/{door.icon}:", key=f"door-{door.title}", width="stretch"
                )
                st.caption(door.text)
            if pressed:
                enter(door)


def enter(door: Door) -> None:
    """Load the door's preset, run it where the door does so, and open its page.

    Raises
    ------
    UserError
    """
    experiment = presets()[door.preset].experiment
    draft.load(experiment)
    if door.runs:
        submit_and_follow(experiment)
    st.switch_page(f"{door.page}.py", query_params={"view": door.view} if door.view else None)
