"""Tell whether what can be folded is open.

What is closed is not drawn: a page has hundreds of settings and entries of menus, and each of them
costs time at every change of the page."""

from __future__ import annotations

from typing import Protocol

import streamlit as st

_DRAWN = "folded-drawn"


class Folded(Protocol):
    """An expander or a popover that was given ``on_change``."""

    @property
    def open(self) -> bool | None: ...


def is_open(container: Folded, key: str = "") -> bool:
    """Return whether the user has opened it; with its key, also for one run after it was closed.

    The click that closes it also ends what is entered in it, and both may come in one run.
    """
    opened = bool(container.open)
    if not key:
        return opened
    drawn: set[str] = st.session_state.setdefault(_DRAWN, set())
    before = key in drawn
    (drawn.add if opened else drawn.discard)(key)
    return opened or before
