"""Diagnostics: how well each agent of the run that is looked at explores."""

import streamlit as st

from ui import entry, session
from ui.diagnostics import findings, retrieval

entry.through_app("pages/diagnostics.py")

st.title("Diagnostics", anchor=False)
st.markdown(
    "Click rates say who wins; this page says why. Does an agent gather evidence in every direction, does its doubt "
    "shrink, does it know what it does not know? Every verdict (✓ healthy, ! watch, ✕ alarm, – cannot be told) is a "
    "rule of thumb: it says where to look. The run is the one you last looked at in the Arena."
)
findings.show(session.current())
retrieval.show(session.current())
