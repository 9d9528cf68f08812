"""Choose the sweep of the page: validate the controls, start, stop, open from an address."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import lru_cache
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits import UserError
from bandits.base.files import home
from bandits.base.formatting import count_of
from bandits.runtime.pool import Pool
from bandits.sweeps import Sweep, read, url
from bandits.sweeps.manager import SweepJob, SweepManager
from bandits.sweeps.presets import SweepPreset, presets
from bandits_app.session import draft, workers
from bandits_app.session.owner import owner
from bandits_app.widgets import menu
from bandits_app.widgets.text import escape_markdown

from . import axes

_CURRENT = "sweep-seen"
# what a visitor can run who has not run anything yet
EXAMPLE = presets()["first"]


def manager() -> SweepManager:
    """Return the manager of all sweeps of this server."""
    pool = workers.pool()
    return _manager(pool, id(pool))


@st.cache_resource(show_spinner=False)
def _manager(_pool: Pool, which: int) -> SweepManager:  # noqa: ARG001
    return SweepManager(_pool, home() / "sweeps", os.environ.get("BANDITS_CLUSTER", ""))


# validating a thousand points takes a moment, at every page update
_read_cached = lru_cache(maxsize=16)(read)


def check(data: dict[str, Any]) -> tuple[str, bool]:
    """Describe the size of a sweep, or what is wrong with it; and whether it can be run."""
    if not data["axes"]:
        return "Choose at least one parameter.", False
    try:
        sweep = _read_cached(json.dumps(data))
    except UserError as error:
        message = (
            str(error)
            .removeprefix("axes: ")
            .replace("low must be below high", "From must be below To")
        )
        for axis in data["axes"]:
            message = message.replace(axis["path"], axes.title(data, axis["path"]))
        return f"{escape_markdown(message[:1].upper() + message[1:])}.", False
    return f"{describe_size(sweep)}, on the same visitors and random numbers.", True


def describe_size(sweep: Sweep) -> str:
    """Describe the size of a sweep: 63 points × 16 replications × 20,000 steps.

    And how often it was refined.
    """
    e = sweep.experiment
    refined = f" (refined {count_of(len(sweep.refinements), 'times')})" if sweep.refinements else ""
    points, replications = count_of(sweep.size, "points"), count_of(e.replications, "replications")
    return f"{points}{refined} × {replications} × {count_of(e.steps, 'steps')}"


def start(sweep: Sweep) -> SweepJob:
    """Start a sweep and show it.

    Raises
    ------
    UserError
        If too many sweeps are running, or it is too large.
    """
    return _show(manager().submit(sweep, owner()))


def start_example() -> None:
    """Start the first preset, a sweep of some seconds, and show it.

    Raises
    ------
    UserError
        If too many sweeps are running.
    """
    select(EXAMPLE.sweep)
    start(EXAMPLE.sweep)


def current() -> SweepJob | None:
    """Return the sweep that this session shows: the one it started or opened, or the one of its
    address.

    An address of a sweep that this server does not know only fills in the controls: a link must not
    start hours of computation.

    Raises
    ------
    UserError
        If the address describes an invalid sweep.
    """
    shown = st.session_state.get(_CURRENT)
    if shown is not None and (job := manager().get(shown)) is not None:
        axes.restore(job.sweep)
        return _show(job)
    if shown is None and url.holds_sweep(st.query_params):
        sweep = url.parse_query(st.query_params.to_dict())
        select(sweep)
        return manager().get(sweep.hash)
    return None


def select(sweep: Sweep) -> None:
    """Put a sweep into the controls and show it if this server knows it."""
    draft.load(sweep.experiment)
    axes.fill(sweep)
    st.session_state[_CURRENT] = sweep.hash


def choose_preset(row: DeltaGenerator, data: dict[str, Any] | None) -> SweepPreset | None:
    """Draw the menu of presets with the one that the controls hold; returns this preset, if any."""
    held = None
    if data is not None:
        with suppress(UserError):
            wanted = read(data).hash
            held = next(
                (name for name, preset in presets().items() if preset.sweep.hash == wanted), None
            )
    menu.presets(
        row,
        "sweep-preset",
        draft.current().version,
        presets(),
        held,
        lambda name: select(presets()[name].sweep),
    )
    return presets()[held] if held else None


def _show(job: SweepJob) -> SweepJob:
    """Show a sweep from now on, and put it into the address."""
    st.session_state[_CURRENT] = job.id
    query = url.to_query(job.sweep)
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
    return job
