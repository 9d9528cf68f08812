"""A user's log in the Arena: keep it, replay it with agents that learn, delete it."""

from __future__ import annotations

from functools import partial

import streamlit as st

from bandits.base.formatting import count_of
from bandits.experiments import presets
from bandits.offpolicy.background import keep_file
from bandits.simulators.datasets import kept_logs, uploads
from bandits_app.session import followed
from bandits_app.widgets import buttons

from .log_source import FILE, Source
from .upload import record_owner, stored_file


def offer(chosen: str, source: Source | None) -> None:
    """Draw what keeps the file that is shown, and the list of kept logs.

    Raises
    ------
    UserError
        The log cannot be replayed or kept.
    """
    if chosen != FILE:
        return
    if source is not None:
        with st.popover("Replay in the Arena", icon=":material/replay:"):
            _keep(source)
    _kept()


def _keep(source: Source) -> None:
    """Draw the form that keeps a log, and replay it once it is kept."""
    assert isinstance(source.log, bytes)
    st.markdown(
        "Agents learn from your log in the simulator *Logged decisions*: a choice counts where it "
        "equals the logged one. That is right for logs in which every item was equally likely at "
        "every decision. Agents see the features chosen above, or else the segments."
    )
    title = st.text_input(
        "Name", uploads.title_from(source.name), max_chars=40, key=f"whatif-title-{source.key[:60]}"
    )
    uniform = not source.summary.propensities and st.checkbox(
        "Every item was equally likely",
        key=f"whatif-uniform-{source.key[:60]}",
        help=(
            "The log has no propensities that would show it. Replays of other logs favour what "
            "was shown often."
        ),
    )
    st.caption(
        "Kept until you delete it; all users of this server can see it and run it: keep nothing "
        "confidential."
    )
    if st.button("Save and run", type="primary", icon=":material/play_arrow:", key="whatif-keep"):
        with st.spinner("Reading the log ..."):
            before = [info.id for info in kept_logs.listing()]
            name = keep_file(
                source.log,
                source.ending,
                source.mapping,
                title.strip(),
                uniform=uniform,
                skip=source.skip,
            )
            record_owner(name, before)
        followed.run_in_arena(presets.on_log(name))


def _kept() -> None:
    """List the kept logs, each with a button that runs and one that deletes it."""
    infos = kept_logs.listing()
    if not infos:
        return
    buttons.style()
    with st.expander(f"Logs in the Arena ({len(infos)})", icon=":material/replay:"):
        for info in infos:
            sizes = " · ".join(
                [
                    count_of(info.events, "events"),
                    count_of(info.items, "items"),
                    count_of(info.features, "features"),
                ]
            )
            lost = "Runs on this log cannot be opened or started until the same log is kept again."
            if stored_file(
                "log", info.id, info.title, sizes, lost, partial(kept_logs.delete, info.id)
            ):
                followed.run_in_arena(presets.on_log(info.id))
