"""The controls of the lab Guard rails: which guard, around which agents of the run viewed last."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment
from bandits.experiments.guarding import guard_kinds, guardable, suggestion, with_and_without
from bandits.results.guard_cost import guarded_pairs
from bandits.runtime.pool import Job
from bandits_app.widgets.params_form import fields, form

MOST = 6  # agents


def base(job: Job) -> Experiment:
    """Return the experiment whose agents can be guarded: of a run of this page, the one that it was made from."""
    made: Experiment = st.session_state.get("guard-base", job.experiment)
    alike = made.model_dump(exclude={"agents"}) == job.experiment.model_dump(exclude={"agents"})
    if not guarded_pairs(job.experiment) or not alike:
        st.session_state["guard-base"] = made = job.experiment
    return made


def choose(job: Job) -> Experiment | None:
    """Draw the controls; return the experiment with each agent as it is and guarded, None without an agent."""
    experiment = base(job)
    kinds, pairs = guard_kinds(), guarded_pairs(job.experiment)
    now = {label: agent.guards for label, agent in zip(job.experiment.labels, job.experiment.agents, strict=True)}
    drawn = next((now[label][-1] for label in pairs), None)  # of the run that is drawn
    spec = experiment.simulator_class().describe(experiment.simulator)
    able = guardable(experiment)
    kind = st.selectbox(
        "Guard", list(kinds), list(kinds).index(drawn.kind if drawn else "floor"),
        key="guard-kind", width=220, format_func=lambda k: kinds[k].title,
        help="What stands between the agents and the users. In the Arena, *More* of an agent combines several.",
    )  # fmt: skip
    key = f"guard-{experiment.hash[:12]}"
    now_guarded = [label for label in pairs.values() if label in able]
    labels = st.multiselect(
        "Agents", able, now_guarded or able[:2], key=f"{key}-agents", max_selections=MOST, width=420,
        help="Each runs once as it is and once with the guard, for the same users.",
    )  # fmt: skip
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
    guards = {label: a.guards for label, a in zip(experiment.labels, experiment.agents, strict=True)}
    return {bare: guards[label][-1] for label, bare in guarded_pairs(experiment).items()}
