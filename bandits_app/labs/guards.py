"""Guard rails: what a guard costs, whom arms are shown to, and the alarms of monitors."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment, UserError
from bandits.base.formatting import count_of
from bandits.experiments.guarding import guard_kinds, guardable, suggestion, with_and_without
from bandits.monitoring.conclusion import conclusion
from bandits.monitoring.figures import (
    alarm_table,
    exposure,
    exposure_by_segment,
    first_observations,
    timeline,
)
from bandits.monitoring.replay import AlarmTask
from bandits.results import guard_cost
from bandits.results.change.marks import description
from bandits.results.comparison.paired_tests import family_of
from bandits.results.describe import describe_experiment
from bandits.results.figures.board import board
from bandits.results.guard_cost import guarded_pairs
from bandits.runtime.pool import Job
from bandits_app.labs.lab import Lab
from bandits_app.run_view.status import status
from bandits_app.session.results import shared
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.params_form import fields, form
from bandits_app.widgets.text import bullets, escape_markdown, glued, refuse, sentence
from bandits_app.widgets.until_end import until_end

MOST = 6  # agents


def base(job: Job) -> Experiment:
    """Return the experiment whose agents can be guarded: of a run of this page, the one that it was
    made from.
    """
    made: Experiment = st.session_state.get("guard-base", job.experiment)
    alike = made.model_dump(exclude={"agents"}) == job.experiment.model_dump(exclude={"agents"})
    if not guarded_pairs(job.experiment) or not alike:
        st.session_state["guard-base"] = made = job.experiment
    return made


def choose(job: Job) -> Experiment | None:
    """Draw the controls; return the experiment with each agent as it is and guarded, None without
    an agent.
    """
    experiment = base(job)
    kinds, pairs = guard_kinds(), guarded_pairs(job.experiment)
    now = {
        label: agent.guards
        for label, agent in zip(job.experiment.labels, job.experiment.agents, strict=True)
    }
    # of the run that is drawn
    drawn = next((now[label][-1] for label in pairs), None)
    spec = experiment.simulator_class().describe(experiment.simulator)
    able = guardable(experiment)
    kind = st.selectbox(
        "Guard",
        list(kinds),
        list(kinds).index(drawn.kind if drawn else "floor"),
        key="guard-kind",
        width=220,
        format_func=lambda k: kinds[k].title,
        help=(
            "What stands between the agents and the users. In the Arena, *More* of an agent "
            "combines several."
        ),
    )
    key = f"guard-{experiment.hash[:12]}"
    now_guarded = [label for label in pairs.values() if label in able]
    labels = st.multiselect(
        "Agents",
        able,
        now_guarded or able[:2],
        key=f"{key}-agents",
        max_selections=MOST,
        width=420,
        help="Each runs once as it is and once with the guard, for the same users.",
    )
    cls, given = kinds[kind], suggestion(kind, experiment.steps, spec)
    if drawn is not None and drawn.kind == kind:
        given = drawn.model_dump(mode="json")
    given = {name: given.get(name, field.default) for name, field in cls.model_fields.items()}
    with st.popover("Settings", icon=":material/tune:", type="tertiary"):
        st.caption((cls.__doc__ or "").split("\n\n")[0])
        shown = [name for name in fields(cls, basic=False) if name not in cls.idle(given)]
        entered = cls.closest({**given, **form(cls, shown, given, f"{key}-{kind}")})
    return with_and_without(experiment, entered, labels) if labels else None


def drawn(experiment: Experiment, job: Job) -> bool:
    """Return whether a run has the guard of the controls around the same agents."""
    return _guarded(experiment) == _guarded(job.experiment)


def _guarded(experiment: Experiment) -> dict[str, object]:
    """Return the last guard of each guarded agent, by the agent without it."""
    guards = {
        label: a.guards for label, a in zip(experiment.labels, experiment.agents, strict=True)
    }
    return {bare: guards[label][-1] for label, bare in guarded_pairs(experiment).items()}


def show(job: Job) -> None:
    """Draw a run; update while it is computed."""
    until_end(_show, job)
    if job.experiment.offers("replay"):
        st.caption(
            "Agents that replay a log count different events: neither guards nor alarms can be "
            "judged by it."
        )
        return
    if not job.live and job.result.histories:
        _alarms(job)


def _show(job: Job) -> None:
    about = f"{status(job)}. {describe_experiment(job.experiment)}. {description(job.experiment)}"
    st.caption(escape_markdown(about.strip()))
    if not job.result.histories:
        return
    with job.lock:
        result = job.result
        by_segment = exposure_by_segment(result)
        specs = [board(result)[0], exposure(result), *([] if by_segment is None else [by_segment])]
        sentences = (
            []
            if job.live
            else [*guard_cost.sentences(result), *guard_cost.fallback_sentences(result)]
        )
        first = "" if job.live else guard_cost.conclusion(result)
    if sentences:
        lines = [f"**{escape_markdown(first)}**\n"] if first else []
        lines += [f"- {escape_markdown(sentence)}" for sentence in sentences if sentence != first]
        st.markdown(glued("\n".join(lines)))
        if len(guarded_pairs(job.experiment)) < family_of(job.experiment):
            st.caption(
                "Intervals hold together for the agents with a guard. The Arena compares all pairs "
                "of agents, so its intervals are wider."
            )
    panel.draw(specs, key="guard-board", revision=job.id)


def _alarms(job: Job) -> None:
    """Find the alarms of monitors on request: it takes a replay of the run."""
    st.subheader("Alarms", anchor=False)
    st.caption(
        "Which alarms would monitors have raised? They see only what a system in production sees: "
        "rewards, items, features and the agent's own statements, never the true click "
        "probabilities."
    )
    reached = {label: h.step for label, h in job.result.histories.items() if h.alive.any()}
    wanted = f"{job.id}-{sorted(reached.items())}"
    if st.button(
        "Find alarms",
        icon=":material/notifications:",
        help="Replays the first replications of this run.",
    ):
        st.session_state["alarms-of"] = wanted
    if st.session_state.get("alarms-of") != wanted:
        return
    try:
        task = _task(job.experiment, reached, wanted)
        if task.status == "failed" and not task.alarms:
            # the next press searches again
            _task.forget(job.experiment, reached, wanted)
            st.session_state.pop("alarms-of")
    except UserError as error:
        refuse(error)
        return
    until_end(_show_alarms, job, task)


def _show_alarms(job: Job, task: AlarmTask) -> None:
    if task.active:
        done = len(task.alarms) / max(len(task.steps), 1)
        st.progress(done, text=f"Replaying: {len(task.alarms)} of {len(task.steps)} agents")
        return
    if task.error:
        left = [label for label in task.steps if label not in task.alarms]
        refuse(f"{sentence(task.error)} Not searched: {', '.join(left)}")
        if not task.alarms:
            return
    simulator, alarms = job.experiment.simulator, dict(task.alarms)
    found = conclusion(alarms, simulator, rows=task.rows, steps=task.steps, monitors=task.monitors)
    # what can be relied on comes first
    first, semicolon, rest = escape_markdown(found).partition("; ")
    st.markdown(glued(f"**{first}**{semicolon}{rest}"))
    if not any(alarms.values()):
        return
    drawn = timeline(job.result, alarms, task.rows)
    # monitors; on a phone the legend has a line for each agent
    rang = len(drawn["layout"]["yaxis"]["tickvals"])
    height = 160 + 18 * len(alarms) + 22 * rang
    panel.draw([drawn], key="guard-alarms", revision=job.id, height=height)
    also = delay = before = ""
    if simulator.all_changes:
        also, before = " and one change", " before the first change"
        delay = (
            " Delay: median of the steps from a change to the first alarm after it, and in how "
            "many cases one came."
        )
    searched = f"{count_of(task.rows, 'replications')}"
    if task.rows < job.experiment.replications:
        searched = f"first {task.rows} of {job.experiment.replications} replications"
    st.caption(
        f"Searched: the {searched} of {count_of(len(alarms), 'agents')}; a case is one replication "
        f"of one agent{also}. First alarm: the earliest step, and in how many of these "
        f"replications of the agent it raised an alarm.{delay} False alarms: of monitors of "
        f"change, per 10,000 steps{before}; while an agent learns, its rewards rise, and they "
        "report that too."
    )
    st.table(alarm_table(alarms, simulator, rows=task.rows, steps=task.steps), hide_index=True)
    with st.expander("What each monitor observed first"):
        bullets(first_observations(alarms))


@shared(number=32, seconds=3600)
def _task(_experiment: Experiment, _steps: dict[str, int], key: str) -> AlarmTask:  # noqa: ARG001
    """Start one search per run and steps reached, shared by all users."""
    return AlarmTask(_experiment, _steps)


GUARDS = Lab(
    "Guard rails",
    "What does a guard cost, and which alarms are reliable? Put a guard around agents of the "
    "Arena's run and press **Run**: each agent runs with the guard and without it.",
    key="guard",
    above="guard",
    choose=choose,
    show=show,
    lacks=lambda experiment: "",  # noqa: ARG005
    drawn=drawn,
)
