"""Sentences of the page Artwork."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from bandits_app.widgets.text import escape_markdown


def bullets(sentences: Sequence[str]) -> None:
    """Write one sentence a bullet; nothing without any."""
    if sentences:
        text = "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
        st.markdown(text.replace(" %", "\u00a0%"))  # no line begins with a percent sign
