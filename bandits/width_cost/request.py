"""Define a request: network, number of candidates, number of observations."""

from __future__ import annotations

import itertools
from typing import Any, Literal, NamedTuple, Self

from pydantic import ValidationError, model_validator

from bandits.agents.neural.params import Width
from bandits.base.errors import UserError
from bandits.base.params import Params, param
from bandits.experiments.validation import refusal

CostAxis = Literal["p", "t", "K"]
MAX_WEIGHTS = 2_000_000
MEMBERS, PASSES = 5, 10  # defaults of the agents Ensemble and MC dropout


class Sizes(NamedTuple):
    """Sizes that determine the cost of a decision.

    Attributes
    ----------
    K : float
        Candidates of a decision.
    t : float
        Past observations.
    widths : tuple of float
        Features, hidden widths and the single output; not whole numbers where sizes are interpolated.
    members : int
        Networks of an ensemble, M.
    passes : int
        Forward passes of MC dropout, T.
    """

    K: float
    t: float
    widths: tuple[float, ...]
    members: int = MEMBERS
    passes: int = PASSES

    @property
    def p(self) -> float:
        """Weights and biases of the network."""
        return sum((a + 1) * b for a, b in itertools.pairwise(self.widths))

    @property
    def f(self) -> float:
        """Numbers in the factors of one gradient."""
        return sum(self.widths[:-1]) + sum(self.widths[1:])

    @property
    def d(self) -> float:
        """Weights and bias of the last layer."""
        return self.widths[-2] + 1

    def scaled(self, scale: float) -> Sizes:
        """Multiply the widths of the hidden layers."""
        first, *hidden, last = self.widths
        return self._replace(widths=(first, *(width * scale for width in hidden), last))

    def rounded(self) -> Sizes:
        """Round the widths to whole numbers."""
        return self._replace(widths=tuple(max(1, round(width)) for width in self.widths))

    def without(self, axis: CostAxis) -> Sizes:
        """Clear the size of one axis, to group sizes that differ only along it."""
        K, t, widths = self[:3]
        return Sizes(0 if axis == "K" else K, 0 if axis == "t" else t, () if axis == "p" else widths, *self[3:])

    def along(self, axis: CostAxis) -> float:
        """Return the coordinate on one axis of a plot."""
        return {"K": self.K, "t": self.t, "p": self.p}[axis]


class SizedRequest(Params):
    """Parameters that state the sizes to measure."""

    @property
    def sizes(self) -> Sizes:
        """The requested sizes."""
        raise NotImplementedError


class ProfileRequest(SizedRequest):
    """Network, candidates and observations for which the methods are timed."""

    n_features: int = param(
        9, title="Features", symbol="D", ge=1, le=1000, basic=True,
        help="Number of features of a candidate. Larger values widen the first layer (usually 5 to 100).",
    )  # fmt: skip
    hidden: tuple[Width, ...] = param(
        (128, 64), title="Hidden layers", min_length=1, max_length=6, strict=False, basic=True,
        help="Widths of the hidden layers, each from 1 to 1,024. They determine the number of weights p: wider layers "
        "cost more time and memory (usually one to three layers of 16 to 256 units).",
    )  # fmt: skip
    n_candidates: int = param(
        50, title="Candidates", symbol="K", ge=2, le=1_000_000, basic=True,
        help="Number of candidates per decision. Each needs a width, so the time grows in proportion (usually 10 to "
        "500); above 5,000, times are extrapolated.",
    )  # fmt: skip
    past: int = param(
        500, title="Observations", symbol="t", ge=10, le=10_000, basic=True,
        help="Number of observations before the decision. Larger values slow down the factored dual (usually 100 to "
        "5,000).",
    )  # fmt: skip
    members: int = param(
        MEMBERS, title="Ensemble size", symbol="M", ge=2, le=50, later=True,
        help="Number of networks in the ensemble. Larger ensembles represent the uncertainty better; time and memory "
        "grow in proportion (usually 5 to 30).",
    )  # fmt: skip
    passes: int = param(
        PASSES, title="Dropout samples", symbol="T", ge=2, le=100, later=True,
        help="Number of forward passes of MC dropout per decision. More passes estimate the standard deviation better; "
        "the time grows in proportion (usually 5 to 30).",
    )  # fmt: skip
    seed: int = param(
        42, title="Seed", ge=0, le=2**53 - 1,
        help="Seed of the weights, features and simulators. It does not affect the times.",
    )  # fmt: skip

    @property
    def sizes(self) -> Sizes:
        """The requested sizes."""
        return Sizes(self.n_candidates, self.past, (self.n_features, *self.hidden, 1), self.members, self.passes)

    @model_validator(mode="after")
    def _not_too_large(self) -> Self:
        if (p := int(self.sizes.p)) > MAX_WEIGHTS:
            raise ValueError(
                f"the network {network_name(self.sizes)} has {p:,} weights; at most {MAX_WEIGHTS:,} are measured here: "
                "use narrower hidden layers"
            )
        return self


def network_name(sizes: Sizes) -> str:
    """Write a network as its widths: 9-128-64-1."""
    return "-".join(f"{width:.0f}" for width in sizes.widths)


def read(data: Any) -> ProfileRequest:
    """Validate a request given as plain data.

    Raises
    ------
    UserError
        The request is invalid: field, value, allowed range.
    """
    if not isinstance(data, dict):
        raise UserError("the request must be an object of names and values")
    try:
        return ProfileRequest.model_validate(data)
    except ValidationError as error:
        raise UserError(refusal(error, ProfileRequest)) from None
