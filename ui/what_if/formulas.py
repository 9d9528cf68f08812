"""The formulas of the estimators, behind a click."""

from __future__ import annotations

import streamlit as st

from ui.glossary.terms import link

_TEXT = """
With the {weight} $w = \\pi_e(a \\mid x) / \\pi_b(a \\mid x)$ (probability under the {target},
divided by the {propensity}), reward $r$ and predicted reward $q$:

| Estimator | Formula | In words |
|---|---|---|
| DM | $\\mathbb{{E}}[q(x, \\pi_e)]$ | predicted rewards of what the target would choose |
| {ips} | $\\mathbb{{E}}[w r]$ | observed rewards, weighted; unbiased where the log supports the target |
| SNIPS | $\\mathbb{{E}}[w r] / \\mathbb{{E}}[w]$ | IPS, divided by the mean weight: less variance |
| {dr} | $\\mathbb{{E}}[q(x, \\pi_e) + w (r - q(x, a))]$ | predicted rewards, corrected by observed ones |
| SNDR | as DR, with $w / \\mathbb{{E}}[w]$ | less variance |
| Switch-DR | as DR, with $w$ only where $w \\le \\tau$ | large weights are left to the prediction |
| DR with shrinkage | as DR, with $\\lambda w / (w^2 + \\lambda)$ | large weights are shrunk |
| Replay | mean of $r$ where the target chose $a$ | for uniformly random logs |

SLOPE++ chooses $\\tau$ and $\\lambda$. Clipped IPS, DM, Switch-DR and DR with shrinkage are biased; their intervals are
extended to hold those of IPS or DR.
"""


def explain() -> None:
    """Draw the formulas."""
    links = {
        "weight": link("importance-weight", "importance weight"), "target": link("target-policy", "target policy"),
        "propensity": link("propensity", "propensity"), "ips": link("inverse-propensity-scoring", "IPS"),
        "dr": link("doubly-robust-estimation", "DR"),
    }  # fmt: skip
    st.markdown(_TEXT.format(**links))
