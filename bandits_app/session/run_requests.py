"""Remember that the user has asked for a run, until it is submitted.

Callbacks call this. A button's own value is lost where another event interrupts the page before it reaches the button.
"""

from __future__ import annotations

from typing import Literal

import streamlit as st

Source = Literal["button", "slider"]
_KEY = "run-requested"


def request(source: Source = "button") -> None:
    """Ask for a run of the experiment in the controls."""
    st.session_state[_KEY] = source


def pending() -> Source | None:
    """Return where a run was asked for that has not been submitted."""
    source: Source | None = st.session_state.get(_KEY)
    return source


def forget() -> None:
    """Note that the run was submitted or refused, or that the user has left the page."""
    st.session_state.pop(_KEY, None)
