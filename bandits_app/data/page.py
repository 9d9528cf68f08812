"""What if?: what another policy would have earned on a log of decisions."""

from __future__ import annotations

import streamlit as st

from bandits import UserError
from bandits_app.data import formulas, log_replay, log_source, target_policy, what_if
from bandits_app.session import followed
from bandits_app.widgets.text import refuse


def draw() -> None:
    """Draw the what_if."""
    st.title("What if?", anchor=False)
    st.markdown(
        "What would another policy have earned on these decisions, without showing it to anyone? Choose a log and a "
        "target policy, then press **Evaluate**."
    )
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    with row:
        chosen = log_source.choose(followed.current())
    log = None
    try:
        log = log_source.load(followed.current(), chosen)
    except UserError as error:
        refuse(error)
    with row:  # also while there is no log, or it is refused
        policy = target_policy.choose(log)
        options = target_policy.options(log)
        pressed = st.button(
            "Evaluate", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter", disabled=log is None
        )  # fmt: skip
    try:
        if log is not None:
            st.caption(log_source.describe(log))
            what_if.show(log, policy, options, pressed=pressed)
        log_replay.offer(chosen, log)
    except UserError as error:
        refuse(error)
    with st.expander("Formulas", icon=":material/function:"):
        formulas.explain()
