"""What every page has around its content: a link to the main button, the panel *Help*, and the tour of Home.

One component without a place of its own. Its style sheet also corrects Streamlit where a page would be hard to use: see
the comments there.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from .shortcuts import SHORTCUTS
from .tour import STEPS

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "bandit_shell",
    js="\n".join((_HERE / name).read_text(encoding="utf-8") for name in ("focus.js", "shell.js")),
    isolate_styles=False,  # its rules concern the whole page
)


def show(*, home: bool, presenting: bool) -> bool:
    """Draw what surrounds a page; app.py calls this before the page is run.

    Parameters
    ----------
    home : bool
        The page is Home: a browser that opens it for the first time is offered the tour.
    presenting : bool
        Presentation mode: nothing but the page is shown.

    Returns
    -------
    bool
        The tour was requested on another page than Home.
    """
    data = {
        "home": home,
        "presenting": presenting,
        "shortcuts": [shortcut._asdict() for shortcut in SHORTCUTS],
        "steps": [step._asdict() for step in STEPS],
    }
    st.html(_HERE / "shell.css")  # before the component: its placeholder takes no place either
    result = _mount(key="shell", data=data, on_tour_change=lambda: None)
    return bool(result.tour) and not home
