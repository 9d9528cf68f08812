"""Draw work that goes on in the background again and again, and the page once more when it has
ended.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st


def until_end(show: Callable[..., None], *args: Any, every: float = 1.0) -> None:
    """Call ``show(*args)``, every so many seconds while one of the arguments is ``active``: a run,
    a task.

    The page is drawn anew once when all of them have ended.
    """
    work = [arg for arg in args if isinstance(getattr(arg, "active", None), bool)]
    was_active = any(one.active for one in work)

    # By its name Streamlit distinguishes this part from others at the same place.
    @wraps(show)
    def draw() -> None:
        if was_active and not any(one.active for one in work):
            st.rerun()
        show(*args)

    st.fragment(draw, run_every=every if was_active else None)()
