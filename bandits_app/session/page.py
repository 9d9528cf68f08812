"""Which page a session shows, and what is forgotten when it is left."""

from __future__ import annotations

import streamlit as st

from bandits_app.server import upload_limit

from . import draft

_SHOWN = "shown-page"
TAKE_FILES = ("data", "data/what_if")
"""Addresses of the pages that take files."""
TABLE, SUMMARY = "data-table", "whatif-summary"
"""In the session: identity and content of the table, or summary of the log, that is shown."""


def opened(path: str) -> None:
    """Remember which page is shown, and forget what belongs to the one that was left: notices,
    presses, uploads.
    """
    left = shown()
    editing: draft.Draft | None = st.session_state.get("draft")
    if editing is not None and left != path:
        editing.notice = ""
        draft.forget_request()
    if left in TAKE_FILES and left != path:
        upload_limit.give_back()
        for key in (TABLE, SUMMARY):
            st.session_state.pop(key, None)
    st.session_state[_SHOWN] = path


def shown() -> str | None:
    """Return the address of the page that is shown."""
    path: str | None = st.session_state.get(_SHOWN)
    return path
