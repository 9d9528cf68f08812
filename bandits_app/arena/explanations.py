"""What explains a run: one decision, what agents learned before it, formulas, configuration, and
other pages.
"""

from __future__ import annotations

import re

import streamlit as st

from bandits import Experiment, UserError
from bandits.agents import AgentParams, agent_class
from bandits.agents.logistic.base import LogisticParams
from bandits.base.params import declaration
from bandits.base.processes import BusyError, ChildTask
from bandits.results import item_model, log_training, representation
from bandits.results.decision import EXPLANATIONS, Why, why
from bandits.results.decision_report import decision, explain_decision
from bandits.results.figures.style import styles
from bandits.results.item_model import ItemModel
from bandits.runtime.pool import Job
from bandits_app.glossary import link, link_symbol
from bandits_app.session.results import shared
from bandits_app.widgets.live_panel import panel
from bandits_app.widgets.text import bullets, escape_markdown, refuse

FURTHER = (
    ("labs", "change", "Shock lab: what a change costs", "bolt"),
    ("labs", "guards", "Guard rails: safety and alarms", "shield"),
    ("data", "what_if", "What if?: other policies on this run's log", "fork_right"),
)
_PLOTS = r"""
- {rate}: $\dfrac{{C(t)-C(t-w)}}{{w}}$; $C(t)$: {noun} up to step $t$; $w$: {window}.
- {regret}: $\sum_{{s\le t}}(\mu^*_s-\mu_s)$; $\mu_s$: expected {noun} of the choice at step $s$; $\mu^*_s$: of the best choice. Both are true expectations ({pseudo}), without noise.
- {entropy}: $-\sum_a p_a\log p_a\,/\,\log\min(K,w)$; $p_a$: share of the window in which arm $a$ was chosen; $K$: number of arms.
- {spectrum}: eigenvalues of {design} $A=\lambda I+\sum x x^\top$; $x$: features of what was shown; $\lambda$: {ridge}. Shown within the span of the features that can occur; all other eigenvalues of $A$ are $\lambda$.
- {calibration} (under View): share of arms with $|\mu_a-\hat\mu_a|\le z\,\sigma_a$; $\hat\mu_a$: estimated mean; $\sigma_a$: standard deviation of the posterior draws, or $\alpha$ times the confidence width; $z$: 0.67, 1.28 or 1.96 for 50, 80 or 95 %.
- {interval} (bands): $\bar y\pm t_{{n-1,\,0.975}}\,s/\sqrt n$; mean and standard deviation over $n$ replications.
"""  # noqa: E501


def show(job: Job) -> None:
    """Draw all of it."""
    with st.container(key="arena-further", horizontal=True, gap="medium"):
        for page, view, label, icon in FURTHER:
            st.page_link(
                f"{page}.py", query_params={"view": view}, label=label, icon=f":material/{icon}:"
            )
    if not job.active:
        _decision(job)
    _training(job)
    with st.expander("Formulas and symbols", icon=":material/function:"):
        _explain_formulas(job.experiment)
    with st.expander("Configuration and hash", icon=":material/data_object:"):
        st.text(f"Experiment {job.id}")
        st.json(job.experiment.model_dump(mode="json"), expanded=1)


def _training(job: Job) -> None:
    """Draw the training of each agent that learned from a log; nothing where none did."""
    with job.lock:
        sentences, specs = (
            log_training.sentences(job.result),
            log_training.training_curves(job.result),
        )
    if not sentences:
        return
    with st.expander("Training before the run", icon=":material/model_training:"):
        bullets(sentences)
        if specs:
            alt = [f"{label}: {spec['layout']['meta']['note']}" for label, spec in specs.items()]
            panel.draw(
                list(specs.values()), key="log-training", revision=job.id, alt=alt, height=300
            )


def _decision(job: Job) -> None:
    """Draw a section that explains the choice at any step that the run has reached."""
    st.fragment(_section)(job)


def _section(job: Job) -> None:
    reached = {label: h.step for label, h in job.histories.items() if h.step}
    section = st.expander(
        "Why this arm?", icon=":material/psychology_alt:", key="why-open", on_change="rerun"
    )
    if not section.open or not reached:
        return
    with section:
        row = st.container(horizontal=True, gap="small")
        label = row.selectbox("Agent", list(reached), key=f"why-agent-{job.id[:12]}", width=240)
        last, replications, key = (
            reached[label],
            job.experiment.replications,
            f"{job.id[:12]}-{label}",
        )
        # agents at the same step share the choice
        name = f"why-step-{job.id[:12]}-{last}"
        step = row.number_input(
            "Step", 1, last, last, key=name, help=f"Decision to explain, 1 to {last:,}.", width=150
        )
        replication = row.number_input(
            "Replication",
            1,
            replications,
            key=f"why-run-{job.id[:12]}",
            width=130,
            help=f"Replication that the decision is taken from, 1 to {replications:,}.",
        )
        try:
            with st.spinner("Replaying the run up to this step ..."):
                explanation = _explain(job.experiment, job.id, label, step, replication - 1)
        except BusyError as error:
            explanation = str(error)
        if isinstance(explanation, str):
            refuse(explanation)
            return
        reason, *more = explain_decision(explanation)
        st.markdown(f"**{escape_markdown(reason)}** {escape_markdown(' '.join(more))}")
        spec = decision(explanation, styles(job.experiment)[label])
        height = 80 + 34 * len(spec["layout"]["yaxis"]["tickvals"])
        revision, alt = f"{key}-{step}-{replication}", [" ".join([reason, *more])]
        panel.draw([spec], key="why", revision=revision, alt=alt, height=height)
        if (learned := explanation.learned) is not None:
            drawn, alt = representation.figure(learned, label), [representation.note(learned)]
            panel.draw([drawn], key="why-learned", revision=revision, alt=alt, height=380)
        if not item_model.obstacle(job.experiment, label):
            _item_model(job, label, explanation)


def _item_model(job: Job, label: str, asked: Why) -> None:
    """Draw the features of one visit and the model of its item, visit by visit."""
    key = f"{job.id[:12]}-{label}"
    if not st.toggle("Step through the model of one item: x, A, b, θ", key="why-model"):
        return
    row = st.container(horizontal=True, gap="small")
    last = job.experiment.simulator_class().describe(job.experiment.simulator).n_items - 1
    shown = asked.candidates[0].item
    # the item that the decision showed, until the user chooses another one
    item = row.number_input(
        "Item", 0, last, shown, key=f"why-item-{key}-{asked.step}-{asked.replication}", width=130
    )
    visit = row.number_input(
        "Visit",
        1,
        value=1,
        key=f"why-visit-{key}-{item}",
        width=130,
        help="How many times the item had been shown, with this visit. 1 is the first time.",
    )
    try:
        with st.spinner("Replaying the run up to this visit ..."):
            found = _model(job.experiment, job.id, label, item, visit, asked.replication)
    except BusyError as error:
        found = str(error)
    if isinstance(found, str):
        refuse(found)
        return
    told = item_model.sentence(found)
    st.markdown(escape_markdown(told))
    specs = item_model.figures(found, styles(job.experiment)[label])
    alt = [f"{spec['layout']['title']['text']}. {told}" for spec in specs]
    panel.draw(specs, key="why-model-drawn", revision=f"{key}-{item}", alt=alt, height=240)


@shared(number=256, seconds=600)
def _model(
    _experiment: Experiment,
    run: str,  # noqa: ARG001
    label: str,
    item: int,
    visit: int,
    replication: int,
) -> ItemModel | str:
    """Return the model of an item after a visit, or the reason why there is none."""
    arguments = _experiment, label, item, visit, replication
    try:
        found: ItemModel = ChildTask(EXPLANATIONS, item_model.item_model, *arguments).wait()
        return found
    except BusyError:
        raise
    except UserError as error:
        return str(error)


@shared(number=256, seconds=600)
def _explain(
    _experiment: Experiment,
    run: str,  # noqa: ARG001
    label: str,
    step: int,
    replication: int,
) -> Why | str:
    """Return the explanation of a decision, or the reason why there is none.

    The run's hash is the key.
    """
    try:
        found: Why = ChildTask(EXPLANATIONS, why, _experiment, label, step, replication).wait()
        return found
    except BusyError:
        # the same question may be answered later
        raise
    except UserError as error:
        return str(error)


def _explain_formulas(experiment: Experiment) -> None:
    """Draw the formula and the parameters of each agent in a run, and the definitions of
    the plots.
    """
    simulator = experiment.simulator_class()
    st.markdown(
        "Each agent computes a score for each arm and chooses the arm with the highest score:"
    )
    for i, (label, agent) in enumerate(zip(experiment.labels, experiment.agents, strict=True)):
        cls = experiment.agent_class(i)
        with st.container(border=True):
            st.text(label)
            st.latex(cls.formula)
            parameters = []
            for name in _acting(agent, cls.formula):
                field = type(agent).model_fields[name]
                symbol = declaration(field)["symbol"]
                title = link_symbol(symbol, str(field.title))
                parameters.append(
                    f"- ${symbol}={getattr(agent, name):g}$, {title}: {field.description}"
                )
            doc = (cls.__doc__ or "").split("\n\n")[0]
            summary = re.sub(r",? \[\d+\]_", "", " ".join(doc.split()))
            st.caption("\n".join(parameters) or summary)
    st.markdown("Symbols:\n" + _symbols(experiment))
    plots = _PLOTS.format(
        rate=link("ctr", simulator.rate_title),
        noun=simulator.reward_noun,
        window=link("window", "the window"),
        regret=link("regret", "Cumulative regret"),
        pseudo=link("pseudo-regret", "pseudo-regret"),
        entropy=link("selection-entropy"),
        spectrum=link("eigenvalue-spectrum"),
        design=link("design-matrix", "the design matrix"),
        ridge=link("ridge", "the ridge penalty"),
        calibration=link("calibration"),
        interval=link("confidence-interval", "95 % confidence interval"),
    )
    st.markdown("Plots:\n" + plots)


def _acting(agent: AgentParams, formula: str) -> list[str]:
    """Name the parameters with a symbol that act, those of the formula first.

    The others are those that are shown at first or differ from their default, and the ridge
    penalty."""
    model, stated, others = type(agent), list[str](), list[str]()
    for name, field in model.model_fields.items():
        symbol, value = str(declaration(field)["symbol"] or ""), getattr(agent, name)
        if not symbol or value is None:
            continue
        # a letter alone may be an index of another symbol
        end = r"(?![A-Za-z])" if symbol[-1].isalpha() else ""
        alone = rf"(?<![A-Za-z\\_]){re.escape(symbol)}{end}"
        own = name in model.__annotations__ or len(symbol) > 1
        if own and re.search(alone, formula):
            stated.append(name)
        elif declaration(field)["basic"] or name == "ridge" or value != field.default:
            others.append(name)
    return stated + others


def _symbols(experiment: Experiment) -> str:
    lines = [
        f"$a$: {link('arm', 'arm')}. $x_a$: its {link('feature-map', 'features')} for this "
        f"visitor. $r$: {link('reward', 'reward')}. $n_a$: times arm $a$ was shown. $\\bar r_a$: "
        "its mean reward.",
        f"$A_a$: {link('design-matrix', 'design matrix')} of arm $a$. "
        "$\\hat\\theta_a=A_a^{-1}\\sum r\\,x$: estimated weights "
        f"({link('ridge', 'ridge regression')}). $\\sqrt{{x^\\top A^{{-1}}x}}$: "
        f"{link('confidence-width', 'confidence width')}. $\\tilde\\theta$: weights drawn from "
        f"the {link('posterior', 'posterior')}.",
    ]
    if any(isinstance(agent, LogisticParams) for agent in experiment.agents):
        lines.append(
            f"$\\mu$: click probability of a {link('logistic-model', 'logistic model')}, "
            "$1/(1+e^{-\\hat\\theta^\\top x})$. $H_a$: curvature of its log loss, in place of "
            "$A_a$."
        )
    if any(agent_class(agent).representation(agent) == "network" for agent in experiment.agents):
        lines.append(
            f"$f(x;\\,w)$: output of a {link('neural-bandit', 'network')} with weights $w$. "
            "$g_a=\\nabla_wf$: its gradient with respect to the weights. $\\sqrt{g^\\top "
            "A^{-1}g}$: confidence width. $z_a=\\phi(x_a;\\,w)$: last hidden layer, the input of "
            "a linear head with weights $\\theta$."
        )
    return "\n".join(f"- {line}" for line in lines)
