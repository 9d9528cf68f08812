"""NeuralUCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.neural import mlp
from bandits.models.neural.gradient_covariance import Diagonal, Exact
from bandits.models.neural.mlp import ForwardPass, GradientFactors
from bandits.models.neural.replay_buffer import spread

from .base import NeuralAgent, NeuralParams, Width

if TYPE_CHECKING:
    from torch import Tensor


class GradientParams(NeuralParams):
    """Parameters of the agents whose doubt comes from the gradient of the whole network."""

    ridge: float = param(
        1.0, title="Ridge", symbol=r"\lambda", ge=1e-6, le=1e4, typical=(0.01, 100), log=True,
        help="Strength of the belief, before any data, that all weights are where they began.",
    )  # fmt: skip
    covariance: Literal["exact", "diagonal"] = param(
        "diagonal", title="Covariance", structural=True,
        help="exact: of all weights with each other. diagonal: of each weight alone, as most code has it; its widths "
        "can be far off.",
    )  # fmt: skip
    scaling: Literal["paper", "code"] = param(
        "code", title="Scaling", structural=True,
        help="paper: output times the square root of the width, symmetric start at 0, penalty (if switched on) towards "
        "the start. code: as the authors' program, without the root, from an ordinary start, penalty (if switched on) "
        "towards 0. Biases, which the paper's network has not, are trained with either.",
    )  # fmt: skip
    regularised: bool = param(
        False, title="Weight penalty", structural=True,
        help="Adds the penalty that the ridge stands for to the training, divided by the number of observations.",
    )  # fmt: skip
    sketch: int = param(
        64, title="Sketch", unit="directions", ge=2, le=1024, structural=True,
        help="Only with covariance exact: directions that are kept where it grows too large for exactness.",
    )  # fmt: skip
    exact_up_to: int = param(
        2000, title="Exact up to", unit="observations", ge=100, le=20_000, structural=True,
        help="Only with covariance exact: past so many observations it goes over to a sketch; in a network of up to "
        "1,448 weights, past so many or as many as its weights, to the matrix of all of them.",
    )  # fmt: skip
    hidden: tuple[Width, ...] = override_default(NeuralParams, "hidden", (128, 64))
    learning_rate: float = override_default(NeuralParams, "learning_rate", 0.01)
    training: Literal["newest", "replay", "everything"] = override_default(NeuralParams, "training", "newest")

    @model_validator(mode="after")
    def _halves(self) -> Self:
        if self.scaling == "paper" and any(width % 2 for width in self.hidden):
            raise ValueError(
                "hidden: under scaling paper all widths must be even, because the start has two equal halves"
            )
        return self


class GradientAgent(NeuralAgent):
    """A network f, and the width of its answer from g, the gradient of f by all weights at the moment of the choice.

    width = sqrt(g' A^-1 g), A = ridge I + sum g g'

    With scaling ``paper`` f is sqrt(m) times the network's output (m the last hidden width) and g is divided by
    sqrt(m): the two roots leave the plain gradient of the output in A.
    """

    PARTS: ClassVar[tuple[str, ...]] = ("replay", "confidence")

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        (small,) = super().test_params()
        return [small, {**small, "covariance": "exact"}, {**small, "scaling": "paper"}]

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        p = params[0]
        self.root: float = float(p.hidden[-1]) ** 0.5 if p.scaling == "paper" else 1.0
        super().__init__(params, spec, streams, access)
        ridge, n_weights = self.column("ridge"), mlp.size(self.widths)
        self.confidence: Diagonal | Exact = (
            Exact(ridge, n_weights, limit=p.exact_up_to, sketch=p.sketch, device=self.device)
            if p.covariance == "exact"
            else Diagonal(ridge, n_weights, self.device)
        )
        self._ridge = self.tensor(ridge)[:, None]
        self._start = self.net.flat.clone()
        self._factors: GradientFactors | None = None

    def first_weights(self) -> FloatArray:
        symmetric = self.params[0].scaling == "paper"
        return mlp.initial(self.streams, self.widths, part=1, symmetric=symmetric)

    def output(self, passed: ForwardPass) -> Tensor:
        return super().output(passed) * self.root

    def slope(self, output: Tensor, rewards: Tensor) -> Tensor:
        return super().slope(output, rewards) * self.root

    def factors(self, round: Round) -> GradientFactors:
        """Gradients of the distinct candidates."""
        passed = self.passed(round)
        if self._factors is None:
            self._factors = self.net.factors(passed)
        return self._factors

    def forget(self) -> None:
        super().forget()
        self._factors = None

    def predict(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Mean and width of every candidate, two of float64 (R, K)."""
        widths = self.confidence.squared_widths(self.factors(round)).sqrt()
        return self.mean(round), spread(widths, self.look(round).which)

    def note(self) -> str:
        return self.confidence.told() if isinstance(self.confidence, Exact) else ""

    def absorb(self, round: Round, at: IntArray, slate: IntArray, feedback: Feedback) -> None:  # noqa: ARG002
        import torch

        factors = self.factors(round)
        rows, roots = torch.arange(len(at), device=self.device)[:, None], np.sqrt(self.shows(feedback))
        for s in range(at.shape[1]):
            which = torch.from_numpy(at[:, s : s + 1]).to(self.device)
            self.confidence.add(factors.take(rows, which), self.tensor(roots[:, s]))

    def regularised(self, gradient: Tensor) -> Tensor:
        p = self.params[0]
        if not p.regularised:
            return gradient
        if p.scaling == "paper":
            # the paper's loss is half the square: twice its penalty goes with a whole square
            twice = 1.0 if self.log_odds else 2.0
            return gradient.addcmul(self.net.flat - self._start, self._ridge * (twice * p.hidden[-1] / self.seen))
        return gradient.addcmul(self.net.flat, self._ridge / self.seen)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"start": self._start.cpu().numpy().copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        import torch

        super().load_state_dict(state)
        self._start.copy_(torch.from_numpy(state["start"]))

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        widths = (spec.n_features, *params.hidden, 1)
        p, K = mlp.size(widths), spec.n_candidates
        exact = Exact.memory(p, 2 * sum(widths), params.exact_up_to, params.sketch) + 16 * K * p
        held = exact if params.covariance == "exact" else 12 * p  # where it began, the diagonal and a gradient
        return super().memory(params, spec) + int(held + 8 * 2 * K * sum(widths))


class NeuralUCB(GradientAgent):
    """NeuralUCB [1]_: optimism by the gradient of a network.

    score_a = f(x_a) + alpha sqrt(g_a' A^-1 g_a)

    References
    ----------
    .. [1] Zhou, Li, Gu (2020), Neural contextual bandits with UCB-based exploration, Algorithm 1. The authors' program
       writes the bonus sqrt(lambda nu g' A^-1 g): alpha = sqrt(lambda nu).
    """

    class Params(GradientParams):
        kind: Literal["neural_ucb"] = "neural_ucb"
        alpha: float = param(
            1.0, title="Exploration", symbol=r"\alpha", ge=0, le=10, typical=(0, 4), basic=True,
            help="Width of the confidence bound: how strongly doubt counts as promise. 0 never explores.",
        )  # fmt: skip

    title = "NeuralUCB"
    formula = r"f(x_a)+\alpha\sqrt{g_a^\top A^{-1}g_a},\quad g_a=\nabla_w f(x_a)"
    uncertainty = "bonus"
    colour = "#D55E00"
    dash = "dash"

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    def scores(self, round: Round) -> FloatArray:
        mean, width = self.predict(round)
        return np.asarray(mean + self.alpha[:, None] * width)

    def explain(self, round: Round) -> Explanation:
        mean, width = self.predict(round)
        return Explanation("bonus", self.scores(round), mean, width, self.alpha[:, None], "alpha", logit=self.log_odds)
