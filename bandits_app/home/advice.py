"""Questions, measured answers, and rules of thumb beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from bandits import UserError
from bandits.advice import advise, evidence, guide
from bandits.advice.evidence import Advice, Answers, Line, filled, lines_of
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
        thumb()
        origin()
    except UserError as error:
        refuse(error)


def ask() -> Answers:
    """Draw the questions; return the chosen option of each."""
    answers = {}
    questions = list(guide().questions.items())
    for row in (questions[i : i + 3] for i in range(0, len(questions), 3)):
        for column, (name, question) in zip(st.columns(3), row, strict=False):
            names = list(question.options)
            answers[name] = column.selectbox(
                question.text,
                names,
                names.index(question.default) if question.default else 0,
                key=f"which-{name}",
                format_func=question.options.__getitem__,
            )
    return answers


def answer(answers: Answers) -> None:
    """Show the agents that were measured for these answers, or nearest to them."""
    found = advise(answers)
    exact = not any(advice.differs for advice in found)
    st.subheader("Measured answers" if exact else "Nearest measured answers", anchor=False)
    if not exact:
        st.markdown(
            "This combination was not measured. What was measured that helps most, and how it "
            "differs from your answers:"
        )
    for name, question in guide().questions.items():
        if note := question.notes.get(answers[name]):
            st.markdown(f"**{_joined(filled(note.text))}**")
            _sources(lines_of(note.text))
    for advice in found:
        with st.container(border=True):
            settings = escape_markdown(advice.settings.replace("_", " "))
            st.markdown(
                f"**{REGISTRY[advice.agent['kind']].title}**"
                + (f" · {settings}" if settings else "")
            )
            for line in _differences(advice, answers):
                st.markdown(f":material/compare_arrows: {line}")
            st.markdown(_joined(advice.text))
            _sources(advice.lines)
            steps = max(line.decisions for line in advice.lines.values())
            days = number(steps / PER_DAY[answers["decisions"]])
            st.caption(
                f"The longest of these runs has {count(steps)} decisions; you make as many in "
                f"{days} days."
            )


def _differences(advice: Advice, answers: Answers) -> list[str]:
    """State the questions that were answered otherwise than measured."""
    lines = []
    for name, measured in advice.differs.items():
        question = guide().questions[name]
        known = " or ".join(f"*{question.options[option]}*" for option in measured)
        above = ", see above" if answers[name] in question.notes else ""
        lines.append(
            f"{question.text} Measured: {known}; you answered "
            f"*{question.options[answers[name]]}*{above}."
        )
    return lines


def personalized_test() -> None:
    """State what an A/B test earned that has a winner for each user segment."""
    rule = next(rule for rule in guide().rules if rule.agent.get("winner") == "segment")
    lines = ", ".join(f"[{line.title}]({line.link})" for line in lines_of(rule.text).values())
    st.markdown(f"{_joined(filled(rule.text))} Measured for *Which should I use?*: {lines}")


def thumb() -> None:
    """Show usual settings and rules of thumb beside what was measured."""
    st.subheader("Usual settings", anchor=False)
    st.markdown(
        "Ranges and starting values of a textbook, beside what was measured here (pet shop, "
        "LinUCB)."
    )
    for row in guide().settings:
        with st.container(border=True):
            st.markdown(f"**{row.parameter}** · usual: {row.usual}, start {row.start}")
            st.markdown(_joined(filled(row.text)))
            _sources(lines_of(row.text))
    st.subheader("Rules of thumb", anchor=False)
    st.markdown("After each condition, whether the measurements here agree with the rule.")
    for case in guide().cases:
        with st.container(border=True):
            st.markdown(f"**{case.says}**")
            for finding in case.findings:
                # a verdict without a sentence needs none
                said = "" if finding.verdict == "not tested" else _joined(filled(finding.text))
                st.markdown(f"{finding.condition}: **{finding.verdict}**. {said}")
                _sources(lines_of(finding.text))


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
