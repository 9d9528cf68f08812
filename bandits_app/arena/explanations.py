"""Explain the formulas and symbols of a run."""

from __future__ import annotations

import re

import streamlit as st

from bandits import Experiment
from bandits.agents import agent_class
from bandits.agents.logistic.base import LogisticParams
from bandits.base.params import declaration
from bandits_app.glossary import link, link_symbol

_PLOTS = r"""
- {rate}: $\dfrac{{C(t)-C(t-w)}}{{w}}$; $C(t)$: {noun} up to step $t$; $w$: {window}.
- {regret}: $\sum_{{s\le t}}(\mu^*_s-\mu_s)$; $\mu_s$: expected {noun} of the choice at step $s$; $\mu^*_s$: of the best choice. Both are true expectations ({pseudo}), without noise.
- {entropy}: $-\sum_a p_a\log p_a\,/\,\log\min(K,w)$; $p_a$: share of the window in which arm $a$ was chosen; $K$: number of arms.
- {spectrum}: eigenvalues of {design} $A=\lambda I+\sum x x^\top$; $x$: features of what was shown; $\lambda$: {ridge}.
- {calibration} (under View): share of arms with $|\mu_a-\hat\mu_a|\le z\,\sigma_a$; $\hat\mu_a$: estimated mean; $\sigma_a$: standard deviation of the posterior draws, or $\alpha$ times the confidence width; $z$: 0.67, 1.28 or 1.96 for 50, 80 or 95 %.
- {interval} (bands): $\bar y\pm t_{{n-1,\,0.975}}\,s/\sqrt n$; mean and standard deviation over $n$ replications.
"""  # noqa: E501 - formulas make long lines


def explain(experiment: Experiment) -> None:
    """Draw the formula and the parameters of each agent in a run, and the definitions of the plots."""
    simulator = experiment.simulator_class()
    st.markdown("Each agent computes a score for each arm and chooses the arm with the highest score:")
    for i, (label, agent) in enumerate(zip(experiment.labels, experiment.agents, strict=True)):
        cls = experiment.agent_class(i)
        with st.container(border=True):
            st.text(label)
            st.latex(cls.formula)
            parameters = []
            for name, field in type(agent).model_fields.items():
                if symbol := declaration(field)["symbol"]:
                    title = link_symbol(symbol, str(field.title))
                    parameters.append(f"- ${symbol}={getattr(agent, name):g}$, {title}: {field.description}")
            summary = re.sub(r",? \[\d+\]_", "", (cls.__doc__ or "").split("\n")[0])
            st.caption("\n".join(parameters) or summary)
    st.markdown("Symbols:\n" + _symbols(experiment))
    plots = _PLOTS.format(
        rate=link("ctr", simulator.rate_title), noun=simulator.reward_noun, window=link("window", "the window"),
        regret=link("regret", "Cumulative regret"), pseudo=link("pseudo-regret", "pseudo-regret"),
        entropy=link("selection-entropy"), spectrum=link("eigenvalue-spectrum"),
        design=link("design-matrix", "the design matrix"), ridge=link("ridge", "the ridge penalty"),
        calibration=link("calibration"), interval=link("confidence-interval", "95 % confidence interval"),
    )  # fmt: skip
    st.markdown("Plots:\n" + plots)


def _symbols(experiment: Experiment) -> str:
    """List the symbols of the formulas, linked to the glossary."""
    lines = [
        f"$a$: {link('arm', 'arm')}. $x_a$: its {link('feature-map', 'features')} for this visitor. $r$: "
        f"{link('reward', 'reward')}. $n_a$: times arm $a$ was shown. $\\bar r_a$: its mean reward.",
        f"$A_a$: {link('design-matrix', 'design matrix')} of arm $a$. $\\hat\\theta_a=A_a^{{-1}}\\sum r\\,x$: "
        f"estimated weights ({link('ridge', 'ridge regression')}). $\\sqrt{{x^\\top A^{{-1}}x}}$: "
        f"{link('confidence-width', 'confidence width')}. $\\tilde\\theta$: weights drawn from the "
        f"{link('posterior', 'posterior')}.",
    ]
    if any(isinstance(agent, LogisticParams) for agent in experiment.agents):
        lines.append(
            f"$\\mu$: click probability of a {link('logistic-model', 'logistic model')}, "
            "$1/(1+e^{-\\hat\\theta^\\top x})$. $H_a$: curvature of its log loss, in place of $A_a$."
        )
    if any(agent_class(agent).representation(agent) == "network" for agent in experiment.agents):
        lines.append(
            f"$f(x;\\,w)$: output of a {link('neural-bandit', 'network')} with weights $w$. $g_a=\\nabla_wf$: its "
            "gradient with respect to the weights. $\\sqrt{g^\\top A^{-1}g}$: confidence width. $z_a=\\phi(x_a;\\,w)$: "
            "last hidden layer, the input of a linear head with weights $\\theta$, $\\omega$ or $\\beta$."
        )
    return "\n".join(f"- {line}" for line in lines)
