"""Rules on the design matrix: how much data there is in each direction of feature space."""

from __future__ import annotations

import math

import numpy as np

from bandits.agents import AgentParams, agent_class
from bandits.base.formatting import number, percent
from bandits.diagnostics import curves
from bandits.diagnostics.finding import (
    FORGETTING,
    NO_DESIGN_MATRIX,
    TOO_FEW_SNAPSHOTS,
    Finding,
    Verdict,
    at_least,
    at_most,
)
from bandits.diagnostics.references import LinearityCheck
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.metrics import Band

# largest eigenvalue relative to the prior's, minus 1: below, a model has hardly any data
MIN_INFORMATION = 1.0
# of standard deviations, best explored direction to least explored
MAX_RATIO = 30.0


def smallest_eigenvalue(history: History, params: AgentParams) -> Finding:
    """Grade the growth of λ_min by its exponent over the second half of the run.

    Optimal exploration in a linear bandit makes it grow about like √t [1]_.

    References
    ----------
    .. [1] Banerjee, Ghosh, Chowdhury, Gopalan (2023), Exploration in linear bandits with rich
       action sets and its implications for inference.
    """
    title = "Smallest eigenvalue"
    healthy = (
        "The smallest eigenvalue of the design matrix A grows roughly like √t, and no slower than "
        "log t."
    )
    band = metrics.smallest_eigenvalue(history)
    if band is None or not np.isfinite(band.mid).all():
        return Finding(title, healthy, "none", NO_DESIGN_MATRIX)
    if agent_class(params).forgets(params):
        return Finding(title, healthy, "none", FORGETTING)
    exponent = _exponent(band)
    if exponent is None:
        return Finding(title, healthy, "none", TOO_FEW_SNAPSHOTS)
    of_log = _exponent(band._replace(mid=np.log(np.maximum(band.x, 2)))) or 0.0
    verdict = at_least(exponent, healthy=0.4, watch=of_log / 2)
    growth = {"healthy": "grows", "watch": "grows slowly", "alarm": "has stopped growing"}[verdict]
    text = (
        f"It is {number(band.mid[-1])} at step {band.x[-1]:,.0f} and {growth}: recent growth "
        "exponent "
    )
    text += f"{number(round(exponent, 2))} (√t: 0.5; log t: {number(round(of_log, 2))})."
    return Finding(title, healthy, verdict, text)


def root_condition_limit(
    params: AgentParams, linearity: LinearityCheck | None
) -> tuple[float, float]:
    """Return the largest healthy ratio of standard deviations, and that of uniformly random choices
    (0: unknown).

    Random choices are comparable only where one model reads the features themselves.
    """
    agent = agent_class(params)
    comparable = agent.representation(params) == "features" and agent.spans_arms(params) is False
    known = comparable and linearity is not None and math.isfinite(linearity.condition)
    random = math.sqrt(linearity.condition) if known and linearity is not None else 0.0
    return max(MAX_RATIO, 3 * random), random


def condition_number(
    history: History, params: AgentParams, linearity: LinearityCheck | None
) -> Finding:
    """Grade the root of the condition number, a ratio of standard deviations."""
    title = "Condition number"
    band = curves.root_condition_number(history)
    limit, random = root_condition_limit(params, linearity)
    healthy = (
        f"The best explored direction is known at most {number(limit)} times as well as the least "
        "explored one "
    )
    healthy += "(ratio of standard deviations, √(λ max / λ min))"
    healthy += ", three times the ratio of uniformly random choices." if limit > MAX_RATIO else "."
    if band is None or not np.isfinite(band.mid[-1:]).all():
        return Finding(title, healthy, "none", NO_DESIGN_MATRIX)
    if (text := _without_data(history, params)) is not None:
        return Finding(title, healthy, "none", text)
    ratio = float(band.mid[-1])
    times = (
        "All directions are known equally well"
        if number(ratio) == "1"
        else f"{number(ratio)} times as well"
    )
    reference = f" (uniformly random choices: {number(random)} times)" if random else ""
    verdict = at_most(ratio, healthy=limit, watch=10 * limit)
    return Finding(title, healthy, verdict, f"{times} at step {band.x[-1]:,.0f}{reference}.")


def _without_data(history: History, params: AgentParams) -> str | None:
    """State that at least half of the models are still the prior, whose condition number is 1.

    None otherwise.
    """
    ridge = agent_class(params).prior_precision(params)
    if ridge is None or agent_class(params).forgets(params):
        return None
    largest = np.nanmax(history.spectra[-1].eigenvalues[history.alive], axis=2)  # (R, M)
    share = float((largest <= ridge * (1 + MIN_INFORMATION)).mean()) if largest.size else 0.0
    if share < 0.5:
        return None
    if largest.shape[1] == 1:
        return "The design matrix has hardly any data and is still that of the prior."
    return (
        f"{percent(share)} of the models have hardly any data, and the condition number of the "
        "prior is 1."
    )


def effective_dimension(history: History, params: AgentParams) -> Finding:
    """Grade the share of directions that are determined by data."""
    title = "Effective dimension"
    healthy = (
        "At least nine tenths of all directions are determined by data rather than by the prior."
    )
    band = curves.effective_dimension(history, params)
    if band is None or not np.isfinite(band.mid[-1:]).all():
        return Finding(title, healthy, "none", NO_DESIGN_MATRIX)
    if agent_class(params).forgets(params):
        return Finding(title, healthy, "none", FORGETTING)
    n_directions = int((~np.isnan(history.spectra[-1].eigenvalues)).sum(axis=2).max())
    verdict: Verdict = at_least(band.mid[-1] / n_directions, healthy=0.9, watch=0.5)
    text = f"{number(band.mid[-1])} of {n_directions} directions at step {band.x[-1]:,.0f}."
    return Finding(title, healthy, verdict, text)


def _exponent(band: Band) -> float | None:
    """Slope of log y on log t over the second half of the steps, by least squares.

    None from under four points.
    """
    late = (band.x >= band.x[-1] / 2) & (band.mid > 0)
    if late.sum() < 4:
        return None
    return float(np.polyfit(np.log(band.x[late]), np.log(band.mid[late]), 1)[0])
