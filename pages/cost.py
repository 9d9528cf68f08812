"""Cost of confidence: time and memory of the confidence widths of a neural bandit."""

import streamlit as st

from bandits import UserError
from ui import entry
from ui.cost import view
from ui.text import refuse

entry.through_app("pages/cost.py")

st.title("Cost of confidence", anchor=False)
st.markdown(
    "How much time and memory do the confidence widths of a neural bandit need on this machine? Set the sizes of your "
    "problem and press **Measure**; the results below are for the sizes measured last."
)
st.markdown(
    "NeuralUCB chooses the arm with the highest mean plus exploration bonus. The bonus is proportional to the width "
    r"$\sqrt{g^\top A^{-1}g}$, where $g$ is the gradient of the network's output with respect to its $p$ weights and "
    r"$A=\lambda I+\sum gg^\top$ over past choices. A naive implementation stores and inverts a $p\times p$ matrix. "
    "This page compares five methods that compute the width, or an approximation of it."
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
        st.caption(":material/edit: The controls have changed. Press **Measure** (Ctrl+Enter) to update the results.")
    view.show(measurement, limit)
except UserError as error:
    refuse(error)
with st.expander("How the methods work", icon=":material/function:"):
    view.explain()
