"""What is asked: a network, how many candidates, how many past observations."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from bandits.base.errors import UserError
from bandits.base.params import Params, param
from bandits.experiments.validation import refusal

Axis = Literal["p", "t", "K"]
Width = Annotated[int, Field(ge=1, le=1024)]
MOST_WEIGHTS = 2_000_000


class Sizes(NamedTuple):
    """All that cost depends on.

    Attributes
    ----------
    K : float
        Candidates of a decision.
    t : float
        Past observations.
    widths : tuple of float
        Features, hidden widths and the one output; between two real networks the widths are no whole numbers.
    """

    K: float
    t: float
    widths: tuple[float, ...]

    @property
    def p(self) -> float:
        """Weights and biases of the network."""
        return sum((a + 1) * b for a, b in itertools.pairwise(self.widths))

    @property
    def f(self) -> float:
        """Numbers that the factors of one gradient have."""
        return sum(self.widths[:-1]) + sum(self.widths[1:])

    @property
    def d(self) -> float:
        """Weights and bias of the last layer."""
        return self.widths[-2] + 1

    def scaled(self, scale: float) -> Sizes:
        """With hidden layers so many times as wide."""
        first, *hidden, last = self.widths
        return self._replace(widths=(first, *(width * scale for width in hidden), last))

    def rounded(self) -> Sizes:
        """The nearest network there is."""
        return self._replace(widths=tuple(max(1, round(width)) for width in self.widths))

    def without(self, axis: Axis) -> Sizes:
        """The rest: equal for all that differ along this axis alone."""
        K, t, widths = self
        return Sizes(0 if axis == "K" else K, 0 if axis == "t" else t, () if axis == "p" else widths)

    def at(self, axis: Axis) -> float:
        """Where on an axis of a plot."""
        return {"K": self.K, "t": self.t, "p": self.p}[axis]


class ProfileRequest(Params):
    """For which network, and how many candidates and observations, the ways are timed."""

    n_features: int = param(
        9, title="Features", symbol="D", ge=1, le=1000, basic=True, help="Numbers that describe a candidate.",
    )  # fmt: skip
    hidden: tuple[Width, ...] = param(
        (128, 64), title="Hidden layers", min_length=1, max_length=6, strict=False, basic=True,
        help="Widths of the hidden layers, 1 to 1,024 each. The number of weights p follows from them.",
    )  # fmt: skip
    n_candidates: int = param(
        50, title="Candidates", symbol="K", ge=2, le=5000, basic=True, help="Widths that a decision asks for.",
    )  # fmt: skip
    past: int = param(
        500, title="Observations", symbol="t", ge=10, le=10_000, basic=True, help="Decisions before this one.",
    )  # fmt: skip
    seed: int = param(
        42, title="Seed", ge=0, le=2**53 - 1, help="Weights, features and worlds follow from it; times do not.",
    )  # fmt: skip

    @property
    def sizes(self) -> Sizes:
        """The sizes that are asked for."""
        return Sizes(self.n_candidates, self.past, (self.n_features, *self.hidden, 1))

    @model_validator(mode="after")
    def _small_enough(self) -> Self:
        if (p := int(self.sizes.p)) > MOST_WEIGHTS:
            raise ValueError(
                f"the network {network(self.sizes)} has {p:,} weights; at most {MOST_WEIGHTS:,} are measured here: "
                "use narrower hidden layers"
            )
        return self


def network(sizes: Sizes) -> str:
    """A network as one writes it: 9-128-64-1."""
    return "-".join(f"{width:.0f}" for width in sizes.widths)


def read(data: Any) -> ProfileRequest:
    """A question from plain data.

    Raises
    ------
    UserError
        One sentence: what, where, allowed range.
    """
    if not isinstance(data, dict):
        raise UserError("a question must be an object of names and values")
    try:
        return ProfileRequest.model_validate(data)
    except ValidationError as error:
        raise UserError(refusal(error, ProfileRequest)) from None
