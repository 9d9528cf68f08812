"""Sentences and figures of the page Artwork."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from bandits.results.figures.style import Spec
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown


def bullets(sentences: Sequence[str]) -> None:
    """Write one sentence a bullet; nothing without any."""
    if sentences:
        text = "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)
        st.markdown(text.replace(" %", "\u00a0%"))  # no line begins with a percent sign


def draw(specs: Sequence[Spec], revision: str, key: str, height: int) -> None:
    """Draw figures; their zoom stays while ``revision`` is the same."""
    for spec in specs:
        spec["layout"]["uirevision"] = revision
    alt = [f"{s['layout']['title']['text']}: {s['layout']['meta']['note']}" for s in specs]
    panel.mount(panel.pack(specs, alt, height), key=key)
