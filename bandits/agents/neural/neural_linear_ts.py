"""Neural-linear Thompson sampling: a Bayesian linear head on a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.agents.model_params import (
    noise_model_param,
    noise_scale_param,
    noise_shape_param,
    noise_variance_param,
)
from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.linear.ridge import Ridge
from bandits.models.neural.initialisation import initial_weights
from bandits.models.position_bias import targets

from .base import NeuralAgent
from .last_layer import HeadAgent, HeadParams
from .params import NeuralParams, training_param

if TYPE_CHECKING:
    from torch import Tensor

    from bandits.base.types import FloatArray


class ScheduleParams(NeuralParams):
    """Parameters of a network with a learning rate that can fall and a limit on its gradient."""

    learning_rate_decay: float = param(
        0.0,
        title="Learning rate decay",
        ge=0,
        le=100,
        typical=(0, 1),
        later=True,
        help=(
            "Fall of the learning rate: after s steps of the optimiser it is divided by 1 + "
            "decay × s. Larger values stop learning sooner (usually 0 to 1); 0 keeps the "
            "learning rate."
        ),
    )
    decay_from: Literal["training", "start"] = param(
        "training",
        title="Decay counted from",
        structural=True,
        later=True,
        help=(
            "Which steps s the learning rate decay counts. training: those of the current "
            "training; each training begins with the full learning rate. start: all steps so "
            "far, pre-training included."
        ),
    )
    gradient_limit: float | None = param(
        None,
        title="Gradient limit",
        empty="none",
        gt=0,
        le=1e6,
        typical=(1, 10),
        structural=True,
        later=True,
        help=(
            "Largest norm of a gradient: longer ones are shortened to it. Larger values let rare "
            "large errors change the network more (usually 1 to 10)."
        ),
    )
    initial_scale: float | None = param(
        None,
        title="Initial weight bound",
        empty="by layer",
        gt=0,
        le=10,
        typical=(0.05, 1),
        structural=True,
        later=True,
        help=(
            "Largest initial weight b: weights are uniform between −b and b, biases 0. Larger "
            "values start from less smooth functions (usually 0.05 to 1). Empty: 1/√inputs of "
            "each layer, for biases too."
        ),
    )


class TrainingSchedule(NeuralAgent):
    """Agent whose learning rate can fall, whose gradients can be limited and whose initial weights
    can be scaled.
    """

    PRETRAIN_OPTIONS: ClassVar[tuple[str, ...]] = (
        "learning_rate_decay",
        "gradient_limit",
        "initial_scale",
    )
    trained_before = 0
    """Steps of the optimiser before the current training."""

    def initial_weights(self) -> FloatArray:
        scale = self.params[0].initial_scale
        return initial_weights(self.streams, self.widths, part=1, copies=self.copies, scale=scale)

    def train(self) -> None:
        self.trained_before = self.train_steps
        super().train()

    def apply_gradient(self, gradient: Tensor) -> None:
        p, decay = self.params[0], self.column("learning_rate_decay")
        if p.gradient_limit is not None:
            norm = gradient.norm(dim=1, keepdim=True)
            gradient = gradient * (p.gradient_limit / norm.clamp_min(p.gradient_limit))
        if decay.any():
            steps = self.train_steps - (self.trained_before if p.decay_from == "training" else 0)
            rates = self.column("learning_rate") / (1 + decay * steps)
            self.optimiser.rate = self.tensor(rates.repeat(self.copies))[:, None]
        super().apply_gradient(gradient)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small, *others = super().test_params()
        options = {
            "optimiser": "rmsprop",
            "learning_rate_decay": 0.5,
            "gradient_limit": 1.0,
            "initial_scale": 0.3,
        }
        return [
            small,
            *others,
            {**small, **options},
            {**small, "learning_rate_decay": 0.1, "decay_from": "start"},
        ]


class NeuralLinearTS(TrainingSchedule, HeadAgent):
    """Thompson sampling with a Bayesian linear head on a network's last layer [1]_, [2]_.

    score_a = theta~ . z_a with one draw theta~ ~ N(theta, sigma^2 A^-1) per head and step, z_a =
    phi(x_a)

    After each training of the network, the head is refitted to the replay buffer, encoded by the
    current network; otherwise its data would mix embeddings of different networks (``rebuild``
    off).

    It can forget (``gamma``, ``window``): the covariance is then sigma^2 V^-1 V~ V^-1 [3]_, or A
    holds the window alone. A refitted head weighs the observations in the buffer by their age.

    The published program of [2]_ first plays every arm ``initial_pulls`` times in turn, and trains
    by RMSprop with a falling learning rate and a limit on the gradient.

    With noise ``inverse_gamma``, each head also draws sigma^2 from IG(a0 + n/2, b0 + (sum r^2 -
    theta' A theta)/2).

    References
    ----------
    .. [1] Snoek et al. (2015), Scalable Bayesian optimization using deep neural networks.
    .. [2] Riquelme, Tucker, Snoek (2018), Deep Bayesian bandits showdown: NeuralLinear.
    .. [3] Russac, Vernade, Cappé (2019), Weighted linear bandits for non-stationary environments:
       the covariance of its estimator.
    """

    class Params(HeadParams, ScheduleParams):
        kind: Literal["neural_linear_ts"] = "neural_linear_ts"
        noise: Literal["fixed", "inverse_gamma"] = noise_model_param()
        sigma2: float = noise_variance_param(0.25)
        a0: float = noise_shape_param()
        b0: float = noise_scale_param()
        rebuild: bool = param(
            True,
            title="Refit head",
            structural=True,
            help=(
                "After each training, the head is refitted to the replay buffer, encoded by the "
                "new network. Off: the head keeps the embeddings of earlier networks."
            ),
        )
        # the head is refitted to the replay buffer
        training: Literal["replay", "everything"] = training_param("replay", "everything")
        initial_pulls: int = param(
            0,
            title="Initial pulls",
            unit="per arm",
            ge=0,
            le=10_000,
            typical=(0, 20),
            structural=True,
            later=True,
            help=(
                "Observed rewards of every arm before Thompson sampling begins; the arm with the "
                "fewest is shown next. Larger values explore more at the start (usually 0 to 5). "
                "Late rewards make this start longer."
            ),
        )
        learning_rate: float = override_default(HeadParams, "learning_rate", 0.003)
        every: int = override_default(HeadParams, "every", 50)
        updates: int | None = override_default(HeadParams, "updates", 25)

        @model_validator(mode="after")
        def _no_noise_of_some(self) -> Self:
            if self.noise == "inverse_gamma" and (self.gamma < 1 or self.window is not None):
                raise ValueError(
                    "neural_linear_ts: noise inverse_gamma needs gamma 1 and no window"
                )
            return self

    title = "Neural-linear TS"
    formula = r"\tilde\theta^\top z_a,\quad\tilde\theta\sim\mathcal N(\hat\theta,\ \sigma^2A^{-1}),\quad z_a=\phi(x_a;\,w)"  # noqa: E501
    uncertainty = "posterior"
    exploration_param = "sigma2"
    colour = "#009E73"
    dash = "dash"
    propensity = "monte_carlo"
    joint = True

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small, *others = super().test_params()
        return [small, *others, {**small, "noise": "inverse_gamma"}, {**small, "initial_pulls": 2}]

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        M = self.n_heads
        self.sigma2, self.a0, self.b0 = self.column("sigma2"), self.column("a0"), self.column("b0")
        # sum r^2 of each head
        self.squares = np.zeros((len(self.params), M))
        self.state += ("squares",)
        self.pulls = np.zeros((len(self.params), spec.n_items), np.int64)
        if self.params[0].initial_pulls:
            self.state += ("pulls",)
        width = spec.n_candidates if self.per_arm else self.widths[-2]
        self.normals = streams.blocks(
            "agent", lambda g, n: g.standard_normal((n, width)), width=width
        )
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, M)), width=M, part=4)

    def scores(self, round: Round) -> FloatArray:
        scores = self.sampled_scores(
            round, self.uniforms.at(round.step), self.normals.at(round.step)
        )
        return self.initial_pulls_first(round, scores)

    def initial_pulls_first(self, round: Round, scores: FloatArray) -> FloatArray:
        """Raise the arms with initial pulls left above all others, the least shown first."""
        pulls = np.take_along_axis(self.pulls, round.items, axis=1)
        left = np.maximum(self.params[0].initial_pulls - pulls, 0)
        if not left.any():
            return scores
        above = scores.max(axis=1, keepdims=True) + left
        return np.where(left > 0, above, scores)

    def sampled_scores(self, round: Round, uniforms: FloatArray, normals: FloatArray) -> FloatArray:
        """Compute scores from uniforms (R, M) for sigma^2 and normals for theta~."""
        embedded, sigma = self.embedded_round(round), np.sqrt(self.noise_variance(uniforms))
        if not self.per_arm:
            return self.expand(round, self.head.sample(embedded, sigma[:, 0], normals))
        mean, variance = self.head.predict(embedded)
        return np.asarray(
            mean + np.take_along_axis(sigma, round.items, axis=1) * np.sqrt(variance) * normals
        )

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.head.predict(self.embedded_round(round))
        mean, width = self.expand(round, mean), self.expand(round, np.sqrt(variance))
        sigma = np.sqrt(self.noise_variance(self.uniforms.at(round.step)))
        scale = np.take_along_axis(sigma, round.items, axis=1) if self.per_arm else sigma
        return Explanation("sample", self.scores(round), mean, width, scale)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        uniforms, normals = self.uniforms.at(round.step).shape, self.normals.at(round.step).shape
        while True:
            scores = self.sampled_scores(
                round, generator.random(uniforms), generator.standard_normal(normals)
            )
            yield self.initial_pulls_first(round, scores)

    def noise_variance(self, uniforms: FloatArray) -> FloatArray:
        """Compute sigma^2 of every head, (R, M): fixed, or drawn by ``uniforms (R, M)``."""
        if self.params[0].noise == "fixed":
            return np.broadcast_to(self.sigma2[:, None], self.squares.shape)
        from scipy.special import gammaincinv

        assert isinstance(self.head, Ridge)
        explained = (self.head.theta * self.head.b).sum(axis=2)  # theta' A theta
        a = self.a0[:, None] + self.head.count / 2
        b = self.b0[:, None] + np.maximum(self.squares - explained, 0) / 2
        return np.asarray(b / gammaincinv(a, np.maximum(uniforms, 2.0**-54)))

    def update_posterior(
        self, round: Round, shown: IntArray, slate: IntArray, feedback: Feedback
    ) -> None:
        super().update_posterior(round, shown, slate, feedback)
        if self.params[0].initial_pulls:
            places = np.arange(len(slate))[:, None], np.take_along_axis(round.items, slate, axis=1)
            np.add.at(self.pulls, places, feedback.examined.astype(np.int64))
        heads = (
            np.take_along_axis(round.items, slate, axis=1) if self.per_arm else np.zeros_like(slate)
        )
        rows = np.broadcast_to(np.arange(len(slate))[:, None], slate.shape)
        counts = self.exposure(feedback)
        np.add.at(self.squares, (rows, heads), counts * targets(feedback, counts) ** 2)

    def train(self) -> None:
        super().train()
        if self.params[0].rebuild:
            # discarded observations no longer count for the noise either
            self.squares[...] = self.rebuild()
