"""Cost of confidence: time and memory of the confidence widths of neural bandits and of LinUCB."""

from types import ModuleType

import streamlit as st

from bandits import UserError
from bandits_app.labs.cost import linear_view, view
from bandits_app.widgets.text import refuse


def tab(part: ModuleType, key: str) -> None:
    """Draw the controls, the measurement and the explanation of one tab."""
    data = part.choose()
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    pressed = row.button(
        "Measure", type="primary", icon=":material/timer:", shortcut="Ctrl+Enter", key=f"{key}-measure"
    )
    with row:
        data |= part.more()
        limit = view.time_limit(f"{key}-time-limit")
    try:
        if pressed:
            part.start(data)
    except UserError as error:
        refuse(error)
    try:
        measurement = part.current()
        if part.changed(measurement, data):
            st.caption(":material/edit: The controls have changed. Press **Measure** to update the results.")
        part.show(measurement, limit)
    except UserError as error:
        refuse(error)
    with st.expander("How the methods work", icon=":material/function:"):
        part.explain()


st.title("Cost of confidence", anchor=False)
st.markdown("The time and memory that confidence widths need on this machine, for the sizes of your problem.")
neural, linear = st.tabs(["Neural networks", "LinUCB"], key="cost-tab", on_change="rerun")
if neural.open:  # a tab is measured when it is opened first
    with neural:
        tab(view, "cost")
if linear.open:
    with linear:
        tab(linear_view, "cost-linear")
