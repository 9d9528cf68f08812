"""The formulas of the estimators, behind a click."""

from __future__ import annotations

import streamlit as st

from bandits.base.formatting import listed
from bandits.offpolicy.estimators import REGISTRY
from bandits_app.glossary import link

_TEXT = """
With the {weight} $w = \\pi_e(a \\mid x) / \\pi_b(a \\mid x)$ (probability under the {target},
divided by the {propensity}), reward $r$ and predicted reward $q$:

| Estimator | Name | Formula | In words |
|---|---|---|---|
{rows}

SLOPE++ chooses the parameter of {tuned}. {biased} are biased, and
their own spread does not show it: they have the interval of {references}, extended to the estimate.
"""

# of abbreviations in the glossary
ANCHORS = {
    "ips": "inverse-propensity-scoring",
    "snips": "self-normalised-inverse-propensity-scoring",
    "dm": "direct-method",
    "dr": "doubly-robust-estimation",
    "sndr": "doubly-robust-estimation",
}


def explain() -> None:
    """Draw the formulas."""
    titles = {name: e.title for name, e in REGISTRY.items()}
    linked = titles | {name: link(anchor, titles[name]) for name, anchor in ANCHORS.items()}
    biased = [e for e in REGISTRY.values() if e.reference]
    st.markdown(
        _TEXT.format(
            weight=link("importance-weight", "importance weight"),
            target=link("target-policy", "target policy"),
            propensity=link("propensity", "propensity"),
            rows="\n".join(f"| {linked[name]} | {e.name} | {e.formula} | {e.words} |" for name, e in REGISTRY.items()),
            tuned=listed(e.title for e in REGISTRY.values() if e.tuned),
            biased=listed(e.title for e in biased),
            references=listed(dict.fromkeys(titles[e.reference] for e in biased), "or"),
        )
    )
