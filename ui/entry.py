"""Route every visit through app.py.

On a fresh server, the first visitor who opens a page's own address gets that page's script without app.py, because
Streamlit does not know yet that app.py does the routing. Such a page redirects the visitor through app.py and back,
with the query of the address.
"""

from __future__ import annotations

import streamlit as st

_ROUTED, _REQUESTED = "entry-routed", "entry-requested"


def through_app(page: str) -> None:
    """Redirect through app.py unless this visit came from there; every page calls this first."""
    if not st.session_state.get(_ROUTED):
        st.session_state[_REQUESTED] = page, st.query_params.to_dict()
        st.switch_page("app.py")


def open_requested_page() -> None:
    """Go on to the requested page; app.py calls this once it has declared its pages."""
    st.session_state[_ROUTED] = True
    st.session_state.pop("shown-refusals", None)  # a refusal is shown once
    if requested := st.session_state.pop(_REQUESTED, None):
        page, query = requested
        st.switch_page(page, query_params=query)
