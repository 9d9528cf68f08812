"""Choose the experiment of a page: a preset that fits it, or that of the last run."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from bandits import Experiment
from bandits.experiments.presets import presets
from bandits.runtime.pool import Job


def choose(
    job: Job, key: str, fits: Callable[[Experiment], bool], *, default: str, label: str, help: str
) -> Experiment:
    """Draw the choice among the presets that fit; the run viewed last is chosen, unless the page has started it."""
    offered = {name: (p.title, p.experiment) for name, p in presets().items() if fits(p.experiment)}
    if st.session_state.get(f"{key}-given") != job.id and fits(job.experiment):  # of the Arena, or a link
        st.session_state[f"{key}-given"] = job.id  # as the page writes itself beside a run that it has started
        st.session_state[f"{key}-base"] = job.experiment
        st.session_state[f"{key}-name"] = next((n for n, (_, e) in offered.items() if e.hash == job.id), "own")
    if (base := st.session_state.get(f"{key}-base")) is not None:
        offered = {"own": ("The last run", base), **offered}
    name = st.selectbox(
        label, list(offered), key=f"{key}-name", width=320, index=list(offered).index(default), help=help,
        format_func=lambda n: offered[n][0],
    )  # fmt: skip
    return offered[name][1]
