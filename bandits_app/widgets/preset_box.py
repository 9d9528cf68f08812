"""Draw the box in which a preset is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def choose(
    row: DeltaGenerator,
    key: str,
    titles: Mapping[str, str],
    held: str | None,
    load: Callable[[str], None],
) -> None:
    """Draw the box with the name of the preset that the controls hold, however they were filled.

    Another name is another box, under a number that never returns: a browser that has not seen the
    change yet sends the earlier box along with its next press.

    Parameters
    ----------
    titles : mapping of str to str
        Of the presets, by name.
    load : callable
        Puts the preset with the chosen name into the controls.
    """
    number, shown = st.session_state.get(f"{key}-box", (0, None))
    number += shown != held
    st.session_state[f"{key}-box"] = number, held

    def chosen() -> None:
        name = st.session_state[f"{key}-{number}"]
        if name is not None and number == st.session_state[f"{key}-box"][0]:
            load(name)

    names = list(titles)
    row.selectbox(
        "Preset",
        names,
        names.index(held) if held else None,
        key=f"{key}-{number}",
        on_change=chosen,
        format_func=titles.__getitem__,
        placeholder="Choose a preset",
        label_visibility="collapsed",
        width=290,
    )
