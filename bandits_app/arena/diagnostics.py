"""Draw the diagnostics of a run: the conclusion, a table of verdicts, and the figures of one agent."""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import streamlit as st

from bandits import Experiment, UserError, diagnostics
from bandits.diagnostics.background import ReferenceTask
from bandits.diagnostics.figures import panels
from bandits.diagnostics.spectrum_figures import spectrum_animation
from bandits.experiments.experiment import require_truth
from bandits.results.describe import describe_experiment
from bandits.results.figures.style import Spec, styles
from bandits.runtime.pool import Job
from bandits_app.run_view import board
from bandits_app.run_view.status import status
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown
from bandits_app.widgets.until_end import until_end

from . import verdicts
from .verdicts import DIAGNOSTIC, Verdicts

CELL_WIDTH = 130  # pixels: on a telephone the widest verdict is legible


def show(job: Job) -> None:
    """Draw all verdicts on a run; update every two seconds while the run or its reference values are computed."""
    try:
        require_truth(job.experiment, "Diagnostics")
    except UserError as error:
        st.info(f"{escape_markdown(str(error))}.", icon=":material/info:")
        return
    try:
        references = _reference_task(job.experiment, _without_agents(job.experiment))
    except UserError as error:
        st.error(f"Not yet: {escape_markdown(str(error))}.", icon=":material/hourglass:")
        return
    until_end(_show, job, references, every=2.0)


def _show(job: Job, references: ReferenceTask) -> None:
    received = tuple(reference is None for reference in references.references)
    version = (job.id, board.version(job), tuple(sorted(references.pending)), *received)
    found = _verdicts(job, references, version)
    st.caption(f"{status(job)}. {describe_experiment(job.experiment)}{_reference_status(references)}")
    if references.error:
        key = (job.experiment, _without_agents(job.experiment))
        st.button("Recompute reference values", key="health-again", on_click=_reference_task.clear, args=key)
    if not found.findings:
        st.markdown("There are no results to diagnose yet: this page updates by itself.")
        return
    verdicts.show_card(found.conclusions)
    table = verdicts.table(found.findings)
    columns = {name: st.column_config.TextColumn(width=CELL_WIDTH) for name in table.columns}
    columns[DIAGNOSTIC] = st.column_config.TextColumn(pinned=True)
    st.dataframe(table, hide_index=True, key="health-verdicts", height="content", column_config=columns)
    label = st.selectbox("Agent", list(found.findings), key=f"health-agent-{job.id[:12]}", width=320)
    for sentence in diagnostics.reservations(found.findings[label]):
        st.caption(sentence)
    _show_figures(_figures(job, references, found.findings[label], label, version), label)


class Figures(NamedTuple):
    """The figures of one agent at one moment, ready to be sent.

    Attributes
    ----------
    animation : dict, optional
        The spectrum from snapshot to snapshot.
    urgent, folded : bytes
        The figures with an alarm or a watch, and all others.
    n_folded : int
        Number of the others.
    """

    animation: Spec | None
    urgent: bytes | None
    folded: bytes
    n_folded: int


def _show_figures(figures: Figures, label: str) -> None:
    """Draw the figures of what is not healthy; the others on request."""
    if figures.urgent is None:
        st.markdown(f"No diagnostic of {escape_markdown(label)} requires attention.")
    else:
        st.caption("Shaded bands: 95 % confidence interval of the mean over replications. Dashed lines: references.")
        panel.mount(figures.urgent, key="health")
    if st.toggle(f"Show the {figures.n_folded} figures without alarm or watch", key="health-folded"):
        if figures.animation is not None:
            _show_animation(figures.animation, label)
        panel.mount(figures.folded, key="health-others")


@st.cache_resource(max_entries=32, show_spinner=False)
def _verdicts(_job: Job, _references: ReferenceTask, version: object) -> Verdicts:  # noqa: ARG001 - the key
    """Diagnose all agents; shared by all users who view the run."""
    pending = _references.pending
    with _job.lock:
        result = _job.result
        labels = [label for label, history in result.histories.items() if history.step]
        found = {
            label: diagnostics.findings(result, label, *_references.references, pending=pending) for label in labels
        }
        return verdicts.verdicts(found)


@st.cache_resource(max_entries=64, show_spinner=False)
def _figures(
    _job: Job,
    _references: ReferenceTask,
    _findings: dict[str, diagnostics.Finding],
    label: str,
    version: object,  # noqa: ARG001 - the key
) -> Figures:
    with _job.lock:
        result = _job.result
        animation = spectrum_animation(result.histories[label], label, styles(_job.experiment)[label])
        specs = panels(result, label, _findings, *_references.references)
    revision = f"{_job.id}{label}"
    urgent = [name for name, finding in _findings.items() if finding.verdict in ("alarm", "watch")]
    others = [name for name in specs if name not in urgent]
    packed = [panel.pack([specs[name] for name in names], 280, revision=revision) for names in (urgent, others)]
    return Figures(animation, packed[0] if urgent else None, packed[1], len(others))


def _show_animation(animation: Spec, label: str) -> None:
    """Draw the spectrum from snapshot to snapshot."""
    with st.container(border=True):
        st.markdown("**Eigenvalue spectrum, step by step**")
        st.caption(
            "Eigenvalues of the design matrix A, sorted: a larger eigenvalue means more data in that direction of "
            "feature space. Healthy: the whole curve rises, including its right end. Press Play or move the slider. "
            "Dotted: the first snapshot. Band: middle 80 % over replications and arms."
        )
        config = {"displayModeBar": False, "scrollZoom": False}
        st.plotly_chart(deepcopy(animation), key=f"health-growth-{label}", config=config, height=380)


def _reference_status(references: ReferenceTask) -> str:
    if references.active:
        return ". The reference values are being computed"
    return f". No reference values: {escape_markdown(references.error)}" if references.error else ""


@st.cache_resource(ttl=3600, max_entries=32, show_spinner=False)
def _reference_task(_experiment: Experiment, key: str) -> ReferenceTask:  # noqa: ARG001 - the key
    """Start one task per simulator and seed, shared by all users."""
    return ReferenceTask(_experiment)


def _without_agents(experiment: Experiment) -> str:
    """Return what the reference values depend on: the experiment without its agents."""
    return experiment.model_dump_json(exclude={"agents"})
