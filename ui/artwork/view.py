"""Draw a run of the artwork simulator, and who is shown which picture of one title."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from bandits import Experiment, UserError
from bandits.base.formatting import count, count_of
from bandits.results import artwork, text
from bandits.results.change_marks import description
from bandits.results.figures import board
from bandits.results.style import Spec
from bandits.runtime.pool import Job
from ui.live_panel import panel
from ui.run_view.status import status
from ui.text import escape_markdown, refuse

from . import choice


def show(job: Job) -> None:
    """Draw a run; update while it is computed. At its end, one title can be looked at."""
    st.fragment(_show, run_every=1.0 if job.active else None)(job, job.active)
    if not job.active and job.result.histories:
        _title(job)


def _show(job: Job, was_active: bool) -> None:
    if was_active and not job.active:
        st.rerun()
    st.caption(escape_markdown(f"{status(job)}. {description(job.experiment)}"))
    if not job.result.histories:
        return
    with job.lock:
        specs = board(job.result)[:2]
        sentences = [] if job.active else text.leader_comparisons(job.result)
    _draw(specs, job.id, "artwork-board", 320)
    if sentences:
        bullets = "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
        st.markdown(bullets.replace(" %", "\u00a0%"))  # no line begins with a percent sign


def _title(job: Job) -> None:
    """Draw one title: the visitors, the picture that each is shown, and why."""
    st.subheader("One title", anchor=False)
    title, label = choice.title_and_agent(job)
    try:
        with st.spinner("Replaying the first replication of the agent"):
            played = _replay(job.experiment, label, job.result.histories[label].step, f"{job.id}-{label}")
    except UserError as error:
        refuse(error)
        return
    value, found = artwork.title_value(played, title), artwork.visits(played, title)
    st.markdown(
        f"At the end of the run, {escape_markdown(label)} gets a take fraction of **{value.agent:.3f}** on this title; "
        f"the default picture {value.default:.3f}, the one picture that is best for all {value.popular:.3f} (the limit "
        f"of popularity), the best picture for each visitor {value.best:.3f} (oracle)."
    )
    st.caption(
        f"Expected values over {count_of(value.visitors, 'visitors')} to whom the title is retrieved, after "
        f"{count(value.impressions)} impressions of it in the first replication."
    )
    _draw([artwork.heatmap(played, title, found)], f"{job.id}-{title}-{label}", "artwork-title-map", 380)
    rows = [
        {
            "Visitor": visit.cluster, "Picture": f"{visit.picture}: {visit.content}",
            "Why": visit.why, "Take fraction": f"{visit.truth:.3f}", "Default": f"{visit.default:.3f}",
            "Best": f"{visit.best:.3f}",
        }
        for visit in found
    ]  # fmt: skip
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="artwork-table")
    st.caption(
        "The most typical visitor of each taste cluster. Take fraction, default and best: true click probabilities of "
        "the picture shown, of the default picture and of the best one. In brackets: the visitor's taste. The "
        "table and the map show one draw of agents that choose at random; the take fraction above is the mean over "
        "draws where the probabilities of the choices are known, and otherwise that of one draw."
    )


@st.cache_resource(ttl=3600, max_entries=12, show_spinner=False)
def _replay(_experiment: Experiment, _label: str, _steps: int, key: str) -> artwork.Replay:  # noqa: ARG001 - the key
    """Replay once per run and agent, shared by all users."""
    return artwork.replay(_experiment, _label, _steps)


def _draw(specs: list[Spec], revision: str, key: str, height: int) -> None:
    for spec in specs:
        spec["layout"]["uirevision"] = revision
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    panel.mount(panel.pack(specs, alt, height), key=key)
