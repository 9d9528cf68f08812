"""The tour of the page Home: five steps, each with the part of the page that it marks."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """One step of the tour.

    Parameters
    ----------
    title, text : str
    target : str
        CSS selectors, the first that matches a visible element counts. On a phone the pages are behind *Menu*.
    """

    title: str
    text: str
    target: str


def _page(path: str) -> str:
    return f'[data-testid=stTopNavLink][href$="/{path}"], [data-testid=stExpandSidebarButton]'


STEPS = (
    Step(
        "Agents in one shop",
        "Each tile is an agent that chooses which product a visitor sees. The number is its click-through rate (CTR); "
        "below it stands how many clicks it is behind the leader. Select a tile to hide that agent.",
        ".bp-board",
    ),
    Step(
        "Two curves to read first",
        "The CTR shows how fast an agent learns. Cumulative regret counts the clicks that it lost against always "
        "choosing the best product: a curve that still rises at the end belongs to an agent that still loses clicks.",
        ".bp-grid .bp-cell",
    ),
    Step(
        "Arena: change one thing",
        "The Arena shows the same run with all controls. Move a slider of an agent: its curves follow. Or choose a "
        "preset and press Run. The conclusions below the plots state which agent is better, and by how much.",
        _page("arena"),
    ),
    Step(
        "Sweep: find the best setting",
        "Sweep tries many values of a parameter and marks the best one and those that are statistically tied with it. "
        "Diagnostics, in the Arena, then shows whether an agent explores too little or too much.",
        _page("sweep"),
    ),
    Step(
        "Keep and share",
        "Every finished run is stored under Runs, and the address of the Arena reproduces a run on another computer. "
        "Unknown terms are in the Glossary, under Learn; Help shows this tour again.",
        _page("runs"),
    ),
)
