"""New items: which agents find what is launched, after how many steps, and what that costs."""

import streamlit as st

from bandits import UserError
from bandits_app.labs.new_items import choice, view
from bandits_app.session import followed
from bandits_app.widgets.text import refuse

st.title("New items", anchor=False)
st.markdown(
    "Which agent finds a new item that no visitor has seen, and when? Choose launches and press **Run**. The page "
    "compares the share of traffic that a launch gets with its fair share: what the optimal choice would give it. For "
    "new titles, it shows what their pictures earn."
)
job = followed.current()
experiment, refused = None, None
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    try:
        experiment = choice.choose(job)
    except UserError as error:
        refused = error
    pressed = st.button(
        "Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", disabled=experiment is None
    )
try:
    if pressed and experiment is not None:
        job = followed.submit_and_follow(experiment)
        st.session_state["items-given"] = job.id  # the controls stay as they are beside the run
        st.rerun()
except UserError as error:
    refused = error
if refused is not None:
    refuse(refused)
if not choice.launched(job.experiment):
    st.caption(":material/touch_app: Nothing is launched in the Arena's run. Press **Run**.")
elif not choice.countable(job.experiment):
    st.caption(
        ":material/touch_app: In the Arena's run, items are too many to be counted one by one, or what is "
        "optimal is not known. Press **Run**."
    )
else:
    if experiment is not None and experiment.hash != job.experiment.hash:
        st.caption(":material/touch_app: Shown below: the last run. Press **Run** for the launches above.")
    view.show(job)
