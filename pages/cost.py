"""Cost of confidence: time and memory of the confidence widths of a neural bandit."""

import streamlit as st

from bandits import UserError
from ui.cost import view
from ui.text import refuse

st.title("Cost of confidence", anchor=False)
st.markdown(
    "How much time and memory do the confidence widths of a neural bandit need on this machine? Set the sizes of your "
    "problem and press **Measure**."
)
data = view.choose()
row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
pressed = row.button("Measure", type="primary", icon=":material/timer:", shortcut="Ctrl+Enter")
with row:
    limit = view.time_limit()
try:
    if pressed:
        view.start(data)
except UserError as error:
    refuse(error)
try:
    measurement = view.current()
    if view.changed(measurement, data):
        st.caption(":material/edit: The controls have changed. Press **Measure** to update the results.")
    view.show(measurement, limit)
except UserError as error:
    refuse(error)
with st.expander("How the methods work", icon=":material/function:"):
    view.explain()
