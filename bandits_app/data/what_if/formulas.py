"""The formulas of the estimators, behind a click."""

from __future__ import annotations

import streamlit as st

from bandits.offpolicy.estimators import REGISTRY
from bandits_app.glossary.terms import link

_TEXT = """
With the {weight} $w = \\pi_e(a \\mid x) / \\pi_b(a \\mid x)$ (probability under the {target},
divided by the {propensity}), reward $r$ and predicted reward $q$:

| Estimator | Name | Formula | In words |
|---|---|---|---|
{rows}

SLOPE++ chooses $c$, $\\tau$ and $\\lambda$. Clipped IPS, DM, Switch-DR and DR with shrinkage are biased, and
their own spread does not show it: they have the interval of IPS or DR, extended to the estimate.
"""

ANCHORS = {  # of abbreviations in the glossary
    "ips": "inverse-propensity-scoring", "snips": "self-normalised-inverse-propensity-scoring", "dm": "direct-method",
    "dr": "doubly-robust-estimation", "sndr": "doubly-robust-estimation",
}  # fmt: skip
_FORMULAS = {
    "dm": "$\\mathbb{E}[q(x, \\pi_e)]$",
    "ips": "$\\mathbb{E}[w r]$",
    "clipped_ips": "as IPS, with $\\min(w, c)$",
    "snips": "$\\mathbb{E}[w r] / \\mathbb{E}[w]$",
    "dr": "$\\mathbb{E}[q(x, \\pi_e) + w (r - q(x, a))]$",
    "sndr": "as DR, with $w / \\mathbb{E}[w]$",
    "switch_dr": "as DR, with $w$ only where $w \\le \\tau$",
    "dros": "as DR, with $\\lambda w / (w^2 + \\lambda)$",
    "replay": "mean of $r$ where the target chose $a$",
}


def explain() -> None:
    """Draw the formulas."""
    links = {
        "weight": link("importance-weight", "importance weight"), "target": link("target-policy", "target policy"),
        "propensity": link("propensity", "propensity"),
    }  # fmt: skip
    titles = {name: kind.title for name, kind in REGISTRY.items()}
    titles |= {name: link(anchor, titles[name]) for name, anchor in ANCHORS.items()}
    kinds = {name: f"{REGISTRY[name].name} | {text} | {REGISTRY[name].words}" for name, text in _FORMULAS.items()}
    rows = "\n".join(f"| {titles[name]} | {text} |" for name, text in kinds.items())
    st.markdown(_TEXT.format(rows=rows, **links))
