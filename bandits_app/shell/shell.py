"""What every page has around its content: a link to the main button, the panel *Help*, and the tour
of Home.

One component without a place of its own. Its style sheet also corrects Streamlit where a page would
be hard to use: see the comments there."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import streamlit as st

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "bandit_shell",
    js="\n".join((_HERE / name).read_text(encoding="utf-8") for name in ("focus.js", "shell.js")),
    # its rules concern the whole page
    isolate_styles=False,
)


def show(*, home: bool, presenting: bool) -> bool:
    """Draw what surrounds a page; app.py calls this before the page is run.

    Parameters
    ----------
    home : bool
        The page is the start of Home: a browser that opens it for the first time is offered the
        tour.
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
    # before the component: its placeholder takes no place either
    st.html(_HERE / "shell.css")
    result = _mount(key="shell", data=data, on_tour_change=lambda: None)
    return bool(result.tour) and not home


class Shortcut(NamedTuple):
    """Keys, and what they do."""

    keys: str
    action: str


# A test compares the first entries with the shortcuts that the pages give to their buttons.
BUTTONS = (
    Shortcut("Ctrl+Enter", "Run, or Measure in the lab Cost; the next step of a lesson"),
    Shortcut("Alt+P", "Pause, resume or continue a run"),
    Shortcut("Alt+S", "Stop a run"),
)
OTHERS = (
    Shortcut("1 to 9, 0", "Pull a lever of the first lesson"),
    Shortcut("Arrow keys", "Change the slider or number that has the focus"),
    Shortcut("Double-click", "Reset the zoom of a plot"),
    Shortcut("Esc", "Close a menu or this panel; leave the presentation"),
    Shortcut("?", "Open this panel"),
)
SHORTCUTS = BUTTONS + OTHERS


class Step(NamedTuple):
    """One step of the tour.

    Parameters
    ----------
    title, text : str
    target : str
        CSS selectors, the first that matches a visible element counts. On a phone the pages are
        behind *Menu*.
    """

    title: str
    text: str
    target: str


def _page(path: str) -> str:
    return f'[data-testid=stTopNavLink][href$="/{path}"], [data-testid=stExpandSidebarButton]'


STEPS = (
    Step(
        "Agents in one shop",
        "Each tile is an agent that chooses which product a visitor sees. The number is its "
        "click-through rate (CTR); below it stands how many clicks it is behind the leader. "
        "Select a tile to hide that agent.",
        ".bp-board",
    ),
    Step(
        "Two curves to read first",
        "The CTR shows how fast an agent learns. Cumulative regret counts the clicks that it "
        "lost against always choosing the best product: a curve that still rises at the end "
        "belongs to an agent that still loses clicks.",
        ".bp-grid .bp-cell",
    ),
    Step(
        "Arena: change one thing",
        "The Arena shows the same run with all controls. Move a slider of an agent: its curves "
        "follow. Or choose a preset and press Run. The sentence above the plots states which "
        "agent is better, and by how much.",
        _page("arena"),
    ),
    Step(
        "Sweep: find the best setting",
        "Sweep tries many values of a parameter and marks the best one and those that are "
        "statistically tied with it. Diagnostics, in the Arena, then shows whether an agent "
        "explores too little or too much.",
        _page("sweep"),
    ),
    Step(
        "Keep and share",
        "Every finished run is stored under Runs, and the address of the Arena reproduces a run "
        "on another computer. Unknown terms are in the Glossary, under Learn; Help shows this "
        "tour again.",
        _page("runs"),
    ),
)
