"""Arena: pick a world and agents, run, watch."""

import streamlit as st

from bandits import Refused, read
from bandits.presets import presets
from ui import board, draft, entry, runs
from ui.controls import controls

entry.through_app("pages/arena.py")


def choose() -> None:
    """Load the chosen preset into the controls."""
    if st.session_state.preset is not None:
        draft.load(presets()[st.session_state.preset].experiment)


job = runs.current()
with st.sidebar:
    controls(draft.current())

st.title("Arena", anchor=False)
pick, window_at, run_at, rest_at, stop_at = st.columns([2.2, 1.6, 1.7, 1.3, 1], vertical_alignment="bottom")
pick.selectbox(
    "Preset", list(presets()), index=None, key="preset", on_change=choose, placeholder="Choose a ready-made race",
    format_func=lambda name: presets()[name].title,
)  # fmt: skip
window = window_at.select_slider(
    "Window", [100, 200, 500, 1000, 2000, 5000], 1000, help="Steps that click rate and entropy are averaged over."
)
pressed = run_at.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", width="stretch")
try:
    if pressed:
        job = runs.look_at(read(draft.current().data()))
except Refused as sentence:
    board.refuse(sentence)
try:
    job = board.steer(job, rest_at, stop_at)
except Refused as sentence:
    board.refuse(sentence)

if (name := st.session_state.get("preset")) is not None:
    st.caption(presets()[name].about)
if draft.current().differs(job.experiment):
    st.caption(
        ":material/edit: The controls have changed since this run. Press **Run** (Ctrl+Enter) to see what it does."
    )
board.show(job, window=window, key="arena")
