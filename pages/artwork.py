"""Artwork: one title, who is shown which of its pictures and why."""

import streamlit as st

from bandits import UserError
from bandits_app.labs.artwork import choice, view
from bandits_app.session import followed
from bandits_app.widgets.text import refuse

st.title("Artwork", anchor=False)
st.markdown(
    "Which picture of a title is shown to whom, and what does that earn against one picture for all? Choose an "
    "experiment and press **Run**; then choose a title."
)
job = followed.current()
try:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        experiment = choice.choose(job)
        pressed = st.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter")
    if pressed:
        job = followed.submit_and_follow(experiment)
        st.session_state["artwork-given"] = job.id  # the controls stay as they are beside the run
        st.rerun()
    if not choice.fits(job.experiment):
        st.caption(":material/touch_app: The Arena's run shows no pictures. Press **Run**.")
    else:
        if experiment.hash != job.experiment.hash:
            st.caption(":material/touch_app: Shown below: the last run. Press **Run** for the experiment above.")
        view.show(job)
except UserError as error:
    refuse(error)
