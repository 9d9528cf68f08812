"""Diagnostics: why each agent of the current run performs as it does."""

import streamlit as st

from ui import entry, session
from ui.diagnostics import findings, retrieval

entry.through_app("pages/diagnostics.py")

st.title("Diagnostics", anchor=False)
st.markdown(
    "Does each agent explore enough, and is its uncertainty calibrated? Run a comparison in the Arena first: this page "
    "diagnoses the run that you viewed last. Every verdict (✓ healthy, ! watch, ✕ alarm, – none) is a rule of thumb "
    "that indicates where to look; the text below each figure states its rule."
)
findings.show(session.current())
retrieval.show(session.current())
