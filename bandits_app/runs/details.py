"""The details of one selected run or sweep, below its table."""

from __future__ import annotations

import math
from html import escape

import streamlit as st

from bandits.results import words

from .listing import Row


def show(row: Row, about: str, agents: str, rate: str) -> None:
    """Show title, numbers with intervals, tags and notes.

    Parameters
    ----------
    row : Row
    about : str
        Simulator and size.
    agents : str
        All agents, or what is swept.
    rate : str
        Name of the simulator's rate: click-through rate.
    """
    lines = [f"<b><bdi>{escape(row.title)}</bdi></b>", escape(about)]
    if agents != row.title:
        lines.append(escape(agents))
    if row.best is not None and math.isfinite(row.best.ctr.mean):
        numbers = f"{rate} {words.stated(row.best.ctr, 'rate')}, regret {words.stated(row.best.regret, 'count')}"
        lines.append(f"Best: <bdi>{escape(row.best.label)}</bdi>, {numbers}")
    if row.tags:
        lines.append(f"Tags: <bdi>{escape(row.tags)}</bdi>")
    if row.notes:
        lines.append(f'Notes: <bdi style="white-space:pre-wrap">{escape(row.notes)}</bdi>')
    with st.container(border=True):
        st.html(f'<div style="overflow-wrap:anywhere;line-height:1.5">{"<br>".join(lines)}</div>')
