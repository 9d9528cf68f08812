"""Diagnostics: why each agent of the current run performs as it does."""

import streamlit as st

from ui import entry, session
from ui.diagnostics import findings, retrieval

entry.through_app("pages/diagnostics.py")

st.title("Diagnostics", anchor=False)
st.markdown(
    "Does each agent explore enough, and is its uncertainty calibrated? Run a comparison in the Arena first: this page "
    "diagnoses the run that you viewed last."
)
st.caption(
    "✓\u00a0healthy, !\u00a0watch, ✕\u00a0alarm, –\u00a0no verdict. Every verdict is a rule of thumb: it indicates "
    "where to look. The text above each figure states the rule."
)
findings.show(session.current())
retrieval.show(session.current())
