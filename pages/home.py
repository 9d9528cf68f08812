"""Home: what the playground is for, a run to watch, and three ways on."""

import streamlit as st

from bandits import UserError
from bandits.experiments.presets import presets
from bandits_app.home import advice, start
from bandits_app.run_view import board
from bandits_app.run_view.options import View
from bandits_app.session import followed
from bandits_app.session.workers import pool
from bandits_app.widgets import views
from bandits_app.widgets.text import glued, refuse

if views.choose({"start": "Start", "which": "Which should I use?"}, "View of Home") == "which":
    advice.draw()
    st.stop()
preset = presets()["race"]
st.title("Bandit Playground", anchor=False)
st.markdown(
    "A **contextual bandit** is an agent that chooses which product each visitor sees, and "
    "observes only whether that product is clicked. Which one earns the most clicks?"
)
try:
    start.entrances()
    # a failed run is shown as failed
    job = pool().get(preset.experiment.hash)
    # it has no owner: the next visitor resumes it
    if job is None or job.status == "stopped":
        job = pool().submit(preset.experiment)
    left, right = st.container(key="facts").columns(
        [4, 1], vertical_alignment="center", gap="small"
    )
    shop = start.describe_shop(preset.experiment, job.result)
    left.markdown(f"**{preset.title}.** {shop} {preset.line}")
    opened = right.button(
        "Open in the Arena", type="primary", icon=":material/tune:", width="stretch"
    )
    if opened:
        followed.run_in_arena(preset.experiment)
    shown = st.container()
    more = st.toggle(
        "How they explore",
        help=(
            "Two more plots: selection entropy, and the eigenvalues of what agents have observed."
        ),
    )
    with shown:
        board.show(job, key="home", view=View(plots=4 if more else 2))
except UserError as error:
    refuse(error)
st.markdown(
    glued(
        "A bandit must exploit what it has learned to earn clicks now, and explore other products "
        "to earn more later. All agents meet the same visitors and random "
        "numbers (common random numbers), so differences between curves are differences between "
        "agents. Each curve is a mean over independent replications; its band is the 95 % "
        "confidence interval of the mean. The **Glossary** defines all terms."
    )
)
st.page_link(
    "home.py", query_params={"view": "which"}, label="Which should I use?", icon=":material/rule:"
)
with st.expander("Click probabilities of the pet shop", icon=":material/table:"):
    start.click_probabilities(preset.experiment)
