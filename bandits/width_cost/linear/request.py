"""Define a request: arms, features and observations of LinUCB."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from bandits.base.errors import UserError
from bandits.base.params import param
from bandits.experiments.validation import refusal
from bandits.width_cost.request import SizedRequest, Sizes


class LinearSizes(Sizes):
    """Sizes of LinUCB with one model per arm: ``widths`` is (d, 1), and p = d weights per model."""

    __slots__ = ()

    @classmethod
    def of(cls, K: float, t: float, d: float) -> LinearSizes:
        """Create the sizes from the numbers of arms, observations and features."""
        return cls(K, t, (d, 1))

    @property
    def p(self) -> float:
        """Weights of one model, which has no bias."""
        return self.widths[0]

    @property
    def d(self) -> float:
        """Features."""
        return self.widths[0]

    def scaled(self, scale: float) -> LinearSizes:
        """Multiply the number of features."""
        return self.of(self.K, self.t, self.widths[0] * scale)


class LinearRequest(SizedRequest):
    """Arms, features and observations for which LinUCB is timed."""

    n_features: int = param(
        50, title="Features", symbol="d", ge=2, le=1000, basic=True,
        help="Number of features of an arm. Larger values cost more: each arm has a d × d matrix A (usually 5 to 200).",
    )  # fmt: skip
    n_arms: int = param(
        20, title="Arms", symbol="K", ge=2, le=100_000, basic=True,
        help="Number of arms, each with its own matrix A. More arms cost time and memory in proportion (usually 5 to "
        "500); above 2,000, times are extrapolated.",
    )  # fmt: skip
    past: int = param(
        5000, title="Observations", symbol="t", ge=10, le=100_000, basic=True,
        help="Number of observations, spread over the arms, after which the condition number of A is computed. More "
        "observations do not affect the times (usually 1,000 to 20,000).",
    )  # fmt: skip
    ridge: float = param(
        1.0, title="Regularisation", symbol=r"\lambda", gt=0, le=1e6, basic=True,
        help="Added to the diagonal of A. Larger values lower the condition number and shrink the estimates more "
        "(usually 0.01 to 10).",
    )  # fmt: skip
    correlation: float = param(
        0.5, title="Correlation", symbol=r"\rho", ge=0, le=0.999999, typical=(0, 0.99), basic=True,
        help="Correlation of any two features, which are normally distributed. Larger values raise the condition "
        "number of A (usually 0 to 0.9).",
    )  # fmt: skip
    seed: int = param(
        42, title="Seed", ge=0, le=2**53 - 1, help="Seed of the features. It does not affect the times.",
    )  # fmt: skip

    @property
    def sizes(self) -> LinearSizes:
        """The requested sizes."""
        return LinearSizes.of(self.n_arms, self.past, self.n_features)


def read(data: Any) -> LinearRequest:
    """Validate a request given as plain data.

    Raises
    ------
    UserError
        The request is invalid: field, value, allowed range.
    """
    if not isinstance(data, dict):
        raise UserError("the request must be an object of names and values")
    try:
        return LinearRequest.model_validate(data)
    except ValidationError as error:
        raise UserError(refusal(error, LinearRequest)) from None
