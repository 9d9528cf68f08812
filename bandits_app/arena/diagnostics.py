"""Diagnostics: whether each agent of the current run explores enough, and why it performs as it
does.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Literal, NamedTuple

import pandas as pd
import streamlit as st

from bandits import Experiment, UserError, diagnostics
from bandits.diagnostics import Conclusion, Finding, Verdict, conclude
from bandits.diagnostics.figures import MARKS, panels
from bandits.diagnostics.finding import SEVERITY, by_severity
from bandits.diagnostics.findings import ReferenceTask
from bandits.diagnostics.retrieval import RetrievalReport, evaluate_retrieval, summary_rows
from bandits.diagnostics.spectrum_figures import spectrum_animation
from bandits.experiments.experiment import require_truth
from bandits.results.describe import describe_experiment
from bandits.results.figures.style import Spec, styles
from bandits.results.items import segment_rates
from bandits.results.items.demand import demand
from bandits.results.items.fairness import item_table, segment_table
from bandits.results.items.shown import maps
from bandits.runtime.pool import Job
from bandits_app.run_view import board
from bandits_app.run_view.status import status
from bandits_app.session import followed
from bandits_app.session.results import shared
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import escape_markdown, glued, safe_agents, safe_cell
from bandits_app.widgets.until_end import until_end

# pixels: on a telephone the widest verdict is legible
CELL_WIDTH = 130
if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

# no agent's name has a slash
DIAGNOSTIC = "Diagnostic / agent"
_COLOURS: dict[Verdict, str] = {
    "alarm": "red",
    "watch": "orange",
    "none": "gray",
    "healthy": "green",
}
# legible on light and dark; the sign in front has the same meaning
_FILL = {
    MARKS["alarm"]: "background-color: rgba(255, 75, 75, 0.28)",
    MARKS["watch"]: "background-color: rgba(255, 170, 0, 0.24)",
    MARKS["healthy"]: "background-color: rgba(33, 195, 84, 0.16)",
}
NOT_INFORMATIVE = f"{MARKS['none']} not informative"
# rows of a table that does not scroll
WHOLE = 24


def draw() -> None:
    """Draw the view."""
    st.title("Diagnostics", anchor=False)
    st.markdown(
        "Does each agent explore too little, about right or too much? Run a comparison in the "
        "Arena first: this page diagnoses the run that is shown there."
    )
    st.caption(
        "✓\u00a0healthy, !\u00a0watch, ✕\u00a0alarm, –\u00a0not informative. About right: no sign "
        "of too little or too much exploration; small losses go unseen. Possible gain: "
        "what the best choice earns over random choice. The text above each figure states its rule."
    )
    _diagnose(followed.current())
    _show_fairness(followed.current())
    _show_retrieval(followed.current())


def _diagnose(job: Job) -> None:
    """Draw all verdicts on a run.

    Update every two seconds while the run or its reference values are computed.
    """
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
    until_end(_show_verdicts, job, references, every=2.0)


def _show_verdicts(job: Job, references: ReferenceTask) -> None:
    received = tuple(reference is None for reference in references.references)
    version = (job.id, board.version(job), tuple(sorted(references.pending)), *received)
    found = _verdicts(job, references, version)
    st.caption(
        f"{status(job)}. {describe_experiment(job.experiment)}{_reference_status(references)}"
    )
    if references.error:
        key = (job.experiment, _without_agents(job.experiment))
        st.button(
            "Recompute reference values",
            key="health-again",
            on_click=_reference_task.forget,
            args=key,
        )
    if not found.findings:
        st.markdown("There are no results to diagnose yet: this page updates by itself.")
        return
    _show_conclusions(found.conclusions)
    table = _table(found.findings)
    columns = {name: st.column_config.TextColumn(width=CELL_WIDTH) for name in table.columns}
    columns[DIAGNOSTIC] = st.column_config.TextColumn(pinned=True)
    st.dataframe(
        table, hide_index=True, key="health-verdicts", height="content", column_config=columns
    )
    labels = list(found.findings)
    # of those whose exploration can be judged, the most severe
    first = next((i for i, name in enumerate(labels) if found.conclusions[name].exploration), 0)
    label = st.selectbox("Agent", labels, first, key=f"health-agent-{job.id[:12]}", width=320)
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
        st.caption(
            "Shaded bands: 95 % confidence interval of the mean over replications. Dashed lines: "
            "references."
        )
        panel.mount(figures.urgent, key="health")
    if st.toggle(
        f"Show the {figures.n_folded} figures without alarm or watch", key="health-folded"
    ):
        if figures.animation is not None:
            _show_animation(figures.animation, label)
        panel.mount(figures.folded, key="health-others")


@shared(number=32)
def _verdicts(_job: Job, _references: ReferenceTask, version: object) -> Verdicts:  # noqa: ARG001
    """Diagnose all agents; shared by all users who view the run."""
    pending = _references.pending
    with _job.lock:
        result = _job.result
        labels = [label for label, history in result.histories.items() if history.step]
        found = {
            label: diagnostics.findings(result, label, *_references.references, pending=pending)
            for label in labels
        }
        return _conclude_all(found)


@shared(number=64)
def _figures(
    _job: Job,
    _references: ReferenceTask,
    _findings: dict[str, diagnostics.Finding],
    label: str,
    version: object,  # noqa: ARG001
) -> Figures:
    with _job.lock:
        result = _job.result
        animation = spectrum_animation(
            result.histories[label], label, styles(_job.experiment)[label]
        )
        specs = panels(result, label, _findings, *_references.references)
    revision = f"{_job.id}{label}"
    urgent = [name for name, finding in _findings.items() if finding.verdict in ("alarm", "watch")]
    others = [name for name in specs if name not in urgent]
    packed = [
        panel.pack([specs[name] for name in names], 280, revision=revision)
        for names in (urgent, others)
    ]
    return Figures(animation, packed[0] if urgent else None, packed[1], len(others))


def _show_animation(animation: Spec, label: str) -> None:
    with st.container(border=True):
        st.markdown("**Eigenvalue spectrum, step by step**")
        st.caption(
            "Eigenvalues of the design matrix A, sorted: a larger eigenvalue means more data in "
            "that direction of feature space. Healthy: the whole curve rises, including its right "
            "end. Press Play or move the slider. Dotted: the first snapshot. Band: middle 80 % "
            "over replications and arms."
        )
        config = {"displayModeBar": False, "scrollZoom": False}
        st.plotly_chart(
            deepcopy(animation), key=f"health-growth-{label}", config=config, height=380
        )


def _reference_status(references: ReferenceTask) -> str:
    if references.active:
        return ". The reference values are being computed"
    return f". No reference values: {escape_markdown(references.error)}" if references.error else ""


@shared(number=32, seconds=3600)
def _reference_task(_experiment: Experiment, key: str) -> ReferenceTask:  # noqa: ARG001
    """Start one task per simulator and seed, shared by all users."""
    return ReferenceTask(_experiment)


def _without_agents(experiment: Experiment) -> str:
    """Return what the reference values depend on: the experiment without its agents."""
    return experiment.model_dump_json(exclude={"agents"})


class Verdicts(NamedTuple):
    """The findings and the conclusion on every agent at one moment, agents by severity."""

    findings: dict[str, dict[str, Finding]]
    conclusions: dict[str, Conclusion]


def _conclude_all(found: dict[str, dict[str, Finding]]) -> Verdicts:
    """Conclude for every agent, and order the agents by severity."""
    conclusions = {label: conclude(findings) for label, findings in found.items()}
    order = sorted(
        conclusions,
        key=lambda label: (
            conclusions[label].verdict == "none",
            SEVERITY[conclusions[label].verdict],
        ),
    )
    return Verdicts(
        {label: found[label] for label in order}, {label: conclusions[label] for label in order}
    )


def _show_conclusions(conclusions: dict[str, Conclusion]) -> None:
    """Draw the conclusion on each agent, the most severe first."""
    with st.container(border=True):
        st.markdown("**Conclusion**")
        for label, (verdict, direction, text) in conclusions.items():
            mark = f":{_COLOURS[verdict]}[**{MARKS[verdict]}**]"
            exploration = f" – {direction} exploration" if direction.startswith("too") else ""
            sentences = escape_markdown(glued(text))
            st.markdown(f"{mark} **{escape_markdown(label)}{exploration}.** {sentences}")


def _table(found: dict[str, dict[str, Finding]]) -> Styler:
    """Return the table of all verdicts: one row per diagnostic, the most severe first, one column
    per agent.
    """
    worst: dict[str, Finding] = {}
    for findings in found.values():
        for name, finding in findings.items():
            if name not in worst or SEVERITY[finding.verdict] < SEVERITY[worst[name].verdict]:
                worst[name] = finding
    names = list(by_severity(worst))
    # without "(PIT histogram)": on a telephone the first column leaves little room
    columns = {DIAGNOSTIC: [worst[name].title.split(" (")[0] for name in names]}
    for label, findings in found.items():
        columns[safe_cell(label)] = [_cell(findings[name]) for name in names]
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame.style.map(
        lambda cell: _FILL.get(str(cell)[:1], ""), subset=list(frame.columns[1:])
    )


def _cell(finding: Finding) -> str:
    """Return the sign and the verdict in words; for exploration, the direction."""
    if finding.verdict == "none":
        return NOT_INFORMATIVE
    return f"{MARKS[finding.verdict]} {finding.direction or finding.verdict}"


def _show_fairness(job: Job) -> None:
    """Show a table of segments and one of items, where the simulator has them."""
    # takes a while the first time: outside the lock
    demand(job.experiment)
    with job.lock:
        segments, items = segment_table(job.result), item_table(job.result)
        shares, rates = maps(job.result), segment_rates.plots(job.result)
    if segments is None and items is None:
        return
    st.subheader("Fairness", anchor=False)
    if segments is not None:
        st.markdown(
            "What does each user segment get? *Disparity* is its regret per visit minus that of "
            "all other visitors: above 0, it loses more clicks than they do. *Exploration* is the "
            "share of its decisions that were not the agent's best estimate. 95 % intervals in "
            "brackets; none where nothing was seen. They rely on many replications: with 8, those "
            "of regret hold in 80 to 90 of 100 runs."
        )
        height: Literal["content", "auto"] = "content" if len(segments) <= WHOLE else "auto"
        st.dataframe(safe_agents(segments), hide_index=True, key="fairness-segments", height=height)
    if rates:
        st.markdown("How does it change over time? Each plot is a user segment.")
        panel.draw(rates, key="fairness-rates", revision=job.id, height=240)
    if shares:
        st.markdown("Who is shown what? Each row of a map is a user segment.")
        panel.draw(shares, key="fairness-maps", revision=job.id, height=200)
    if items is not None:
        st.markdown(
            "What does each item get? *Gini* is 0 if all are shown equally often and 1 if one "
            "takes everything. *Exposure over merit* is the share of exposure of the worst tenth "
            "of the items over their share of the expected clicks: 1 is what they merit, 0 is "
            "never shown."
        )
        if any(str(column).startswith("Launch") for column in items):
            st.markdown(
                "What does a launch get? *Share* is that of the new items, followed by their fair "
                "share, that of an optimal choice. *Fair share* is reached when, from then on, "
                "the share in every 1,000 steps differs from it by at most 20\u00a0%, by at most "
                ".01, or by what chance explains, whichever is most (median of the replications)."
            )
        st.dataframe(safe_agents(items), hide_index=True, key="fairness-items")


def _show_retrieval(job: Job) -> None:
    """Show one table, if the run's simulator retrieves candidates by an index."""
    with st.spinner("Comparing the index with exact search ..."):
        report = _report(job.experiment, job.experiment.hash)
    if report is None:
        return
    with job.lock:
        rows = summary_rows(report, job.histories)
    st.subheader("Candidate retrieval", anchor=False)
    st.markdown(
        "How much reward is lost before an agent chooses? An approximate index retrieves the "
        "candidates, and no agent can show an item that it misses. The regret of the agents among "
        "the retrieved candidates comes on top."
    )
    table = {
        "": [safe_cell(name) for name, _ in rows],
        "estimate (95 % CI)": [value for _, value in rows],
    }
    st.dataframe(table, hide_index=True, key="retriever")


@shared(number=32, seconds=3600)
def _report(_experiment: Experiment, run: str) -> RetrievalReport | None:  # noqa: ARG001
    return evaluate_retrieval(_experiment)
