"""Draw a prediction beside what happened."""

from __future__ import annotations

import streamlit as st

from bandits.lessons.answers import Outcome

WRONG = ":red[:material/cancel:]"


def compare(outcome: Outcome) -> None:
    """Draw what was predicted, whether that was right, and the answer."""
    st.markdown(f"**{outcome.title}**")
    st.markdown(f"You predicted: {outcome.predicted}.")
    if outcome.right is None:
        st.markdown(":material/remove: **No answer**: the run has no such number.")
        return
    verdict = ":green[:material/check_circle:] **Right.**" if outcome.right else f"{WRONG} **Not right.**"
    st.markdown(f"{verdict} The answer: {outcome.answer}." if outcome.answer else verdict)
