"""Figures of an evaluation: the estimates, and the importance weights they rest on."""

from __future__ import annotations

import numpy as np

from bandits.base.formatting import count, listed, percent
from bandits.results.figures.parts import axis, drawing, error_bars, line, points
from bandits.results.figures.style import REFERENCE, Spec, log_ticks

from .estimators import REGISTRY
from .evaluation import ALL, Evaluation
from .support import MIN_ESS, MIN_ESS_SHARE
from .weight_histogram import LEAST

# of the palette of Okabe and Ito
MAIN_COLOR, OTHER_COLOR, TRUTH_COLOR = "#D55E00", "#56B4E9", "#009E73"
WEIGHT_COLORS = "#0072B2", "#D55E00"


def forest(found: Evaluation) -> Spec:
    """Draw each estimate with its interval.

    Lines mark the logging policy's mean reward and the truth.
    """
    names = list(found.estimates)
    data = []
    for main in (True, False):
        places = [i for i, name in enumerate(names) if (name == found.main) is main]
        if not places:
            continue
        values = np.array([found.estimates[names[i]][:3] for i in places])
        color = MAIN_COLOR if main else OTHER_COLOR
        bars = {}
        if found.has_intervals:
            bars["error_x"] = error_bars(
                values[:, 2] - values[:, 0],
                color,
                below=values[:, 0] - values[:, 1],
                thickness=2 if main else 1.2,
            )
        hover = {
            "text": [_text(found, names[i]) for i in places],
            "hovertemplate": "%{text}<extra></extra>",
        }
        name, y = "used in the conclusion" if main else "other estimators", np.array(places, float)
        data.append(points(name, values[:, 0], y, color, size=11 if main else 8, **bars, **hover))
    marks = [("logging policy", found.logged, REFERENCE, "dot")]
    if found.truth is not None:
        marks.append(("true value", found.truth.value, TRUTH_COLOR, "solid"))
    ends = np.array([-0.5, len(names) - 0.5])
    for name, value, color, dash in marks:
        template = f"%{{x:.4~r}}<extra>{name}</extra>"
        data.append(
            line(
                name,
                np.array([value, value]),
                ends,
                color,
                dash=dash,
                width=1.8,
                hovertemplate=template,
            )
        )
    return drawing(
        data,
        "Estimated value",
        x=axis(f"mean reward per {found.unit}", hoverformat=".4~r", range=_range(found)),
        y={
            "tickvals": list(range(len(names))),
            "ticktext": [ALL[name].title for name in names],
            "automargin": True,
            "range": [len(names) - 0.5, -0.5],
            "showgrid": False,
            "zeroline": False,
        },
        note=(
            f"Mean reward per {found.unit} under the target policy by each estimator, "
            f"{_with(found)}; the conclusion uses {ALL[found.main].title}. Lines: what the logging "
            "policy earned"
        )
        + (", and the true value, which the simulator knows. " if found.truth else ". ")
        + (
            ""
            if not found.has_intervals
            else "Estimates differ by chance, and where large weights are replaced by predicted "
            f"rewards ({listed(e.title for e in REGISTRY.values() if e.reference == 'dr')}) also "
            "by bias: these have the intervals of DR, extended to the estimate."
            if found.unit == "decision"
            else "Intervals are over visits."
        ),
        caption=f"Mean reward per {found.unit}, {_with(found)}",
        legend=True,
    )


def _range(found: Evaluation) -> list[float]:
    """Return ends between which all intervals and lines lie with some space around them."""
    shown = 3 if found.has_intervals else 1
    ends = [x for e in found.estimates.values() for x in e[:shown]] + [found.logged]
    ends += [] if found.truth is None else [found.truth.value]
    low, high = (f(x for x in ends if np.isfinite(x)) for f in (min, max))
    space = 0.06 * (high - low) or 0.5
    return [low - space, high + space]


def _text(found: Evaluation, name: str) -> str:
    e = found.estimates[name]
    title, full, words = ALL[name].title, ALL[name].name, ALL[name].words
    ends = f" ({e.low:.4g} to {e.high:.4g})" if found.has_intervals else ""
    return f"{title}, {full}:<br>{e.value:.4g}{ends}<br>{words}"


def _with(found: Evaluation) -> str:
    return (
        f"with {percent(found.level)} confidence intervals"
        if found.has_intervals
        else f"without intervals (too few {found.unit}s)"
    )


def weights(found: Evaluation) -> Spec | None:
    """Draw how decisions and the sum of weights are spread over importance weights.

    None without propensities.
    """
    bins = found.weights
    if bins is None or not len(bins.edges):
        return None
    edges, data = np.asarray(bins.edges), []
    shares = {
        f"{found.unit}s": (bins.decisions, WEIGHT_COLORS[0]),
        "sum of weights": (bins.weight, WEIGHT_COLORS[1]),
    }
    for name, (share, color) in shares.items():
        hover = f"weight from %{{x:.3~r}}: %{{y:.1%}} of {name}<extra></extra>"
        look = {"color": color, "shape": "hv", "width": 1.8}
        drawn = line(
            f"share of {name}", edges, np.append(np.asarray(share), 0.0), color, hovertemplate=hover
        )
        data.append({**drawn, "line": look})
    return drawing(
        data,
        "Importance weights",
        x=axis("importance weight", type="log", hoverformat=".3~r", **log_ticks([edges])),
        y=axis("share", tickformat=".0%", rangemode="tozero"),
        note=(
            f"How the {found.unit}s, and the sum of their weights, are spread over importance "
            f"weights w (probability under the target / propensity"
            f"{'' if found.unit == 'decision' else ', multiplied over the steps of a visit'}). "
            f"{percent(bins.zero, 1)} of the {found.unit}s have the weight 0: the target would "
            f"not have chosen what was shown. Where few {found.unit}s have most of the weight, "
            f"intervals are wide. Weights below {LEAST} "
            "stand at the left end."
        ),
        caption=f"Weight 0: {percent(bins.zero, 1)} of the {found.unit}s",
        legend=True,
    )


def lengths(found: Evaluation) -> Spec | None:
    """Draw the effective number of visits by the step of a visit; None where values are per
    decision.
    """
    if not found.ess_by_length:
        return None
    ess = np.asarray(found.ess_by_length)
    steps = np.arange(1, 1 + len(ess))
    required = max(MIN_ESS, MIN_ESS_SHARE * found.n)
    hover = "step %{x}: %{y:,.0f} visits<extra></extra>"
    data = [
        line("effective sample size", steps, ess, WEIGHT_COLORS[0], hovertemplate=hover),
        line(
            "required",
            np.array([1, len(ess)]),
            np.array([required, required]),
            REFERENCE,
            dash="dot",
            hovertemplate="at least %{y:,.0f} are required<extra></extra>",
        ),
    ]
    return drawing(
        data,
        "Effective sample size by length",
        x=axis("step of the visit", rangemode="tozero"),
        y=axis("effective visits", type="log", **log_ticks([ess, np.array([required])])),
        note=(
            f"How many of the {count(found.n)} visits the weights up to each step are worth, "
            "(sum w)² / sum w². A weight is a product over the steps of a visit so far: every "
            "step spreads the weights further, and few visits carry all of the sum."
        ),
        caption=f"Of {count(found.n)} visits, up to each step",
        legend=True,
    )
