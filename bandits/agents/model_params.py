"""Parameters that several agents share: bonus, ridge, noise, how models forget, and what they know
at first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import model_validator

from bandits.base.params import param
from bandits.base.types import IntArray, SimulatorAccess, SimulatorSpec

from .params import LearnerParams

# priors that other arms estimate
ESTIMATED = ("category", "pooled")


def bonus_param(
    default: float,
    *,
    symbol: str = r"\alpha",
    width: str = "confidence width",
    usual: tuple[float, float] = (0.1, 2),
    basic: bool = True,
) -> Any:
    """Declare the factor of the ``width`` that a score adds to its mean."""
    return param(
        default,
        title="Exploration bonus",
        symbol=symbol,
        ge=0,
        le=10,
        typical=(0, 4),
        basic=basic,
        usual=usual,
        help=(
            f"Exploration coefficient: multiplies the {width} to give the exploration bonus. "
            f"Larger values explore more; usually {usual[0]:g} to {usual[1]:g}; 0 never explores."
        ),
        sweep=(0.03, 4),
    )


def ridge_param(default: float, effect: str, *, title: str = "Ridge", **more: Any) -> Any:
    """Declare the ridge penalty of a linear model.

    The ``effect`` of larger values is what they do besides.
    """
    return param(
        default,
        title=title,
        symbol=r"\lambda",
        ge=1e-6,
        le=1e4,
        typical=(0.01, 100),
        log=True,
        help=(
            "Prior precision of the weights (ridge penalty). Larger values shrink the weights "
            f"more strongly and {effect}."
        ),
        **more,
    )


def noise_variance_param(
    default: float,
    help: str = "Variance of the reward noise that the model assumes.",
    *,
    title: str = "Noise variance",
    usual: tuple[float, float] = (0.01, 2),
) -> Any:
    """Declare the factor of the posterior variance from which samples are drawn."""
    return param(
        default,
        title=title,
        symbol=r"\sigma^2",
        ge=0,
        le=100,
        typical=(0, 2),
        basic=True,
        log=True,
        usual=usual,
        help=f"{help} Larger values explore more; usually {usual[0]:g} to {usual[1]:g}.",
        sweep=(0.001, 2),
    )


def noise_model_param(*, later: bool = False) -> Any:
    """Declare whether the noise variance is given or estimated."""
    return param(
        "fixed",
        title="Noise model",
        structural=True,
        later=later,
        help=(
            "fixed: a given noise variance. inverse_gamma: a noise variance per model, estimated "
            "from its residuals."
        ),
    )


def noise_shape_param(*, later: bool = False) -> Any:
    """Declare the shape of the prior of an estimated noise variance."""
    return param(
        6.0,
        title="Prior shape",
        symbol="a_0",
        gt=0,
        le=1000,
        typical=(1, 20),
        later=later,
        help=(
            "Shape of the inverse-gamma prior (noise inverse_gamma): half the number of "
            "observations that the prior counts as. Larger values weight the prior more; usually "
            "1 to 20."
        ),
    )


def noise_scale_param(*, later: bool = False) -> Any:
    """Declare the scale of the prior of an estimated noise variance."""
    return param(
        6.0,
        title="Prior scale",
        symbol="b_0",
        gt=0,
        le=1000,
        typical=(0.1, 20),
        later=later,
        help=(
            "Scale of the inverse-gamma prior (noise inverse_gamma): half the sum of squared "
            "errors that the prior counts as. Larger values expect more noise and explore more; "
            "usually 0.1 to 20."
        ),
    )


def gamma_param(*, later: bool = True) -> Any:
    """Declare the discount factor; ``later``: added after the first release of its class."""
    return param(
        1.0,
        title="Discount factor",
        symbol=r"\gamma",
        gt=0,
        le=1,
        typical=(0.99, 1),
        later=later,
        help=(
            "Discount factor for past observations: one that is k steps old has weight γ to the "
            "power k. Larger values forget more slowly; usually 0.99 to 1 (no forgetting). For U "
            "changes in T steps, theory recommends 1 − √(U/T)/4."
        ),
    )


def epsilon_param(default: float = 0.05, *, noun: str = "arm") -> Any:
    """Declare the probability of a random choice."""
    return param(
        default,
        title="Exploration rate",
        symbol=r"\varepsilon",
        ge=0,
        le=1,
        basic=True,
        usual=(0.01, 0.2),
        help=(
            f"Probability of choosing a random {noun}. Larger values explore more; usually 0.01 "
            "to 0.2."
        ),
        sweep=(0.005, 0.5),
    )


def decay_param(symbol: str) -> Any:
    """Declare how fast the exploration parameter ``symbol`` falls."""
    return param(
        0.0,
        title="Decay rate",
        symbol=r"\delta",
        ge=0,
        le=1,
        typical=(0, 0.01),
        unit="per step",
        help=(
            f"Decay rate of {symbol}: at step t it is {symbol} / (1 + δ t). Larger values stop "
            "exploring sooner; usually 0 to 0.01."
        ),
        sweep=(0.0001, 0.01),
    )


def window_param(*, later: bool = True) -> Any:
    """Declare the sliding window."""
    return param(
        None,
        title="Sliding window",
        unit="steps",
        empty="all steps",
        ge=1,
        le=1_000_000,
        structural=True,
        later=later,
        help=(
            "Number of most recent steps that the models are fitted to. Larger values forget "
            "more slowly; usual are 500 to 10,000; empty means all steps."
        ),
    )


class ForgettingParams(LearnerParams):
    """Parameters of models that can forget.

    A subclass declares ``gamma`` and ``window`` where its forms show them.
    """

    if TYPE_CHECKING:
        gamma: float
        window: int | None

    @property
    def forgets(self) -> bool:
        """Whether old observations lose their weight."""
        return self.gamma < 1 or self.window is not None

    def mode(self) -> str:
        return "discounted" if self.gamma < 1 else ""

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        both = values.get("gamma", 1.0) < 1 and values.get("window") is not None
        return {**values, "window": None} if both else dict(values)

    @model_validator(mode="after")
    def _one_way_to_forget(self) -> Self:
        if self.gamma < 1 and self.window is not None:
            raise ValueError(f"{self.kind}: choose gamma below 1 or a window, not both")
        return self


class ModelParams(ForgettingParams):
    """Parameters of models that can have a prior.

    A subclass declares ``prior`` and what belongs to it.
    """

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:
        return super().idle(values) | idle_prior(values)

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        return closest_prior(super().closest(values))

    @model_validator(mode="after")
    def _prior_fits(self) -> Self:
        check_prior(self.kind, dict(self))
        return self


def prior_param() -> Any:
    """Declare the prior of models per arm."""
    return param(
        "zero",
        title="Prior",
        structural=True,
        later=True,
        help=(
            "Where the weights of an arm start. zero: at 0. category: at the mean of the models "
            "of the same category, with their covariance (empirical Bayes). pooled: at the "
            "weights of one model shared by all arms. given: as if the arm had been shown "
            "before, with the prior clicks and misses."
        ),
    )


def clicks_param() -> Any:
    """Declare the clicks of every arm before any data."""
    return param(
        1.0,
        title="Prior clicks",
        symbol=r"\alpha_0",
        ge=0.01,
        le=1000,
        later=True,
        help=(
            "Clicks that each arm has before any data (prior given), spread evenly over the "
            "visitors of the first 100 steps. Larger values start from a higher CTR; with 0.1 to "
            "10 data soon outweigh it. The ridge pulls the first estimate towards 0 (linear) or "
            "1/2 (logistic)."
        ),
    )


def misses_param() -> Any:
    """Declare the exposures without a click of every arm before any data."""
    return param(
        1.0,
        title="Prior misses",
        symbol=r"\beta_0",
        ge=0.01,
        le=1000,
        later=True,
        help=(
            "Exposures without a click that each arm has before any data (prior given). Larger "
            "values start from a lower CTR and a narrower confidence width; usually 1 to 50."
        ),
    )


def idle_prior(values: Mapping[str, Any]) -> frozenset[str]:
    """Name the parameters that do nothing with this prior."""
    prior = values.get("prior", "zero")
    given = frozenset() if prior == "given" else frozenset({"prior_clicks", "prior_misses"})
    return given | (frozenset() if prior in ESTIMATED else frozenset({"prior_every"}))


def every_param() -> Any:
    """Declare the interval between two estimates of a prior."""
    return param(
        500,
        title="Prior interval",
        symbol=r"\Delta_0",
        unit="steps",
        ge=1,
        le=1_000_000,
        typical=(50, 2000),
        structural=True,
        later=True,
        help=(
            "Number of steps between two estimates of the prior (category, pooled). Larger "
            "values are faster and follow later; usually 100 to 1,000."
        ),
    )


def check_prior(kind: str, values: Mapping[str, Any], fixed: str = "zero") -> None:
    """Check that the models are one per arm and forget nothing, where their prior is not the
    ``fixed`` one.
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
    """Return parameters that are valid together: with the ``fixed`` prior where the models cannot
    have one.
    """
    other = (
        values.get("gamma", 1.0) < 1
        or values.get("window") is not None
        or values.get("noise") == "inverse_gamma"
    )
    other = other or values.get("covariance", "full") != "full"
    if values.get("prior", fixed) != fixed and (
        other or values.get("sharing", "per_arm") != "per_arm"
    ):
        return {**values, "prior": fixed}
    return values


def groups_of(prior: str, rows: int, spec: SimulatorSpec, access: SimulatorAccess) -> IntArray:
    """Return the group of every arm, int64 (R, n_items): its category, or 0 for all."""
    return access.categories() if prior == "category" else np.zeros((rows, spec.n_items), np.int64)
