"""Artwork: what agents earned, then one title: which picture is shown to whom, and why."""

from __future__ import annotations

import math

import streamlit as st

from bandits import Experiment, UserError
from bandits.base.formatting import count, count_of
from bandits.results import artwork_sharing as sharing
from bandits.results import artwork_title as artwork
from bandits.results.artwork_title import Replay, Visit
from bandits.results.change.marks import description
from bandits.results.comparison.conclusion import leader_comparisons
from bandits.results.decision import Why
from bandits.results.decision_report import explain_decision
from bandits.results.figures.board import board
from bandits.results.figures.style import styles
from bandits.runtime.pool import Job
from bandits_app.labs import lab
from bandits_app.run_view.status import status
from bandits_app.session.results import shared
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import bullets, escape_markdown, refuse
from bandits_app.widgets.until_end import until_end


def show(job: Job) -> None:
    """Draw a run; update while it is computed. At its end, one title can be looked at."""
    until_end(_show, job)
    if not job.live and job.result.histories:
        _one_title(job)


def _show(job: Job) -> None:
    st.caption(escape_markdown(f"{status(job)}. {description(job.experiment)}"))
    if not job.result.histories:
        return
    with job.lock:
        specs = board(job.result)[:2]
        first = [] if job.live else sharing.conclusions(job.result)
        sentences = [] if job.live else leader_comparisons(job.result)
    bullets(first)
    panel.draw(specs, key="artwork-board", revision=job.id, height=320)
    bullets(sentences)


def _choose(job: Job) -> Experiment:
    return lab.choose_base(
        job,
        "artwork",
        lambda experiment: not _lacks(experiment),
        default="artwork",
        label="Experiment",
        help="Titles, visitors and agents. The Arena changes them: simulator Artwork.",
    )


def _lacks(experiment: Experiment) -> str:
    return (
        ""
        if experiment.simulator.kind == "artwork"
        else "The Arena's run shows no pictures. Press **Run**."
    )


ARTWORK = lab.Lab(
    "Artwork",
    "Which picture of a title is shown to whom, and what does that earn against one picture for "
    "all? Choose an experiment and press **Run**; then choose a title.",
    key="artwork",
    above="experiment",
    choose=_choose,
    show=show,
    lacks=_lacks,
)


def _one_title(job: Job) -> None:
    """Draw the choice of a title and an agent, and what the agent shows to whom."""
    st.subheader("One title", anchor=False)
    title, label = _choose_title(job)
    key = f"{job.id}-{label}"
    try:
        with st.spinner("Replaying the first replication of the agent"):
            played = _replay(job.experiment, label, job.result.histories[label].step, key)
    except UserError as error:
        refuse(error)
        return
    value, found = artwork.title_value(played, title), artwork.visits(played, title)
    st.markdown(
        f"At the end of the run, {escape_markdown(label)} gets a take fraction of "
        f"**{value.agent:.3f}** on this title; the default picture {value.default:.3f}, the one "
        f"picture that is best for all {value.popular:.3f} (the limit of popularity), the best "
        f"picture for each visitor {value.best:.3f} (oracle)."
    )
    st.caption(
        f"Expected values over {count_of(value.visitors, 'visitors')} to whom the title is "
        f"retrieved, after {count(value.impressions)} impressions of it in the first replication."
    )
    heatmap = artwork.heatmap(played, title, found)
    panel.draw([heatmap], key="artwork-title-map", revision=f"{key}-{title}", height=380)
    _two_visitors(job, played, title, label, found)
    _every_visitor(found)


def _choose_title(job: Job) -> tuple[int, str]:
    experiment = job.experiment
    labels = [label for label in experiment.labels if label in job.result.histories]
    names = _titles(experiment, job.id)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        title = st.selectbox(
            "Title",
            list(names),
            key=f"artwork-title-{job.id[:12]}",
            width=320,
            format_func=names.__getitem__,
            help=(
                "Titles that are there at the end of the run, those that visitors like most first."
            ),
        )
        label = st.selectbox("Agent", labels, key=f"artwork-agent-{job.id[:12]}", width=320)
    return title, label


@shared(number=16, seconds=3600)
def _titles(_experiment: Experiment, key: str) -> dict[int, str]:  # noqa: ARG001
    return artwork.titles(_experiment)


def _two_visitors(job: Job, played: Replay, title: int, label: str, found: list[Visit]) -> None:
    st.subheader("Why this picture?", anchor=False)
    key = f"{job.id[:12]}-{title}-{label}"
    chosen = st.multiselect(
        "Visitors",
        [visit.cluster for visit in found],
        artwork.contrast(found),
        max_selections=2,
        key=f"artwork-visitors-{key}",
        width=420,
        help="The most typical visitor of each taste cluster; two of them are compared.",
    )
    visits = [visit for visit in found if visit.cluster in chosen]
    if not visits:
        return
    with st.spinner("Asking the agent"):
        answers = [_explain(played, title, visit, label, f"{key}-{visit.user}") for visit in visits]
    bullets(
        [
            f"{visit.cluster.capitalize()}: {' '.join(explain_decision(why))} "
            f"True taste of this visitor for what the picture shows: {visit.likes}."
            for visit, why in zip(visits, answers, strict=True)
        ]
    )
    specs = [artwork.explanation_figure(why, styles(job.experiment)[label]) for why in answers]
    height = 100 + 27 * len(answers[0].candidates)
    panel.draw(specs, key="artwork-why", revision=f"{key}-{chosen}", height=height)


def _every_visitor(found: list[Visit]) -> None:
    rows = []
    for visit in found:
        why = "" if visit.why == artwork.HIGHEST else f": {visit.why.partition(':')[0]}"
        shown = f"{visit.picture} ({visit.content}){why}"
        rows.append(f"| {visit.cluster} | {shown} | {_estimate(visit)} | {visit.truth:.3f} |")
    st.markdown("\n".join(["| Visitor | Picture | Estimate | Truth |", "|---|---|---|---|", *rows]))
    st.caption(
        "The most typical visitor of each taste cluster, and what decided, if not the highest "
        "estimate (explored: another picture has a higher one). Estimate: the mean that the agent "
        "estimates for the picture shown (–: it has none), without a bonus. Truth: its true click "
        "probability. The table, the map and the plots show one draw of agents that choose at "
        "random; the take fraction above is the mean over draws where the probabilities of the "
        "choices are known, and otherwise that of one draw."
    )


def _estimate(visit: Visit) -> str:
    return f"{visit.estimate:.3f}".replace("-", "−") if math.isfinite(visit.estimate) else "–"


def _bytes_of_replay(experiment: Experiment, *_: object) -> int:
    return experiment.model_copy(update={"replications": 1}).memory()


@shared(number=12, seconds=3600, weigh=_bytes_of_replay)
def _replay(_experiment: Experiment, _label: str, _steps: int, key: str) -> Replay:  # noqa: ARG001
    """Replay once per run and agent, shared by all users."""
    return artwork.replay(_experiment, _label, _steps)


@shared(number=256, seconds=3600)
def _explain(_played: Replay, _title: int, _visit: Visit, _label: str, key: str) -> Why:  # noqa: ARG001
    """Ask once per run, agent, title and visitor: some agents draw a thousand samples."""
    return artwork.explanation(_played, _title, _visit, _label)
