"""Which page a session shows, and what is forgotten when it is left."""

from __future__ import annotations

import streamlit as st

from . import draft, kept_files, run_requests

_SHOWN = "shown-page"


def opened(path: str) -> None:
    """Remember which page is shown, and forget what belongs to the one that was left: notices, presses, uploads."""
    left = shown()
    editing: draft.Draft | None = st.session_state.get("draft")
    if editing is not None and left != path:
        editing.notice = ""
        run_requests.forget()
    if left in kept_files.PAGES and left != path:
        kept_files.give_back()
    st.session_state[_SHOWN] = path


def shown() -> str | None:
    """Return the address of the page that is shown."""
    path: str | None = st.session_state.get(_SHOWN)
    return path
