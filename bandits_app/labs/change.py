"""Shock lab: what changes cost each agent, which agents recover, and the price of forgetting."""

from __future__ import annotations

import streamlit as st

from bandits import Experiment, UserError, read
from bandits.experiments.labels import following_label
from bandits.experiments.presets import presets
from bandits.results.change import conclusion as change_conclusion
from bandits.results.change import lost_clicks, recovery
from bandits.results.change import price_of_forgetting as price
from bandits.results.change.before_after import change_table
from bandits.results.change.lost_clicks import without_changes
from bandits.results.change.marks import description
from bandits.results.change.price_of_forgetting import GAMMAS
from bandits.results.describe import parameter_changes, relabelled
from bandits.results.figures import board as figures
from bandits.runtime.pool import Job
from bandits_app.labs import lab
from bandits_app.run_view.status import status
from bandits_app.session import draft, followed, workers
from bandits_app.session.owner import owner
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import bullets, escape_markdown, glued, refuse
from bandits_app.widgets.until_end import until_end

_COLUMNS = (
    ".st-key-change-table table{table-layout:fixed;width:100%}"
    ".st-key-change-table th{width:18%}.st-key-change-table th:nth-last-child(2){width:25%}"
    ".st-key-change-table th:last-child{width:21%}"
    # three lines, so that nothing moves at the end
    ".st-key-change-conclusion{min-height:4.5rem}"
    ".st-key-change-table :is(th,td){overflow-wrap:anywhere}"
    # four lines, which an interval needs
    "@media(max-width:640px){.st-key-change-table td{height:5.75rem}"
    ".st-key-change-conclusion{min-height:12rem}}"
)
_PENDING = (
    "Which agent recovers first, and which loses least, is stated when both runs have ended, with "
    "the change and without it."
)
# field of the address: the comparison that is shown
_PRICE = "price"


def choose(job: Job) -> Experiment:
    """Draw the controls; return the experiment that they describe."""
    base = lab.choose_base(
        job,
        "change",
        lambda e: bool(e.simulator.all_changes),
        default="forgetting",
        label="Change",
        help=(
            "What changes during the run. In the Arena, *More parameters* of the simulator "
            "offers all kinds."
        ),
    )
    return _forgetting(base)


def _forgetting(base: Experiment) -> Experiment:
    """Draw the choice of the discount factor; return the experiment with it."""
    forgetful = [i for i, agent in enumerate(base.agents) if getattr(agent, "gamma", 1.0) < 1]
    if not forgetful:
        st.caption("No agent of this run forgets by a discount factor.", width=320)
        return base
    now = getattr(base.agents[forgetful[0]], "gamma", 1.0)
    options = sorted({*GAMMAS, now}, reverse=True)
    gamma = st.selectbox(
        "Discount factor γ",
        options,
        options.index(now),
        key=f"change-gamma-{base.hash[:12]}",
        width=320,
        on_change=draft.request_run,
        args=("slider",),
        format_func=lambda value: "1 (no forgetting)" if value == 1 else f"{value:g}",
        help="Of the agents that discount past observations. Smaller values forget faster.",
    )
    if gamma == now:
        return base
    agents = [agent.model_dump(mode="json", by_alias=True) for agent in base.agents]
    for i in forgetful:
        after = {**agents[i], "gamma": gamma}
        agents[i] = {**after, "label": following_label(agents[i].get("label"), agents[i], after)}
    return read({**base.model_dump(mode="json", by_alias=True), "agents": agents})


def about(experiment: Experiment) -> str:
    """Describe the chosen preset, or the changes of the last run."""
    chosen = presets().get(st.session_state["change-name"])
    return description(experiment) if chosen is None else chosen.about


def start(experiment: Experiment, *, by_slider: bool) -> Job:
    """Start a run, and the same run without changes behind it.

    A slider's runs replace those that have not ended.
    """
    before = workers.pool().get(st.session_state.get("change-unchanged", ""))
    unchanged = without_changes(experiment)
    if (
        by_slider
        and before is not None
        and before.active
        and before.owner == owner()
        and before.id != unchanged.hash
    ):
        workers.pool().stop(before, owner())
    job = followed.submit_and_follow(experiment, by_slider=by_slider)
    st.session_state["change-unchanged"] = followed.submit(unchanged).id
    return job


def show(job: Job) -> None:
    """Draw a run with changes; update while it or the run without its changes is computed."""
    unchanged_job = workers.pool().get(without_changes(job.experiment).hash)
    until_end(_show, job, unchanged_job)
    if not job.live and job.result.histories:
        _price(job)


def _show(job: Job, unchanged_job: Job | None) -> None:
    jobs = [each for each in (job, unchanged_job) if each is not None]
    active, live = any(each.active for each in jobs), any(each.live for each in jobs)
    pending = "computing" if active else "paused" if live else "press Run"
    others = {"computing": ". Computing the same run without the change"}
    others["paused"] = ". The same run without the change is paused: press **Run**"
    also = "" if job.live else others.get(pending, "")
    st.caption(f"{escape_markdown(status(job))}{also}")
    if not job.result.histories:
        return
    previous = followed.previous(job)
    changes, before = {}, None
    if previous is not None:
        changes = parameter_changes(previous.experiment, job.experiment)
        with previous.lock:
            before = relabelled(
                figures.bands(
                    previous.result, ["ctr", "pseudo_regret"], figures.Options(recovery.WINDOW)
                ),
                changes,
            )
    with job.lock:
        result = job.result
        done = unchanged_job is not None and unchanged_job.status == "finished" and not job.live
        unchanged = unchanged_job.result if done and unchanged_job is not None else None
        conclusions = (
            []
            if job.live
            else [*recovery.sentences(result), *lost_clicks.sentences(result, unchanged)]
        )
        first = _PENDING if live else change_conclusion.conclusion(result, unchanged)
        table = change_table(result, unchanged, pending=pending)
        specs = figures.board(result, recovery.WINDOW, before=before, changes=changes)[:2]
    if first:
        with st.container(key="change-conclusion"):
            st.markdown(glued(f"**{escape_markdown(first)}**"))
    # nothing moves while numbers come in
    with st.container(key="change-table"):
        st.table(table, hide_index=True)
        st.html(f"<style>{_COLUMNS}</style>")
    st.caption(glued(_CAPTION.format(noun=job.experiment.simulator_class().reward_noun)))
    panel.draw(specs, key="change-board", revision=job.id, height=320)
    # Last: nothing moves below them.
    bullets(conclusions)


_CAPTION = (
    "± 95 % confidence interval over replications. CTR: click-through rate, before and from the "
    "start of the change on. Recovery: back within 5 % of the best choice, over 500 steps. Lost: "
    "{noun} against the same run without changes, on the same users and random numbers; a "
    "negative number is what the change earned."
)


def _price(job: Job) -> None:
    """Draw what forgetting costs and earns, on request."""
    able = {
        label: [n for n in ("gamma", "window") if n in type(agent).model_fields]
        for label, agent in zip(job.experiment.labels, job.experiment.agents, strict=True)
    }
    able = {label: names for label, names in able.items() if names}
    if not able:
        return
    st.subheader("What forgetting costs and earns", anchor=False)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    # agent and parameter: 1.gamma
    labels, linked = list(job.experiment.labels), st.query_params.get(_PRICE, "")
    named = next(
        (label for label in able if linked.startswith(f"{labels.index(label)}.")), next(iter(able))
    )
    label = row.selectbox(
        "Agent", list(able), list(able).index(named), key=f"change-agent-{job.id[:12]}", width=260
    )
    offered, words = able[label], {"gamma": "discount factor", "window": "sliding window"}
    place = next(
        (i for i, name in enumerate(offered) if linked == f"{labels.index(label)}.{name}"), 0
    )
    name = row.selectbox(
        "Vary",
        offered,
        place,
        key=f"change-parameter-{job.id[:12]}-{label}",
        width=180,
        format_func=words.__getitem__,
    )
    wanted, varied = f"{labels.index(label)}.{name}", price.variants(job.experiment, label, name)
    pair = (varied, without_changes(varied))
    if row.button(
        "Compare values",
        icon=":material/balance:",
        help="Seven values, with and without the changes.",
    ):
        try:
            for each in pair:
                followed.submit(each)
            # the link to this page holds it
            st.query_params[_PRICE] = linked = wanted
        except UserError as error:
            refuse(error)
    changed, unchanged = (
        workers.pool().get(each.hash) if linked == wanted else None for each in pair
    )
    if changed is None or unchanged is None:
        st.caption(
            "Seven values of one agent, with the changes and without: how much each earns and "
            "costs."
        )
        return
    until_end(_show_price, changed, unchanged)


def _show_price(changed: Job, unchanged: Job) -> None:
    if changed.active or unchanged.active:
        done = (changed.progress + unchanged.progress) / 2
        st.progress(min(done, 1.0), text="Fourteen runs of one agent")
        return
    if changed.status != "finished" or unchanged.status != "finished":
        st.caption(escape_markdown(status(changed if changed.status != "finished" else unchanged)))
        return
    found = price.compare(changed.result, unchanged.result)
    noun = changed.experiment.simulator_class().reward_noun
    st.markdown(f"**{price.conclusion(found, noun)}**")
    figure = price.figure(found, changed.result)
    panel.draw([figure], key="change-price-figure", revision=changed.id, height=320)


def _lacks(experiment: Experiment) -> str:
    return (
        ""
        if experiment.simulator.all_changes
        else "The Arena's run has no change. **Run** starts the one above."
    )


SHOCK = lab.Lab(
    "Shock lab",
    "What does a change cost, and which agents recover? Choose a change and press **Run**; "
    "change the discount factor to see how agents that forget faster or more slowly would have "
    "done (dotted: the previous run).",
    key="change",
    above="change",
    choose=choose,
    show=show,
    lacks=_lacks,
    about=about,
    start=start,
)
