"""Figures of an evaluation: the estimates, and the importance weights they rest on."""

from __future__ import annotations

import numpy as np

from bandits.base.formatting import listed, percent
from bandits.results.figures.style import REFERENCE, Spec, log_ticks

from .estimators import REGISTRY
from .evaluation import Evaluation
from .weights import LEAST

MAIN_COLOR, OTHER_COLOR, TRUTH_COLOR = "#D55E00", "#56B4E9", "#009E73"  # of the palette of Okabe and Ito
WEIGHT_COLORS = "#0072B2", "#D55E00"


def forest(found: Evaluation) -> Spec:
    """Draw each estimate with its interval; lines mark the logging policy's mean reward and the truth."""
    names = list(found.estimates)
    data = []
    for main in (True, False):
        places = [i for i, name in enumerate(names) if (name == found.main) is main]
        if not places:
            continue
        values = np.array([found.estimates[names[i]][:3] for i in places])
        color = MAIN_COLOR if main else OTHER_COLOR
        data.append(
            {
                "type": "scatter", "mode": "markers",
                "name": "used in the conclusion" if main else "other estimators",
                "x": values[:, 0], "y": np.array(places, float),
                "marker": {"color": color, "size": 11 if main else 8},
                "error_x": {"type": "data", "symmetric": False, "array": values[:, 2] - values[:, 0],
                            "arrayminus": values[:, 0] - values[:, 1], "color": color, "thickness": 2 if main else 1.2},
                "text": [_text(found, names[i]) for i in places],
                "hovertemplate": "%{text}<extra></extra>",
            }
        )  # fmt: skip
    data.append(_line("logging policy", found.logged, len(names), {"color": REFERENCE, "dash": "dot", "width": 1.5}))
    if found.truth is not None:
        data.append(_line("true value", found.truth.value, len(names), {"color": TRUTH_COLOR, "width": 2}))
    layout: Spec = {
        "title": {"text": "Estimated value"},
        "meta": {
            "note": f"Mean reward per decision under the target policy by each estimator, with {percent(found.level)} "
            f"confidence intervals; the conclusion uses {REGISTRY[found.main].title}. Lines: what the logging policy "
            "earned" + (", and the true value, which the simulator knows. " if found.truth else ". ")
            + "Estimates differ by chance, and where large weights are replaced by predicted rewards "
            f"({listed(e.title for e in REGISTRY.values() if e.reference == 'dr')}) also by bias: these have the "
            "intervals of DR, extended to the estimate.",
            "caption": f"Mean reward per decision, {percent(found.level)} confidence intervals",
        },
        "xaxis": {"title": {"text": "mean reward per decision"}, "hoverformat": ".4~r", "range": _range(found)},
        "yaxis": {
            "tickvals": list(range(len(names))), "ticktext": [REGISTRY[name].title for name in names],
            "automargin": True, "range": [len(names) - 0.5, -0.5], "showgrid": False, "zeroline": False,
        },
        "showlegend": True,
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _range(found: Evaluation) -> list[float]:
    """Return ends between which all intervals and lines lie with some space around them."""
    ends = [x for e in found.estimates.values() for x in e[:3]] + [found.logged]
    ends += [] if found.truth is None else [found.truth.value]
    low, high = (f(x for x in ends if np.isfinite(x)) for f in (min, max))
    space = 0.06 * (high - low) or 0.5
    return [low - space, high + space]


def _line(name: str, value: float, rows: int, look: Spec) -> Spec:
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": np.array([value, value]),
        "y": np.array([-0.5, rows - 0.5]), "line": look, "hovertemplate": f"%{{x:.4~r}}<extra>{name}</extra>",
    }  # fmt: skip


def _text(found: Evaluation, name: str) -> str:
    e = found.estimates[name]
    title, full, words = REGISTRY[name].title, REGISTRY[name].name, REGISTRY[name].words
    return f"{title}, {full}:<br>{e.value:.4g} ({e.low:.4g} to {e.high:.4g})<br>{words}"


def weights(found: Evaluation) -> Spec | None:
    """Draw how decisions and the sum of weights are spread over importance weights; None without propensities."""
    bins = found.weights
    if bins is None or not len(bins.edges):
        return None
    edges, data = np.asarray(bins.edges), []
    shares = {"decisions": (bins.decisions, WEIGHT_COLORS[0]), "sum of weights": (bins.weight, WEIGHT_COLORS[1])}
    for name, (share, color) in shares.items():
        data.append(
            {
                "type": "scatter", "mode": "lines", "name": f"share of {name}", "x": edges,
                "y": np.append(np.asarray(share), 0.0), "line": {"color": color, "shape": "hv", "width": 1.8},
                "hovertemplate": f"weight from %{{x:.3~r}}: %{{y:.1%}} of {name}<extra></extra>",
            }
        )  # fmt: skip
    layout: Spec = {
        "title": {"text": "Importance weights"},
        "meta": {
            "note": "How the decisions, and the sum of their weights, are spread over importance weights w "
            f"(probability under the target / propensity). {percent(bins.zero, 1)} of the decisions have the weight 0: "
            "the target would not have chosen what was shown. Where few decisions have most of the weight, intervals "
            "are wide. "
            f"Weights below {LEAST} stand at the left end.",
            "caption": f"Weight 0: {percent(bins.zero, 1)} of the decisions",
        },
        "xaxis": {"title": {"text": "importance weight"}, "type": "log", "hoverformat": ".3~r",
                  **log_ticks([edges])},
        "yaxis": {"title": {"text": "share"}, "tickformat": ".0%", "rangemode": "tozero"},
        "showlegend": True,
    }  # fmt: skip
    return {"data": data, "layout": layout}
