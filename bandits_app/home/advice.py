"""Questions, measured answers, and the chapter's rules beside them."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.advice import advise, evidence, guide, measured_changes
from bandits.advice.evidence import Answers, Line, filled, lines_of
from bandits.agents import REGISTRY
from bandits.base.formatting import count, number
from bandits_app.widgets.text import escape_markdown, glued, refuse

# decisions; see the options of the guide
PER_DAY = {"hundreds": 500, "thousands": 5_000, "more": 50_000}


def draw() -> None:
    """Draw the view."""
    st.title("Which should I use?", anchor=False)
    st.markdown(
        "Which agent fits your problem, and what was measured? Answer the questions; each "
        "sentence names where its numbers were measured and links that run, or the experiment "
        "closest to it."
    )
    try:
        answer(ask())
        chapter()
        origin()
    except UserError as error:
        refuse(error)


def ask() -> Answers:
    """Draw the questions; return the chosen option of each."""
    answers = {}
    questions = list(guide().questions.items())
    for pair in (questions[i : i + 2] for i in range(0, len(questions), 2)):
        for column, (name, question) in zip(st.columns(2), pair, strict=False):
            names = list(question.options)
            default = (
                names.index("thousands")
                if name == "decisions"
                else names.index("sums")
                if "sums" in names
                else 0
            )
            answers[name] = column.selectbox(
                question.text,
                names,
                default,
                key=f"which-{name}",
                format_func=question.options.__getitem__,
            )
    return answers


def answer(answers: Answers) -> None:
    """Show the agents that were measured for these answers, or that there are none."""
    found = advise(answers)
    st.subheader("Measured answers" if found else "Not measured here", anchor=False)
    if not found:
        st.markdown(
            "No measured line covers this combination, so no agent is named. What was measured "
            "instead:"
        )
        others = measured_changes(answers)
        for name, options in others.items():
            question = guide().questions[name]
            st.markdown(
                f"- *{question.text}* {' · '.join(question.options[option] for option in options)}"
            )
        if not others:
            st.markdown("- No single other answer leads to a measured combination.")
    for advice in found:
        with st.container(border=True):
            settings = escape_markdown(advice.settings.replace("_", " "))
            st.markdown(
                f"**{REGISTRY[advice.agent['kind']].title}**"
                + (f" · {settings}" if settings else "")
            )
            st.markdown(_joined(advice.text))
            _sources(advice.lines)
            steps = max(line.decisions for line in advice.lines.values())
            days = number(steps / PER_DAY[answers["decisions"]])
            st.caption(
                f"The longest of these runs has {count(steps)} decisions; you make as many in "
                f"{days} days."
            )


def chapter() -> None:
    """Show the chapter's settings and cases beside what was measured."""
    st.subheader("The chapter's settings", anchor=False)
    st.markdown(
        "Ranges and starting values of chapter 16, section 5, beside what was measured here (pet "
        "shop, LinUCB)."
    )
    for row in guide().settings:
        with st.container(border=True):
            st.markdown(f"**{row.parameter}** · chapter: {row.chapter}, start {row.start}")
            st.markdown(_joined(filled(row.text)))
            _sources(lines_of(row.text))
    st.subheader("The chapter's recommendations", anchor=False)
    st.markdown("After each one, whether the measurements here agree with it.")
    for case in guide().cases:
        with st.container(border=True):
            st.markdown(f"**{case.says}** ({case.where}): {case.verdict}")
            st.markdown(_joined(filled(case.text)))
            _sources(lines_of(case.text))


def origin() -> None:
    """State how the lines were measured."""
    found = evidence()
    st.caption(
        glued(
            f"Made by `{found.command}`. {escape_markdown(found.machine)}. Intervals are 95 %, "
            "paired where two agents are compared; all hold for these simulators, not for others."
        )
    )
    with st.expander("All measured lines", icon=":material/table:"):
        rows = [
            (line.title, key, value.mean, value.low, value.high, line.origin)
            for line in found.lines.values()
            for key, value in line.values.items()
        ]
        st.dataframe(
            pd.DataFrame(rows, columns=["line", "number", "mean", "low", "high", "origin"]),
            hide_index=True,
        )


def _sources(lines: Mapping[str, Line]) -> None:
    """Name where lines were measured, and link the run in the Arena, or the experiment closest to a
    document's.
    """
    links = (
        f"[{line.title}]({line.link}) ({escape_markdown(line.origin)})"
        if line.ran
        else f"{escape_markdown(line.origin)} (closest experiment: [{line.title}]({line.link}))"
        for line in lines.values()
    )
    if shown := ", ".join(links):
        # in a caption, links have too little contrast
        st.markdown(f"Measured: {shown}")


def _joined(text: str) -> str:
    return glued(text).replace("~", "\\~")
