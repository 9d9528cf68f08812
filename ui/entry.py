"""Every visit goes through app.py.

The first visitor of a fresh server who opens a page's own address is handed that script without app.py, because
Streamlit cannot know yet that app.py does the routing. Such a page sends the visitor through app.py and back, with
what the address said.
"""

from __future__ import annotations

import streamlit as st

from bandits.experiments import plugins

_ROUTED, _WANTED = "entry-routed", "entry-wanted"


def through_app(page: str) -> None:
    """Called first by every page: go through app.py unless this visit already has."""
    if not st.session_state.get(_ROUTED):
        st.session_state[_WANTED] = page, st.query_params.to_dict()
        st.switch_page("app.py")


def open_requested_page() -> None:
    """Called by app.py once it knows its pages: on to the page that was asked for."""
    st.session_state[_ROUTED] = True
    st.session_state.pop("said", None)  # what was refused is told once
    if wanted := st.session_state.pop(_WANTED, None):
        page, query = wanted
        st.switch_page(page, query_params=query)
    if plugins.errors:
        st.warning("Plug-ins that could not be loaded; everything else works:", icon=":material/extension_off:")
        st.text("\n".join(plugins.errors))  # plain text: a file name is not markup
