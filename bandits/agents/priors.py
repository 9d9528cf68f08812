"""What a model knows of an arm before the arm's first click, as parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bandits.base.params import param
from bandits.base.types import IntArray, SimulatorAccess, SimulatorSpec

ESTIMATED = ("category", "pooled")  # priors that other arms estimate


def prior_param() -> Any:
    """Declare the prior of models per arm."""
    return param(
        "zero", title="Prior", structural=True, later=True,
        help="Where the weights of an arm start. zero: at 0. category: at the mean of the models of the same category, "
        "with their covariance (empirical Bayes). pooled: at the weights of one model shared by all arms. given: as if "
        "the arm had been shown before, with the prior clicks and misses.",
    )  # fmt: skip


def clicks_param() -> Any:
    """Declare the clicks of every arm before any data."""
    return param(
        1.0, title="Prior clicks", symbol="a", ge=0.01, le=1000, later=True,
        help="Clicks that each arm has before any data (prior given), spread evenly over the visitors of the first 100 "
        "steps. Larger values start from a higher CTR; with 0.1 to 10 data soon outweigh it. The ridge pulls the first "
        "estimate towards 0 (linear) or 1/2 (logistic).",
    )  # fmt: skip


def misses_param() -> Any:
    """Declare the exposures without a click of every arm before any data."""
    return param(
        1.0, title="Prior misses", symbol="b", ge=0.01, le=1000, later=True,
        help="Exposures without a click that each arm has before any data (prior given). Larger values start from a "
        "lower CTR and a narrower confidence width; usually 1 to 50.",
    )  # fmt: skip


def idle_prior(values: Mapping[str, Any]) -> frozenset[str]:
    """Name the parameters that do nothing with this prior."""
    prior = values.get("prior", "zero")
    given = frozenset() if prior == "given" else frozenset({"prior_clicks", "prior_misses"})
    return given | (frozenset() if prior in ESTIMATED else frozenset({"prior_every"}))


def every_param() -> Any:
    """Declare the interval between two estimates of a prior."""
    return param(
        500, title="Prior interval", symbol="m", unit="steps", ge=1, le=1_000_000, typical=(50, 2000), structural=True,
        later=True,
        help="Number of steps between two estimates of the prior (category, pooled). Larger values are faster and "
        "follow later; usually 100 to 1,000.",
    )  # fmt: skip


def check_prior(kind: str, values: Mapping[str, Any], fixed: str = "zero") -> None:
    """Check that the models are one per arm and forget nothing, where their prior is not the ``fixed`` one.

    Raises
    ------
    ValueError
    """
    prior = values["prior"]
    if prior == fixed:
        return
    if values.get("sharing", "per_arm") != "per_arm":
        raise ValueError(f"{kind}: prior {prior} needs sharing per_arm, not {values['sharing']}")
    if values["gamma"] < 1 or values["window"] is not None:
        raise ValueError(f"{kind}: prior {prior} needs gamma 1 and no window")
    if values.get("covariance", "full") != "full":
        raise ValueError(f"{kind}: prior {prior} needs covariance full, not {values['covariance']}")


def closest_prior(values: dict[str, Any], fixed: str = "zero") -> dict[str, Any]:
    """Return parameters that are valid together: with the ``fixed`` prior where the models cannot have one."""
    other = values.get("gamma", 1.0) < 1 or values.get("window") is not None or values.get("noise") == "inverse_gamma"
    other = other or values.get("covariance", "full") != "full"
    if values.get("prior", fixed) != fixed and (other or values.get("sharing", "per_arm") != "per_arm"):
        return {**values, "prior": fixed}
    return values


def groups_of(prior: str, rows: int, spec: SimulatorSpec, access: SimulatorAccess) -> IntArray:
    """Return the group of every arm, int64 (R, n_items): its category, or 0 for all."""
    return access.categories() if prior == "category" else np.zeros((rows, spec.n_items), np.int64)
