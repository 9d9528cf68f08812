"""Draw work that goes on in the background again and again, and the page once more when it has
ended.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st


def part(show: Callable[..., None], *args: Any, every: float | None) -> None:
    """Draw a part of the page by ``show(*args)``, every so many seconds; once if ``every`` is None.

    Streamlit knows parts by name and place, and starts a run of the page for a tick of the browser
    that arrives as the run before ends: what that one had not sent yet is lost. A part that is
    drawn once has a name of its own, so that a late tick of the part before finds none."""

    @wraps(show)
    def draw() -> None:
        show(*args)

    if every is None:
        draw.__qualname__ += " once"
    st.fragment(draw, run_every=every)()


def until_end(show: Callable[..., None], *args: Any, every: float = 1.0) -> None:
    """Call ``show(*args)``, every so many seconds while one of the arguments is ``active``: a run,
    a task.

    The page is drawn anew once when all of them have ended.
    """
    work = [arg for arg in args if isinstance(getattr(arg, "active", None), bool)]
    was_active = any(one.active for one in work)

    @wraps(show)
    def draw() -> None:
        if was_active and not any(one.active for one in work):
            st.rerun()
        show(*args)

    part(draw, every=every if was_active else None)
