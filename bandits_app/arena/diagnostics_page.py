"""Diagnostics: whether each agent of the current run explores enough, and why it performs as it does."""

from __future__ import annotations

import streamlit as st

from bandits_app.arena import diagnostics, fairness, retrieval
from bandits_app.session import followed


def draw() -> None:
    """Draw the view."""
    st.title("Diagnostics", anchor=False)
    st.markdown(
        "Does each agent explore too little, about right or too much? Run a comparison in the Arena first: this page "
        "diagnoses the run that is shown there."
    )
    st.caption(
        "✓\u00a0healthy, !\u00a0watch, ✕\u00a0alarm, –\u00a0not informative. Wasted traffic: regret relative to the "
        "gain of the oracle over random choice. The text above each figure states its rule."
    )
    diagnostics.show(followed.current())
    fairness.show(followed.current())
    retrieval.show(followed.current())
