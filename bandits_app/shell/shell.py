"""What every page has around its content: a link to the main button, the panel *Help*, and the tour of Home.

One component without a place of its own. Its style sheet also corrects Streamlit where a page would be hard to use: see
the comments there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

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


def mark_section(sections: Mapping[str, Sequence[StreamlitPage]], page: StreamlitPage) -> None:
    """Mark the menu that holds the page, as Streamlit marks a page that has its own link in the navigation.

    Pages of the section "" have their own links, which come first.
    """
    place = len(sections[""])
    for title, pages in sections.items():
        place += title != ""
        if title and any(one.url_path == page.url_path for one in pages):
            st.html(f"<style>{_MARKED.format(place=place)}</style>")


_MARKED = (
    "[data-testid=stTopNav] .rc-overflow-item:nth-child({place}) [data-testid=stTopNavSection]"
    "{{font-weight:600;background:color-mix(in srgb,currentColor 9%,transparent)}}"
    "[data-testid=stTopNav] .rc-overflow-item:nth-child({place}) [data-testid=stTopNavSection] p{{font-weight:600}}"
)
