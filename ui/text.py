"""Show texts that a user may have typed: as text, never as markup, a link or a spreadsheet formula."""

from __future__ import annotations

import re

import streamlit as st

from bandits import UserError


def refuse(error: UserError | str) -> None:
    """Show why a request cannot be carried out, in one sentence."""
    st.error(f"This cannot be done: {escape_markdown(str(error))}.", icon=":material/block:")


def escape_markdown(text: str) -> str:
    """Escape a text for `st.markdown`: no markup, no picture, and no address that becomes a link."""
    escaped = re.sub(r"([\\`*_\[\]<>$:!~])", r"\\\1", text)
    return re.sub(r"(?i)(www)(?=\.)|(//)|(@)", "\\g<0>\u200b", escaped)  # a zero-width space ends an address


def safe_cell(text: str) -> str:
    """Return a text that a spreadsheet, to which a table may be downloaded, does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
