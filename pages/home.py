"""Home: what the playground is for, and a run to watch."""

import streamlit as st

from bandits import UserError
from bandits.experiments.presets import presets
from ui import entry
from ui.arena import draft
from ui.run_view import board
from ui.session import pool, submit_and_follow
from ui.text import refuse

entry.through_app("pages/home.py")
preset = presets()["race"]

st.title("Bandit Playground", anchor=False)
st.markdown(
    "Which **contextual bandit** earns the most clicks, and what does its exploration cost? Watch the five agents "
    "below, then press **Open in the Arena** to change the simulator, the agents and their parameters."
)
st.markdown(
    "A shop shows one product to each visitor and observes only whether that product is clicked. A contextual bandit "
    "chooses the product. It must exploit what it has learned to earn clicks now, and explore other products to earn "
    "more later. All agents meet the same visitors and random numbers (common random numbers), so differences between "
    "curves are differences between agents. Each curve is a mean over independent replications; its band is the 95 % "
    "confidence interval of the mean. The **Glossary** defines all terms.".replace(" %", "\u00a0%")
)
left, right = st.columns([3, 1], vertical_alignment="center")
left.markdown(f"**{preset.title}.** {preset.about}")
if right.button("Open in the Arena", type="primary", icon=":material/tune:", width="stretch"):
    draft.load(preset.experiment)
    submit_and_follow(preset.experiment)
    st.switch_page("pages/arena.py")

try:
    job = pool().get(preset.experiment.hash)  # a failed run is shown as failed
    if job is None or job.status == "stopped":  # it has no owner: the next visitor resumes it
        job = pool().submit(preset.experiment)
    board.show(job, key="home")
except UserError as error:
    refuse(error)
