"""Tell whether what can be folded is open.

What is closed is not drawn: a page has hundreds of settings and entries of menus, and each of them
costs time at every change of the page."""

from __future__ import annotations

from typing import Protocol

import streamlit as st

# in the session: runs in which what was closed is still drawn
_LEFT = "folded-left"


class Folded(Protocol):
    """An expander or a popover that was given ``on_change``."""

    @property
    def open(self) -> bool | None: ...


def is_open(container: Folded, key: str = "") -> bool:
    """Return whether the user has opened it; with its key, also for two runs after it was closed.

    The click that closes it also ends what is entered in it, and both may come in one run; a run
    may be interrupted by the next one.
    """
    opened = bool(container.open)
    if not key:
        return opened
    left: dict[str, int] = st.session_state.setdefault(_LEFT, {})
    runs = left.pop(key, 0)
    if opened:
        left[key] = 2
    elif runs > 1:
        left[key] = runs - 1
    return opened or runs > 0
