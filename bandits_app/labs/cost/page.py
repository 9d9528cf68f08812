"""Cost of confidence: time and memory of the confidence widths of neural bandits and of LinUCB."""

import streamlit as st

from bandits.width_cost import LinearRequest, NeuralRequest
from bandits_app.labs.cost import view

st.title("Cost of confidence", anchor=False)
st.markdown("The time and memory that confidence widths need on this machine, for the sizes of your problem.")
neural, linear = st.tabs(["Neural networks", "LinUCB"], key="cost-tab", on_change="rerun")
if neural.open:  # a tab is measured when it is opened first
    with neural:
        view.tab(NeuralRequest)
if linear.open:
    with linear:
        view.tab(LinearRequest)
