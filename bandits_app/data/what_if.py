"""What if?: what another policy would have earned on a log of decisions, and the formulas of the
estimators.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from bandits import UserError
from bandits.base.formatting import count, listed, number, percent
from bandits.offpolicy import conclusion, figures
from bandits.offpolicy.background import EvaluationTask, RecordTask
from bandits.offpolicy.choices import explores_for_ever
from bandits.offpolicy.evaluation import ALL, Evaluation
from bandits.offpolicy.intervals import Interval
from bandits.offpolicy.stored_run import KEPT
from bandits_app.data import log_replay, log_source, target_policy
from bandits_app.glossary import link
from bandits_app.session import followed
from bandits_app.session.owner import address
from bandits_app.session.results import shared
from bandits_app.widgets import buttons
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import bullets, escape_markdown, glued, refuse
from bandits_app.widgets.until_end import until_end

from .log_source import Source, recorded

_ASKED = "whatif-asked"
_TEXT = """
With the {weight} $w = \\pi_e(a \\mid x) / \\pi_b(a \\mid x)$ (probability under the {target},
divided by the {propensity}), its product $\\rho_t$ over the steps of a visit up to $t$, reward $r$
and predicted reward $q$:

| Estimator | Name | Formula | In words |
|---|---|---|---|
{rows}

SLOPE++ chooses the parameter of {tuned}. {biased} are biased, and
their own spread does not show it: they have the interval of {references}, extended to the estimate.
"""

# of abbreviations in the glossary
ANCHORS = {
    "ips": "inverse-propensity-scoring",
    "snips": "self-normalised-inverse-propensity-scoring",
    "dm": "direct-method",
    "dr": "doubly-robust-estimation",
    "sndr": "doubly-robust-estimation",
    "pdis": "per-decision-importance-sampling",
    "wpdis": "per-decision-importance-sampling",
}


def draw() -> None:
    """Draw the view."""
    st.title("What if?", anchor=False)
    st.markdown(
        "What would another policy have earned on these decisions, without showing it to anyone? "
        "Choose a log and a target policy, then press **Evaluate**."
    )
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    with row:
        chosen = log_source.choose(followed.current())
    log = None
    try:
        log = log_source.load(followed.current(), chosen)
    except UserError as error:
        refuse(error)
    # also while there is no log, or it is refused
    with row:
        policy = target_policy.choose(log)
        options = target_policy.options(log)
        pressed = st.button(
            "Evaluate",
            type="primary",
            icon=":material/play_arrow:",
            shortcut="Ctrl+Enter",
            disabled=log is None,
        )
    try:
        if log is not None:
            st.caption(log_source.describe(log))
            _show(log, policy, options, pressed=pressed)
        log_replay.offer(chosen, log)
    except UserError as error:
        refuse(error)
    with st.expander("Formulas", icon=":material/function:"):
        _explain()


def _show(source: Source, target: str, options: Mapping[str, Any], *, pressed: bool) -> None:
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
            if record.path is None:
                until_end(_recording, source, record)
                return
            source = source._replace(log=record.path)
        task = _evaluation(source, target, options, wanted)
        if task.status == "failed":
            # the next press tries again
            st.session_state.pop(_ASKED)
            _evaluation.forget(source, target, options, wanted)
    except UserError as error:
        refuse(error)
        return
    until_end(_evaluated, source, target, task)


@shared(number=32, seconds=3600)
def _evaluation(
    _source: Source,
    _target: str,
    _options: Mapping[str, Any],
    wanted: str,  # noqa: ARG001
) -> EvaluationTask:
    """Evaluate once per log, target and settings, for all users."""
    return EvaluationTask(
        _source.log,
        _source.ending,
        _source.mapping,
        _target,
        _options,
        skip=_source.skip,
        address=address(),
    )


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
        how = (
            "was frozen there"
            if target.startswith(KEPT)
            else "learned from the first half of the log"
        )
        note = (
            f"{escape_markdown(task.evaluation.target)} {how}; its value is estimated on the other "
            f"{count(task.evaluation.n)} {task.evaluation.unit}s, without learning any further. "
            "In a run it goes on learning, from its own decisions, and may earn more."
        )
        label = next((name for name, text in source.summary.agents.items() if text == target), "")
        if explores_for_ever(source.summary, label):
            note += (
                " Its confidence bonus shrinks no more: it goes on trying what that half hardly "
                "shows, and may earn far less than in a run."
            )
    known = source.summary.notes
    notes = [escape_markdown(text) for text in task.evaluation.notes if text not in known]
    _draw_evaluation(task.evaluation, " ".join([note, *notes]).strip())
    _downloads(source, task.evaluation)


def _draw_evaluation(found: Evaluation, note: str = "") -> None:
    """Draw an evaluation; ``note`` states what the target is, and what was left out."""
    first, *rest = conclusion.sentences(found)
    st.markdown(glued(f"**{escape_markdown(first)}**"))
    if note:
        st.caption(note)
    bullets(rest)
    for alarm in found.alarms:
        st.warning(escape_markdown(alarm.sentence), icon=":material/warning:")
    drawn = figures.forest(found), figures.weights(found), figures.lengths(found)
    specs = [spec for spec in drawn if spec is not None]
    panel.draw(specs, key="whatif-figures", revision=f"{found.target}{found.n}")
    names = (
        f"{link(ANCHORS[n], ALL[n].title)} {ALL[n].name}" for n in found.estimates if n in ANCHORS
    )
    st.caption(" · ".join(names))
    digits = conclusion.decimals(found)

    def intervals(estimates: Mapping[str, Interval]) -> dict[str, list[str]]:
        shown = [f"{e.low:.{digits}f} to {e.high:.{digits}f}" for e in estimates.values()]
        return {f"{percent(found.level)} interval": shown} if found.has_intervals else {}

    with st.expander("Numbers"):
        st.table(
            {
                "Estimator": [ALL[name].title for name in found.estimates],
                "Value": [f"{e.value:.{digits}f}" for e in found.estimates.values()],
                **intervals(found.estimates),
                "What it averages": [ALL[name].words for name in found.estimates],
            }
        )
        if note := conclusion.how_to_read(found):
            st.caption(note)
        if found.positions:
            st.table(
                {
                    f"Position ({ALL[found.main].title})": list(found.positions),
                    "Value": [f"{e.value:.{digits}f}" for e in found.positions.values()],
                    **intervals(found.positions),
                }
            )
        s = found.support
        st.markdown(
            f"Effective sample size {count(s.ess)} of {count(found.n)} {found.unit}s "
            "(all, with a reward or without) · largest "
            f"weight {number(s.max_weight)} ({percent(s.largest_share, 1)} of the sum) · mean "
            f"weight {number(s.mean_weight)} · probability of the target on items that the log "
            f"never shows {percent(s.unsupported_mass, 1)}"
        )


def _downloads(source: Source, found: Evaluation) -> None:
    with st.container(horizontal=True):
        buttons.download(
            "Estimates (JSON)",
            json.dumps(found.as_dict(), indent=1),
            "estimates.json",
            "application/json",
        )
        if source.experiment is not None:
            record = recorded(source.experiment, source.label, source.rows)
            buttons.download("Decision log (Parquet)", record.content, f"{source.label}.parquet")


def _explain() -> None:
    titles = {name: e.title for name, e in ALL.items()}
    linked = titles | {name: link(anchor, titles[name]) for name, anchor in ANCHORS.items()}
    biased = [e for e in ALL.values() if e.reference]
    st.markdown(
        _TEXT.format(
            weight=link("importance-weight", "importance weight"),
            target=link("target-policy", "target policy"),
            propensity=link("propensity", "propensity"),
            rows="\n".join(
                f"| {linked[name]} | {e.name} | {e.formula} | {e.words} |"
                for name, e in ALL.items()
            ),
            tuned=listed(e.title for e in ALL.values() if e.tuned),
            biased=listed(e.title for e in biased),
            references=listed(dict.fromkeys(titles[e.reference] for e in biased), "or"),
        )
    )
