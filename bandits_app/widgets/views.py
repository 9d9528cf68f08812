"""The views of one page: the page's address states which of them is shown, so that a reload and a
link keep it.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

FIELD = "view"
"""Field of the address."""


def choose(views: Mapping[str, str], label: str) -> str:
    """Draw the choice among views; return the name of the one that is shown: the first by default.

    Parameters
    ----------
    views : mapping of str to str
        Titles by the names in the address.
    label : str
        For screen readers.
    """
    first = next(iter(views))
    named = st.query_params.get(FIELD, first)
    shown = named if named in views else first
    key = f"views-{first}"
    st.session_state[key] = shown
    st.segmented_control(
        label,
        list(views),
        key=key,
        required=True,
        format_func=views.__getitem__,
        label_visibility="collapsed",
        on_change=_open,
        args=(key, first),
    )
    return shown


def offer(name: str, title: str, *, icon: str) -> None:
    """Draw a button that opens another view of the page."""
    # a link to the page that is open leaves the browser's address as it is
    st.button(
        title, icon=icon, type="tertiary", on_click=st.query_params.from_dict, args=({FIELD: name},)
    )


def _open(key: str, first: str) -> None:
    """Put the chosen view into the address; nothing else of it belongs to that view."""
    chosen = st.session_state[key]
    st.query_params.from_dict({} if chosen == first else {FIELD: chosen})
