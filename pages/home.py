"""Home: what this is, and a race that is already running."""

import streamlit as st

from bandits import UserError
from bandits.experiments.presets import presets
from ui import entry
from ui.arena import draft
from ui.run_view import board
from ui.session import pool, submit_and_follow
from ui.text import escape_markdown

entry.through_app("pages/home.py")
preset = presets()["race"]

st.title("Bandit Playground", anchor=False)
st.markdown(
    "A shop can show each visitor one product, and learns only whether *that* one was clicked. "
    "A **contextual bandit** decides what to show: it must earn clicks now and explore to earn more later. "
    "Below, five agents serve the same visitors with the same luck, so that every difference is the agent's. "
    "Each curve is the mean of many runs, and the band around it is where the mean lies with 95 % confidence. "
    "Open the **Arena** to change the world, the agents and their settings, and race again."
)
left, right = st.columns([3, 1], vertical_alignment="center")
left.markdown(f"**{preset.title}.** {preset.about}")
if right.button("Open in the Arena", type="primary", icon=":material/tune:", width="stretch"):
    draft.load(preset.experiment)
    submit_and_follow(preset.experiment)
    st.switch_page("pages/arena.py")

try:
    job = pool().get(preset.experiment.hash)  # a race that failed says so
    if job is None or job.status == "stopped":  # nobody's own: whoever comes next goes on with it
        job = pool().submit(preset.experiment)
    board.show(job, key="home")
except UserError as sentence:
    st.error(f"The race cannot be run: {escape_markdown(str(sentence))}.", icon=":material/block:")
