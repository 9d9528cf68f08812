"""Draw an evaluation: the conclusion, alarms, estimates and weights; and what can be downloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from bandits import UserError
from bandits.base.formatting import count, number, percent
from bandits.offpolicy import conclusion, figures
from bandits.offpolicy.background import EvaluationTask, RecordTask
from bandits.offpolicy.estimators import REGISTRY
from bandits.offpolicy.evaluation import Evaluation
from bandits.offpolicy.stored_run import KEPT
from bandits_app.glossary import link
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown, glued, refuse
from bandits_app.widgets.until_end import until_end

from .formulas import ANCHORS
from .log_source import Source, recorded

_ASKED = "whatif-asked"


def show(source: Source, target: str, options: Mapping[str, Any], *, pressed: bool) -> None:
    """Draw the evaluation that was asked for; compute it where it is missing.

    Parameters
    ----------
    pressed : bool
        The button was pressed: this log, target and settings are evaluated from now on.
    """
    wanted = f"{source.key}-{target}-{json.dumps(options, sort_keys=True)}"
    if pressed:
        st.session_state[_ASKED] = wanted
    if st.session_state.get(_ASKED) != wanted:
        if _ASKED in st.session_state:
            st.caption(":material/touch_app: Press **Evaluate** for this log and target.")
        return
    try:
        if source.experiment is not None:
            record = recorded(source.experiment, source.label, source.rows)
            if record.status == "failed":
                st.session_state.pop(_ASKED)
            if not record.content:
                until_end(_recording, source, record)
                return
            source = source._replace(log=record.content)
        task = _evaluation(source, target, options, wanted)
        if task.status == "failed":
            st.session_state.pop(_ASKED)  # the next press tries again
            _evaluation.clear(source, target, options, wanted)
    except UserError as error:
        refuse(error)
        return
    until_end(_evaluated, source, target, task)


@st.cache_resource(ttl=3600, max_entries=32, show_spinner=False)
def _evaluation(_source: Source, _target: str, _options: Mapping[str, Any], wanted: str) -> EvaluationTask:  # noqa: ARG001 - the key
    """Evaluate once per log, target and settings, for all users."""
    return EvaluationTask(_source.log, _source.ending, _source.mapping, _target, _options)


def _recording(source: Source, record: RecordTask) -> None:
    if record.active:
        done, label = record.steps / record.experiment.steps, escape_markdown(source.label)
        st.progress(done, text=f"Recording the decisions of {label}: step {count(record.steps)}")
    elif record.error:
        refuse(record.error)


def _evaluated(source: Source, target: str, task: EvaluationTask) -> None:
    if task.active:
        st.progress(0.5, text="Evaluating")
        return
    if task.evaluation is None:
        refuse(task.error)
        return
    note = ""
    if target.startswith(("{", KEPT)):
        how = "was frozen there" if target.startswith(KEPT) else "learned from the first half of the log"
        note = (
            f"{escape_markdown(task.evaluation.target)} {how}; its value is estimated on the other "
            f"{count(task.evaluation.n)} decisions, without learning any further."
        )
    draw(task.evaluation, note)
    _downloads(source, task.evaluation)


def draw(found: Evaluation, note: str = "") -> None:
    """Draw an evaluation; ``note`` states what the target is."""
    first, *rest = conclusion.sentences(found)
    st.markdown(glued(f"**{escape_markdown(first)}**"))
    if note:
        st.caption(note)
    st.markdown(glued("\n".join(f"- {escape_markdown(text)}" for text in rest)))
    for alarm in found.alarms:
        st.warning(escape_markdown(alarm.sentence), icon=":material/warning:")
    drawn = figures.weights(found)
    specs = [figures.forest(found), *([] if drawn is None else [drawn])]
    panel.draw(specs, key="whatif-figures", revision=f"{found.target}{found.n}")
    names = (f"{link(ANCHORS[n], REGISTRY[n].title)} {REGISTRY[n].name}" for n in found.estimates if n in ANCHORS)
    st.caption(" · ".join(names))
    digits = conclusion.decimals(found)
    with st.expander("Numbers"):
        st.table({
            "Estimator": [REGISTRY[name].title for name in found.estimates],
            "Value": [f"{e.value:.{digits}f}" for e in found.estimates.values()],
            f"{percent(found.level)} interval": [
                f"{e.low:.{digits}f} to {e.high:.{digits}f}" for e in found.estimates.values()
            ],
            "What it averages": [REGISTRY[name].words for name in found.estimates],
        })  # fmt: skip
        if found.positions:
            st.table({
                f"Position ({REGISTRY[found.main].title})": list(found.positions),
                "Value": [f"{e.value:.{digits}f}" for e in found.positions.values()],
                f"{percent(found.level)} interval": [
                    f"{e.low:.{digits}f} to {e.high:.{digits}f}" for e in found.positions.values()
                ],
            })  # fmt: skip
        s = found.support
        st.markdown(
            f"Effective sample size {count(s.ess)} of {count(found.n)} decisions · largest weight "
            f"{number(s.max_weight)} ({percent(s.largest_share, 1)} of the sum) · mean weight {number(s.mean_weight)} "
            f"· probability of the target on items that the log never shows {percent(s.unsupported_mass, 1)}"
        )


def _downloads(source: Source, found: Evaluation) -> None:
    with st.container(horizontal=True):
        st.download_button(
            "Estimates (JSON)", json.dumps(found.as_dict(), indent=1), "estimates.json", "application/json",
            on_click="ignore", icon=":material/download:",
        )  # fmt: skip
        if source.experiment is not None:
            assert isinstance(source.log, bytes)
            st.download_button(
                "Decision log (Parquet)", source.log, f"{source.label}.parquet", "application/octet-stream",
                on_click="ignore", icon=":material/download:",
            )  # fmt: skip
