"""Which should I use? Questions, and agents whose measured lines answer them."""

from __future__ import annotations

import streamlit as st

from bandits import UserError
from bandits_app.home.advice import view
from bandits_app.widgets.text import refuse


def draw() -> None:
    """Draw the view."""
    st.title("Which should I use?", anchor=False)
    st.markdown(
        "Which agent fits your problem, and what was measured? Answer the questions; each sentence names where its "
        "numbers were measured and links that run, or the experiment closest to it."
    )
    try:
        view.answer(view.ask())
        view.chapter()
        view.origin()
    except UserError as error:
        refuse(error)
