"""Draw the box in which a preset is chosen."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits.experiments.experiment import Experiment
from bandits.experiments.presets import presets
from bandits_app.session import draft

_SHOWN = "preset-box"  # in the session: the number of the box that is drawn, and the preset that it names


def preset_of(experiment: Experiment | None) -> str | None:
    """Return the name of the preset with this experiment; None if there is none."""
    return next((name for name, preset in presets().items() if preset.experiment == experiment), None)


def choose(row: DeltaGenerator, held: str | None) -> None:
    """Draw the box with the name of the preset that the controls hold, however they were filled.

    Another name is another box, under a number that never returns: a browser that has not seen the change yet sends
    the earlier box along with its next press.
    """
    names = list(presets())
    number, shown = st.session_state.get(_SHOWN, (0, None))
    if shown != held:
        number += 1
    st.session_state[_SHOWN] = number, held
    row.selectbox(
        "Preset", names, names.index(held) if held else None, key=f"preset-{number}", on_change=_load, args=(number,),
        format_func=lambda name: presets()[name].title, placeholder="Choose a preset", label_visibility="collapsed",
        width=290,
    )  # fmt: skip


def _load(number: int) -> None:
    name = st.session_state[f"preset-{number}"]
    if name is not None and number == st.session_state[_SHOWN][0]:
        draft.load(presets()[name].experiment)
