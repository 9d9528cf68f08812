"""Define a request: the sizes for which the methods are timed, of networks or of LinUCB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from pydantic import ValidationError, model_validator

from bandits.agents.neural.params import Width
from bandits.base.errors import UserError
from bandits.base.params import Params, param
from bandits.experiments.validation import refusal

from .complexity import (
    LINEAR_METHODS,
    MEMBERS,
    NEURAL_METHODS,
    PASSES,
    CostAxis,
    LinearSizes,
    Method,
    Sizes,
)

MAX_WEIGHTS = 2_000_000


class PlotAxis(NamedTuple):
    """Symbol, name and title of an axis, the range that is drawn, and where curves begin (by
    default there too).
    """

    symbol: str
    name: str
    title: str
    low: float
    high: float
    begin: float = 0.0

    @property
    def lowest(self) -> float:
        """Start of the curves."""
        return self.begin or self.low


class CostRequest(Params):
    """Parameters that state the sizes to measure, and what is measured at them.

    Attributes
    ----------
    methods : mapping of str to Method
    axes : mapping of str to PlotAxis
    held : str
        What the memory of a method holds.
    fastest : float
        Seconds from which times are drawn.
    """

    methods: ClassVar[Mapping[str, Method]]
    axes: ClassVar[Mapping[CostAxis, PlotAxis]]
    held: ClassVar[str]
    fastest: ClassVar[float]

    @property
    def sizes(self) -> Sizes:
        """The requested sizes."""
        raise NotImplementedError


RequestT = TypeVar("RequestT", bound=CostRequest)


class NeuralRequest(CostRequest):
    """Network, candidates and observations for which the methods are timed."""

    methods: ClassVar[Mapping[str, Method]] = NEURAL_METHODS
    axes: ClassVar[Mapping[CostAxis, PlotAxis]] = {
        "p": PlotAxis("p", "network size", "weights p", 60, 3e6),
        "t": PlotAxis("t", "observations", "observations t", 40, 1e5),
        "K": PlotAxis("K", "candidates", "candidates K", 4, 3e6),
    }
    held: ClassVar[str] = "Memory without the network"
    fastest: ClassVar[float] = 1e-5

    n_features: int = param(
        9,
        title="Features",
        symbol="D",
        ge=1,
        le=1000,
        basic=True,
        help=(
            "Number of features of a candidate. Larger values widen the first layer (usually 5 "
            "to 100)."
        ),
    )
    hidden: tuple[Width, ...] = param(
        (128, 64),
        title="Hidden layers",
        min_length=1,
        max_length=6,
        strict=False,
        basic=True,
        help=(
            "Widths of the hidden layers, each from 1 to 1,024. They determine the number of "
            "weights p: wider layers cost more time and memory (usually one to three layers of "
            "16 to 256 units)."
        ),
    )
    n_candidates: int = param(
        50,
        title="Candidates",
        symbol="K",
        ge=2,
        le=1_000_000,
        basic=True,
        help=(
            "Number of candidates per decision. Each needs a width, so the time grows in "
            "proportion (usually 10 to 500); above 5,000, times are extrapolated."
        ),
    )
    past: int = param(
        500,
        title="Observations",
        symbol="t",
        ge=10,
        le=10_000,
        basic=True,
        help=(
            "Number of observations before the decision. Larger values slow down the factored "
            "dual (usually 100 to 5,000)."
        ),
    )
    members: int = param(
        MEMBERS,
        title="Ensemble size",
        symbol="M",
        ge=2,
        le=50,
        later=True,
        help=(
            "Number of networks in the ensemble. Larger ensembles represent the uncertainty "
            "better; time and memory grow in proportion (usually 5 to 30)."
        ),
    )
    passes: int = param(
        PASSES,
        title="Dropout samples",
        symbol="T",
        ge=2,
        le=100,
        later=True,
        help=(
            "Number of forward passes of MC dropout per decision. More passes estimate the "
            "standard deviation better; the time grows in proportion (usually 5 to 30)."
        ),
    )
    seed: int = param(
        42,
        title="Seed",
        ge=0,
        le=2**53 - 1,
        help="Seed of the weights, features and simulators. It does not affect the times.",
    )

    @property
    def sizes(self) -> Sizes:
        """The requested sizes."""
        return Sizes(
            self.n_candidates,
            self.past,
            (self.n_features, *self.hidden, 1),
            self.members,
            self.passes,
        )

    @model_validator(mode="after")
    def _not_too_large(self) -> Self:
        if (p := int(self.sizes.p)) > MAX_WEIGHTS:
            raise ValueError(
                f"the network {network_name(self.sizes)} has {p:,} weights; at most "
                f"{MAX_WEIGHTS:,} are measured here: use narrower hidden layers"
            )
        return self


class LinearRequest(CostRequest):
    """Arms, features and observations for which LinUCB is timed.

    Axis "p" is the number of features.
    """

    methods: ClassVar[Mapping[str, Method]] = LINEAR_METHODS
    axes: ClassVar[Mapping[CostAxis, PlotAxis]] = {
        "p": PlotAxis("d", "features", "features d", 3, 2e5, begin=2),
        "K": PlotAxis("K", "arms", "arms K", 1.5, 3e6, begin=2),
    }
    held: ClassVar[str] = "All matrices and vectors"
    fastest: ClassVar[float] = 1e-6

    n_features: int = param(
        50,
        title="Features",
        symbol="d",
        ge=2,
        le=1000,
        basic=True,
        help=(
            "Number of features of an arm. Larger values cost more: each arm has a d × d matrix "
            "A (usually 5 to 200)."
        ),
    )
    n_arms: int = param(
        20,
        title="Arms",
        symbol="K",
        ge=2,
        le=100_000,
        basic=True,
        help=(
            "Number of arms, each with its own matrix A. More arms cost time and memory in "
            "proportion (usually 5 to 500); above 2,000, times are extrapolated."
        ),
    )
    past: int = param(
        5000,
        title="Observations",
        symbol="t",
        ge=10,
        le=100_000,
        basic=True,
        help=(
            "Number of observations, spread over the arms, after which the condition number of A "
            "is computed. More observations do not affect the times (usually 1,000 to 20,000)."
        ),
    )
    ridge: float = param(
        1.0,
        title="Regularisation",
        symbol=r"\lambda",
        gt=0,
        le=1e6,
        basic=True,
        help=(
            "Added to the diagonal of A. Larger values lower the condition number and shrink the "
            "estimates more (usually 0.01 to 10)."
        ),
    )
    correlation: float = param(
        0.5,
        title="Correlation",
        symbol=r"\rho",
        ge=0,
        le=0.999999,
        typical=(0, 0.99),
        basic=True,
        help=(
            "Correlation of any two features, which are normally distributed. Larger values "
            "raise the condition number of A (usually 0 to 0.9)."
        ),
    )
    seed: int = param(
        42,
        title="Seed",
        ge=0,
        le=2**53 - 1,
        help="Seed of the features. It does not affect the times.",
    )

    @property
    def sizes(self) -> LinearSizes:
        """The requested sizes."""
        return LinearSizes.of(self.n_arms, self.past, self.n_features)


def network_name(sizes: Sizes) -> str:
    """Write a network as its widths: 9-128-64-1."""
    return "-".join(f"{width:.0f}" for width in sizes.widths)


def read(data: Any, kind: type[RequestT]) -> RequestT:
    """Validate a request given as plain data.

    Raises
    ------
    UserError
        The request is invalid: field, value, allowed range.
    """
    if not isinstance(data, dict):
        raise UserError("the request must be an object of names and values")
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise UserError(refusal(error, kind)) from None
