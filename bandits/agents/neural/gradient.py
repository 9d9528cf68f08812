"""Base class of the agents with confidence widths from a network's gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.neural import initialisation
from bandits.models.neural.distinct_candidates import expand
from bandits.models.neural.gradient_covariance import (
    DiagonalCovariance,
    ExactCovariance,
    GradientCovariance,
)
from bandits.models.neural.mlp import ForwardPass, GradientFactors, count_weights

from .base import NeuralAgent
from .params import NeuralParams

if TYPE_CHECKING:
    from torch import Tensor


class GradientParams(NeuralParams):
    """Parameters of the agents with a covariance of gradients."""

    ridge: float = param(
        1.0,
        title="Prior precision",
        symbol=r"\lambda",
        ge=1e-6,
        le=1e4,
        typical=(0.01, 100),
        log=True,
        help=(
            "Precision of the prior of the network's weights around their initial values. Larger "
            "values make the initial confidence widths smaller (usually 0.01 to 100)."
        ),
    )
    covariance: Literal["exact", "diagonal"] = param(
        "diagonal",
        title="Covariance",
        structural=True,
        help=(
            "exact: covariance of all pairs of weights. diagonal: variances only, as in most "
            "implementations; its widths can be inaccurate. Neither forgets: a discount that "
            "keeps the prior would invert an exact covariance anew at every step; the network "
            "forgets with its replay buffer."
        ),
    )
    scaling: Literal["paper", "code"] = param(
        "code",
        title="Scaling",
        structural=True,
        help=(
            "paper: output times the square root of the last hidden width, symmetric initial "
            "weights with output 0, weight penalty towards the initial weights. code: as in the "
            "authors' code, without this factor, from standard initial weights, weight penalty "
            "towards 0. Biases, absent from the paper's network, are trained in both."
        ),
    )
    regularised: bool = param(
        False,
        title="Weight penalty",
        structural=True,
        help=(
            "Adds the penalty that corresponds to the prior precision to the training loss, "
            "divided by the number of observations."
        ),
    )
    sketch: int = param(
        64,
        title="Sketch size",
        unit="directions",
        ge=2,
        le=1024,
        structural=True,
        help=(
            "Directions kept by the frequent-directions sketch that replaces an exact covariance "
            "where it grows too large. More directions are more accurate and take longer "
            "(usually 16 to 256)."
        ),
    )
    exact_up_to: int = param(
        2000,
        title="Dual limit",
        unit="observations",
        ge=100,
        le=20_000,
        structural=True,
        help=(
            "Number of observations up to which an exact covariance is stored in its dual form. "
            "After that a sketch replaces it; for networks of up to 1,448 weights the matrix of "
            "all weights does, at the latest after as many observations as weights. Larger "
            "values stay exact longer and take more time and memory (usually 500 to 5,000)."
        ),
    )
    learning_rate: float = override_default(NeuralParams, "learning_rate", 0.01)

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        odd = values.get("scaling") == "paper" and any(
            width % 2 for width in values.get("hidden", ())
        )
        return {**values, "scaling": "code"} if odd else values

    @model_validator(mode="after")
    def _even_widths(self) -> Self:
        if self.scaling == "paper" and any(width % 2 for width in self.hidden):
            raise ValueError(
                "hidden: under scaling paper all widths must be even, because the initial weights "
                "have two equal halves"
            )
        return self


class GradientAgent(NeuralAgent):
    """Agent with a network f and the width of its prediction from the gradient of f.

    width = sqrt(g' A^-1 g), A = ridge I + sum g g'

    g is the gradient of f by all weights at the time of the choice. With scaling ``paper``, f is
    sqrt(m) times the output of the network (m the last hidden width) and g is divided by sqrt(m):
    the two factors cancel, so that A contains the gradients of the output itself."""

    PARTS: ClassVar[tuple[str, ...]] = ("replay", "confidence")
    PRETRAIN_READS: ClassVar[tuple[str, ...]] = (
        *NeuralAgent.PRETRAIN_READS,
        "scaling",
        "regularised",
        "ridge",
    )

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        return [*super().alternatives(spec), {"covariance": "diagonal"}]

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        (small,) = super().test_params()
        return [small, {**small, "covariance": "exact"}, {**small, "scaling": "paper"}]

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        p = params[0]
        self.output_scale: float = float(p.hidden[-1]) ** 0.5 if p.scaling == "paper" else 1.0
        super().__init__(params, spec, streams, access)
        ridge, n_weights = self.column("ridge"), count_weights(self.widths)
        self.confidence: GradientCovariance = (
            ExactCovariance(
                ridge, n_weights, limit=p.exact_up_to, sketch=p.sketch, device=self.device
            )
            if p.covariance == "exact"
            else DiagonalCovariance(ridge, n_weights, self.device)
        )
        self._ridge = self.tensor(ridge)[:, None]
        self._start = self.net.flat.clone()
        self._factors: GradientFactors | None = None

    def initial_weights(self) -> FloatArray:
        symmetric = self.params[0].scaling == "paper"
        return initialisation.initial_weights(
            self.streams, self.widths, part=1, symmetric=symmetric
        )

    def output(self, forward_pass: ForwardPass) -> Tensor:
        return super().output(forward_pass) * self.output_scale

    def loss_derivative(self, output: Tensor, rewards: Tensor) -> Tensor:
        return super().loss_derivative(output, rewards) * self.output_scale

    def factors(self, round: Round) -> GradientFactors:
        """Compute the factored gradients of the distinct candidates, once per step."""
        forward_pass = self.forward_pass(round)
        if self._factors is None:
            self._factors = self.net.factors(forward_pass)
        return self._factors

    def clear_cache(self) -> None:
        super().clear_cache()
        self._factors = None

    def predict(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Compute the mean and the width of every candidate, each float64 (R, K)."""
        widths = self.confidence.squared_widths(self.factors(round)).sqrt()
        return self.mean(round), expand(widths, self.encode(round).candidate_index)

    def note(self) -> str:
        exact = self.confidence if isinstance(self.confidence, ExactCovariance) else None
        parts = (exact.describe() if exact else "", super().note())
        return "; ".join(part for part in parts if part)

    def update_posterior(
        self,
        round: Round,
        shown: IntArray,
        slate: IntArray,  # noqa: ARG002
        feedback: Feedback,
    ) -> None:
        import torch

        factors = self.factors(round)
        rows, root_weights = (
            torch.arange(len(shown), device=self.device)[:, None],
            np.sqrt(self.exposure(feedback)),
        )
        for s in range(shown.shape[1]):
            index = torch.from_numpy(shown[:, s : s + 1]).to(self.device)
            self.confidence.add(factors.take(rows, index), self.tensor(root_weights[:, s]))

    def add_penalty(self, gradient: Tensor) -> Tensor:
        p = self.params[0]
        if not p.regularised:
            return gradient
        n = self.n_observed + (p.pretrain if self.pretraining or p.scaling == "code" else 0)
        if p.scaling == "paper":
            # the paper minimises half the squared error: the full squared error takes twice its
            # penalty
            twice = 1.0 if self.log_odds else 2.0
            return gradient.addcmul(
                self.net.flat - self._start, self._ridge * (twice * p.hidden[-1] / n)
            )
        return gradient.addcmul(self.net.flat, self._ridge / n)

    def start_from_weights(self) -> None:
        self._start.copy_(self.net.flat)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"start": self._start.cpu().numpy().copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        import torch

        super().load_state_dict(state)
        self._start.copy_(torch.from_numpy(state["start"]))

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        widths = (spec.n_features, *params.hidden, 1)
        p, K = count_weights(widths), spec.n_candidates
        exact = (
            ExactCovariance.memory(p, 2 * sum(widths), params.exact_up_to, params.sketch)
            + 16 * K * p
        )
        # initial weights, diagonal and one gradient
        stored = exact if params.covariance == "exact" else 12 * p
        return super().memory(params, spec) + int(stored + 8 * 2 * K * sum(widths))
