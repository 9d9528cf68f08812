"""Arena: pick a world and agents, run, watch."""

import streamlit as st

from bandits import Refused, read
from bandits.presets import presets
from ui import board, draft
from ui.controls import controls
from ui.runs import pool


def choose() -> None:
    """Load the chosen preset into the controls."""
    draft.load(presets()[st.session_state.preset].experiment)


def start() -> None:
    """Run what the controls say, or say in one sentence why not."""
    try:
        st.session_state.job = pool().submit(read(draft.current().data())).id
        st.session_state.pop("refused", None)
    except Refused as refused:
        st.session_state.refused = str(refused)


with st.sidebar:
    controls(draft.current())

st.title("Arena", anchor=False)
pick, window_at, run_at, stop_at = st.columns([2.4, 1.8, 1.7, 1], vertical_alignment="bottom")
pick.selectbox(
    "Preset", list(presets()), index=None, key="preset", on_change=choose, placeholder="Choose a ready-made race",
    format_func=lambda name: presets()[name].title,
)  # fmt: skip
window = window_at.select_slider(
    "Window", [100, 200, 500, 1000, 2000, 5000], 1000, help="Steps that click rate and entropy are averaged over."
)
if run_at.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", width="stretch"):
    start()
job = pool().get(st.session_state.get("job", ""))
if stop_at.button("Stop", icon=":material/stop:", disabled=job is None or not job.active, width="stretch") and job:
    pool().stop(job)

if "refused" in st.session_state:
    st.error(f"This cannot be run: {st.session_state.refused}.", icon=":material/block:")
if (name := st.session_state.get("preset")) is not None:
    st.caption(presets()[name].about)
if job is None:
    st.info("Press **Run** (Ctrl+Enter) to start the race that the controls describe.", icon=":material/flag:")
else:
    board.show(job, window=window, key="arena")
