"""Cost of confidence: time and memory of the confidence widths of neural bandits and of LinUCB."""

from __future__ import annotations

import streamlit as st

from bandits.width_cost import LinearRequest, NeuralRequest

from . import view


def draw() -> None:
    """Draw the lab."""
    st.title("Cost of confidence", anchor=False)
    st.markdown("The time and memory that confidence widths need on this machine, for the sizes of your problem.")
    neural, linear = st.tabs(["Neural networks", "LinUCB"], key="cost-tab", on_change="rerun")
    # A tab is measured when it is opened first.
    if neural.open:
        with neural:
            view.tab(NeuralRequest)
    if linear.open:
        with linear:
            view.tab(LinearRequest)
