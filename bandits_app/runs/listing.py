"""The table of runs and the table of sweeps: sortable, with the same columns, and the details of a
selected row.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from bandits.experiments.experiment import Experiment
from bandits.results import words
from bandits.results.run import Headline
from bandits_app.widgets.text import safe_cell

DRAWN_ANEW = "list-drawn-anew"  # how often
STAR = "★"


class Row(NamedTuple):
    """A run or a sweep in the table."""

    id: str
    starred: bool
    title: str
    best: Headline | None
    simulator: str
    changes: str
    steps: int
    replications: int
    # seconds since 1970
    date: float
    tags: str
    notes: str


def draw(rows: Sequence[Row], *, kind: str, multiple: bool = True) -> list[int]:
    """Draw the table; return the positions of the selected rows.

    Parameters
    ----------
    rows : sequence of Row
    kind : {"run", "sweep"}
    multiple : bool
        Whether several rows can be selected.
    """
    runs = kind == "run"
    time = pd.to_datetime([row.date for row in rows], unit="s", utc=True)
    columns: dict[str, Any] = {
        STAR: [STAR if row.starred else "" for row in rows],
        "Title" if runs else "Sweep": [safe_cell(row.title) for row in rows],
        "Best agent" if runs else "Best setting": [_best(row.best) for row in rows],
        "Reward per step": [_mean(row.best, "ctr") for row in rows],
        "Regret": [_mean(row.best, "regret") for row in rows],
        "Simulator": [row.simulator for row in rows],
        "Changes": [row.changes for row in rows],
        "Length": [row.steps for row in rows],
        "Date": time.tz_convert(st.context.timezone) if st.context.timezone else time,
        "Tags": [safe_cell(row.tags) for row in rows],
        "Notes": [safe_cell(" ".join(row.notes.split())) for row in rows],
    }
    column = st.column_config
    shown = {
        STAR: column.TextColumn(width=34, help="Starred with the button Star."),
        "Title": column.TextColumn(width=300),
        "Sweep": column.TextColumn(width=190),
        "Best agent": column.TextColumn(
            width=120,
            help=(
                "Highest reward per step over the whole run, or per visit where visits have many "
                "steps. The oracle counts only where it runs alone."
            ),
        ),
        "Best setting": column.TextColumn(width=120, help="Point of the sweep with the best mean."),
        "Reward per step": column.NumberColumn(
            width=116,
            format="%.3f",
            help=(
                "Reward per step of the best agent over the whole run, in the unit of the "
                "simulator: the click-through rate (CTR) where rewards are clicks, the share of "
                "right answers on a data set."
            ),
        ),
        "Regret": column.NumberColumn(
            width=76,
            format="localized",
            help="Reward that the best agent lost against always choosing the best, for the step "
            "or for the whole visit.",
        ),
        "Simulator": column.TextColumn(width=104),
        "Changes": column.TextColumn(width=104, help="What changes during the run."),
        "Length": column.NumberColumn(
            width=78, format="localized", help="Steps of each replication."
        ),
        "Date": column.DatetimeColumn(width=124, format="YYYY-MM-DD HH:mm"),
        "Tags": column.TextColumn(width=84),
        "Notes": column.TextColumn(width=110),
    }
    optional = "Changes", "Tags", "Notes"
    frame = pd.DataFrame(
        {name: cells for name, cells in columns.items() if name not in optional or any(cells)}
    )
    event = st.dataframe(
        frame,
        hide_index=True,
        column_config={name: shown[name] for name in frame.columns},
        key=key(rows, kind),
        on_select="rerun",
        selection_mode="multi-row" if multiple else "single-row",
        placeholder="",
        alt=f"Stored {kind}s, newest first",
    )
    return [i for i in event.selection.rows if i < len(rows)]


def simulator_name(experiment: Experiment) -> str:
    """Return the name of the simulator without what is in brackets, so that the column stays
    narrow.
    """
    return experiment.simulator_class().title.partition(" (")[0]


def key(rows: Sequence[Row], kind: str = "run") -> str:
    """Return a key that changes with the list: rows are selected by position, which must not move
    to another run.

    It changes after a comparison too: the browser then draws a new table, without the ticks of the
    one before."""
    digest = hashlib.sha256("".join(row.id for row in rows).encode()).hexdigest()
    return f"list-{kind}-{st.session_state.get(DRAWN_ANEW, 0)}-{digest}"


def _best(best: Headline | None) -> str:
    return safe_cell(best.label) if best is not None else ""


def _mean(best: Headline | None, name: str) -> float | None:
    """Return the mean of a number of the best agent, whole from 100 on.

    None, an empty cell, if it is not known.
    """
    if best is None or not math.isfinite(value := getattr(best, name).mean):
        return None
    return float(value) if name == "ctr" else float(round(value, 0 if abs(value) >= 10 else 1))


def details(row: Row, about: str, agents: str, rate: str) -> None:
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
        numbers = (
            f"{rate} {words.stated(row.best.ctr, 'rate')}, regret "
            f"{words.stated(row.best.regret, 'count')}"
        )
        lines.append(f"Best: <bdi>{escape(row.best.label)}</bdi>, {numbers}")
    if row.tags:
        lines.append(f"Tags: <bdi>{escape(row.tags)}</bdi>")
    if row.notes:
        lines.append(f'Notes: <bdi style="white-space:pre-wrap">{escape(row.notes)}</bdi>')
    with st.container(border=True):
        st.html(f'<div style="overflow-wrap:anywhere;line-height:1.5">{"<br>".join(lines)}</div>')
