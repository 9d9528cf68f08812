"""Draw the box in which a sweep that is ready to run is chosen."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits import UserError
from bandits.sweeps import read
from bandits.sweeps.presets import SweepPreset, presets

from . import selection

_SHOWN = "sweep-preset-box"  # in the session: the number of the box that is drawn, and the preset that it names


def choose(row: DeltaGenerator, data: dict[str, Any] | None) -> SweepPreset | None:
    """Draw the box with the name of the preset that the controls hold; returns this preset, if any.

    Another name is another box, as in the Arena: a browser that has not seen the change yet sends the earlier box along
    with its next press.
    """
    names, held = list(presets()), _held(data)
    number, shown = st.session_state.get(_SHOWN, (0, None))
    number += shown != held
    st.session_state[_SHOWN] = number, held
    row.selectbox(
        "Preset", names, names.index(held) if held else None, key=f"sweep-preset-{number}", on_change=_load,
        args=(number,), format_func=lambda name: presets()[name].title, placeholder="Choose a preset",
        label_visibility="collapsed", width=290,
    )  # fmt: skip
    return presets()[held] if held else None


def _held(data: dict[str, Any] | None) -> str | None:
    try:
        wanted = read(data).hash if data is not None else ""
    except UserError:
        return None
    return next((name for name, preset in presets().items() if preset.sweep.hash == wanted), None)


def _load(number: int) -> None:
    name = st.session_state[f"sweep-preset-{number}"]
    if name is not None and number == st.session_state[_SHOWN][0]:
        selection.select(presets()[name].sweep)
