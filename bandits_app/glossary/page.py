"""Glossary: the terms and symbols of the playground."""

from __future__ import annotations

import streamlit as st

from bandits_app.glossary.terms import definition, terms


def draw() -> None:
    """Draw the view."""
    st.title("Glossary", anchor=False)
    st.markdown("What does a term or symbol mean? Enter a part of its name, or scroll: the terms are sorted by name.")
    query = st.text_input("Search", key="glossary-search", icon=":material/search:", placeholder="Search terms",
                          label_visibility="collapsed").strip().casefold()  # fmt: skip
    matches = [term for term in terms().values() if query in f"{term.term} {term.text}".casefold()]
    if not matches:
        st.markdown("No term contains this text.")
    for term in matches:
        st.subheader(term.term, anchor=term.id)
        st.markdown(definition(term))
