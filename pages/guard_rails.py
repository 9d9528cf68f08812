"""Guard rails: agents with a guard and without it, and the alarms that monitors would have raised."""

import streamlit as st

from bandits import UserError
from bandits.experiments.guarding import with_and_without
from bandits_app.labs.guards import choice, view
from bandits_app.session import followed
from bandits_app.widgets.text import refuse

st.title("Guard rails", anchor=False)
st.markdown(
    "What does a guard cost, and which alarms are reliable? Put a guard around agents of the Arena's run and "
    "press **Run**: each agent runs with the guard and without it."
)
job = followed.current()
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    experiment = choice.base(job)
    guard, labels, drawn = choice.choose(job, experiment)
    pressed = st.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", disabled=not labels)
try:
    if pressed:
        followed.submit_and_follow(with_and_without(experiment, guard, labels))
        st.rerun()
    if labels and not drawn:
        st.caption(":material/touch_app: Shown below: the Arena's run. Press **Run** for the guard above.")
except UserError as error:
    refuse(error)
view.show(job)
