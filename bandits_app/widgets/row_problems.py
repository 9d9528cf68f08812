"""Rows of a file that hold what is not allowed, with a button that leaves them out."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from bandits.base.formatting import count, count_of
from bandits_app.widgets.text import bullets, refuse


def row_problems(wrong: int, sentences: Sequence[str], skip_key: str) -> None:
    """List the rows; the button sets ``skip_key`` in the session.

    Parameters
    ----------
    wrong : int
        How many.
    sentences : sequence of str
        What is wrong with the first of them.
    skip_key : str
    """
    first, *rest = sentences
    more = f" {count_of(wrong, 'rows')} hold what is not allowed." if rest else ""
    refuse(f"{first}.{more}" if rest else first)
    if rest:
        with st.expander("All problems"):
            bullets(sentences)
    if not st.session_state.get(skip_key) and st.button(
        f"Leave out {'this row' if wrong == 1 else f'these {count(wrong)} rows'}",
        icon=":material/playlist_remove:",
        key=f"{skip_key}-button",
    ):
        st.session_state[skip_key] = True
        st.rerun()
