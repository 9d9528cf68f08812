"""Which page a session shows, and what is forgotten when it is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from bandits_app.server import upload_limit

from . import draft
from .results import RESULTS

T = TypeVar("T")
_SHOWN = "shown-page"
TAKE_FILES = ("data", "data/what_if")
"""Addresses of the pages that take files."""
TABLE, SUMMARY = "data-table", "whatif-summary"
"""What is known of the files that are shown: tables, and columns and summaries of logs."""


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
        for kind in (TABLE, SUMMARY):
            RESULTS.forget(kind, session())
    st.session_state[_SHOWN] = path


def shown() -> str | None:
    """Return the address of the page that is shown."""
    path: str | None = st.session_state.get(_SHOWN)
    return path


def session() -> str:
    """Return the identifier of this session."""
    context = get_script_run_ctx()
    return "" if context is None else context.session_id


def known_of_file(kind: str, what: str, identity: str, make: Callable[[], T]) -> T:
    """Return what is known of a file that this session shows.

    Make it where it is not kept.

    Parameters
    ----------
    kind : {TABLE, SUMMARY}
    what : str
        Of the kind.
    identity : str
        Of the file and of how it is read.
    """
    return RESULTS.use((kind, session(), what, identity), make)
