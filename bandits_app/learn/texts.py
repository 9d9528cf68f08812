"""Draw the texts of a lesson, and a prediction beside what happened."""

from __future__ import annotations

import re

import streamlit as st

from bandits.lessons.answers import TOLERANCE, Outcome
from bandits_app.widgets.text import glued

RULE = f"A number counts as right if it is off by at most {TOLERANCE:.0%} of its slider's range."
WRONG = ":red[:material/cancel:]"


def show(markdown: str) -> None:
    """Draw a text of a lesson."""
    # Texts have no numbered lists.
    markdown = re.sub(r"^(\d+)([.)])(?=\s)", r"\1\\\2", markdown, flags=re.MULTILINE)
    # No line begins with a percent sign.
    st.markdown(glued(markdown))


def compare(outcome: Outcome) -> None:
    """Draw what was predicted, whether that was right, and the answer, a line each."""
    if outcome.right is None:
        verdict = ":material/remove: **No answer**: the run has no such number."
    else:
        verdict = ":green[:material/check_circle:] **Right.**" if outcome.right else f"{WRONG} **Not right.**"
    answer = f" The answer: {outcome.answer}." if outcome.answer else ""
    st.markdown(f"**{outcome.title}**  \nYou predicted: {outcome.predicted}.  \n{verdict}{answer}")
