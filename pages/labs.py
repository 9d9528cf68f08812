"""Shock lab: what a change of the simulator costs each agent, and how quickly it recovers."""

import streamlit as st

from bandits import UserError
from bandits_app.labs.change import choice, view
from bandits_app.session import followed
from bandits_app.widgets.text import escape_markdown, refuse

st.title("Shock lab", anchor=False)
st.markdown(
    "What does a change cost, and which agents recover? Choose a change and press **Run**; change the discount factor "
    "to see how agents that forget faster or more slowly would have done (dotted: the run before)."
)
job = followed.current()
row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
experiment = None
try:
    with row:
        experiment = choice.choose(job)
        st.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", on_click=choice.request)
    st.caption(escape_markdown(choice.about(experiment)).replace(" %", "\u00a0%"))
    if source := choice.requested():
        choice.submitted(view.start(experiment, by_slider=source == "slider"))
        st.rerun()
except UserError as error:
    refuse(error)
if job.experiment.simulator.all_changes:
    if experiment is not None and experiment.hash != job.experiment.hash:
        st.caption(":material/touch_app: Shown below: the last run. Press **Run** for the change above.")
    view.show(job)
else:
    st.caption(":material/touch_app: The Arena's run has no change. **Run** starts the one above.")
