"""How it works: every formula, every symbol, for the run that is shown."""

from __future__ import annotations

import re

import streamlit as st

from bandits import Experiment
from bandits.agents import agent_class
from bandits.base.params import metadata

_PLOTS = r"""
- **{rate}**: $\dfrac{{C(t)-C(t-w)}}{{w}}$; $C(t)$: {noun} up to step $t$; $w$: the window.
- **Cumulative regret**: $\sum_{{s\le t}}\mu^*_s-\mu_s$; $\mu_s$: {noun} to be expected of what was shown, $\mu^*_s$: of the best choice; from the world's own truth, not from luck.
- **Selection entropy**: $-\sum_a p_a\log p_a\,/\,\log\min(K,w)$; $p_a$: how often arm $a$ was chosen in the window; $K$: number of arms.
- **Eigenvalue spectrum**: eigenvalues of $A=\lambda I+\sum x x^\top$; $x$: features of what was shown; $\lambda$: the ridge.
- **Calibration** (View): share of arms with $|\mu_a-\hat\mu_a|\le z\,\sigma_a$; $\hat\mu_a,\sigma_a$: mean and standard deviation that the agent chooses with (that of its draws, or $\alpha$ times its width); $z$: 0.67, 1.28, 1.96 for 50, 80, 95 %.
- **Bands**: $\bar y\pm t_{{n-1,\,0.975}}\,s/\sqrt n$; mean and 95 % interval over $n$ runs with standard deviation $s$.
"""  # noqa: E501 - formulas make long lines
_SYMBOLS = (
    "$a$: an arm (what can be shown). $x_a$: its features for this visitor. $A_a,\\ \\hat\\theta_a$: ridge regression, "
    "the evidence matrix and the estimated weights, $\\hat\\theta_a=A_a^{-1}\\sum r\\,x$ with reward $r$. "
    "$\\sqrt{x^\\top A^{-1}x}$: how uncertain the estimate is for these features. $\\tilde\\theta$: weights drawn at "
    "random from what is still plausible. $n_a$: times arm $a$ was shown; $\\bar r_a$: what it has earned per showing."
)
_OF_NETWORKS = (
    "$f(x;\\,w)$: what a network with weights $w$ says of features $x$. $g_a=\\nabla_wf$: how that changes with every "
    "weight; $\\sqrt{g^\\top A^{-1}g}$: how uncertain it is. $z_a=\\phi(x_a;\\,w)$: its last hidden layer, on which a "
    "linear model ($\\theta$, $\\omega$ or $\\beta$) stands."
)


def explain(experiment: Experiment) -> None:
    """Formulas of the agents in this run, their settings in words, and what the plots show."""
    world = experiment.simulator_class()
    st.markdown("Every agent gives each arm a score; the arm with the highest score is shown. The scores:")
    for i, (label, agent) in enumerate(zip(experiment.labels, experiment.agents, strict=True)):
        cls = experiment.agent_class(i)
        with st.container(border=True):
            st.text(label)
            st.latex(cls.formula)
            told = []
            for name, field in type(agent).model_fields.items():
                if symbol := metadata(field, "symbol"):
                    told.append(f"${symbol}={getattr(agent, name):g}$, {field.title}: {field.description}")
            st.caption(" ".join(told) or re.sub(r",? \[\d+\]_", "", (cls.__doc__ or "").split("\n")[0]))
    st.caption(_SYMBOLS)
    if any(agent_class(agent).representation(agent) == "network" for agent in experiment.agents):
        st.caption(_OF_NETWORKS)
    st.markdown("What the plots show:\n" + _PLOTS.format(rate=world.rate_title, noun=world.reward_noun))
