"""Neural-linear Thompson sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.position_bias import targets

from .last_layer import HeadAgent, HeadParams


class NeuralLinearTS(HeadAgent):
    """Thompson sampling with a Bayesian linear head on a network's last layer [1]_, [2]_.

    score_a = theta~ . z_a with ONE draw theta~ ~ N(theta, sigma^2 A^-1) per head and step, z_a = phi(x_a)

    After each training of the network the head is fitted anew to everything remembered, encoded by the network as it
    then is: without that it would mix features of many networks (``rebuild`` off shows what this costs).
    With noise ``inverse_gamma`` each head's sigma^2 is drawn too, from IG(a0 + n/2, b0 + (sum r^2 - theta' A theta)/2).

    References
    ----------
    .. [1] Snoek et al. (2015), Scalable Bayesian optimization using deep neural networks.
    .. [2] Riquelme, Tucker, Snoek (2018), Deep Bayesian bandits showdown: NeuralLinear.
    """

    class Params(HeadParams):
        kind: Literal["neural_linear_ts"] = "neural_linear_ts"
        noise: Literal["fixed", "inverse_gamma"] = param(
            "fixed", title="Noise model", structural=True,
            help="fixed: the noise variance that is set. inverse_gamma: learned from the errors, per head.",
        )  # fmt: skip
        sigma2: float = param(
            0.25, title="Noise", symbol=r"\sigma^2", ge=0, le=100, typical=(0, 2), basic=True,
            help="Variance of the reward noise it assumes: larger draws wander further from the mean.",
        )  # fmt: skip
        a0: float = param(
            6.0, title="Prior a", symbol="a_0", gt=0, le=1000, typical=(1, 20),
            help="With inverse_gamma noise: half as many observations as the prior is worth.",
        )  # fmt: skip
        b0: float = param(
            6.0, title="Prior b", symbol="b_0", gt=0, le=1000, typical=(0.1, 20),
            help="With inverse_gamma noise: half the squared error that the prior has seen.",
        )  # fmt: skip
        rebuild: bool = param(
            True, title="Rebuild the head", structural=True,
            help="After each training all that is remembered is encoded anew. Off: the head keeps stale features.",
        )  # fmt: skip
        training: Literal["replay", "everything"] = param(  # the head is rebuilt from what is remembered
            "replay", title="Training", structural=True,
            help="replay: now and then some steps on batches of what is remembered. everything: each of these steps "
            "on all of it (slow).",
        )  # fmt: skip
        every: int = override_default(HeadParams, "every", 100)
        updates: int | None = override_default(HeadParams, "updates", 50)

    title = "Neural-linear TS"
    formula = (
        r"\tilde\theta^\top z_a,\quad\tilde\theta\sim\mathcal N(\hat\theta,\ \sigma^2A^{-1}),\quad z_a=\phi(x_a;\,w)"
    )
    uncertainty = "posterior"
    colour = "#009E73"
    dash = "dash"
    propensity = "monte_carlo"
    joint = True

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small, *others = super().test_params()
        return [small, *others, {**small, "noise": "inverse_gamma"}]

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        M = self.head.count.shape[1]
        self.sigma2, self.a0, self.b0 = self.column("sigma2"), self.column("a0"), self.column("b0")
        self.squares = np.zeros((len(self.params), M))  # sum r^2 of each head
        self.state += ("squares",)
        width = spec.n_candidates if self.per_arm else self.widths[-2]
        self.normals = streams.blocks("agent", lambda g, n: g.standard_normal((n, width)), width=width)
        self.luck = streams.blocks("agent", lambda g, n: g.random((n, M)), width=M, part=4)

    def scores(self, round: Round) -> FloatArray:
        return self.drawn(round, self.luck.at(round.step), self.normals.at(round.step))

    def drawn(self, round: Round, luck: FloatArray, normals: FloatArray) -> FloatArray:
        """Scores by these dice: uniforms (R, M) for sigma^2, standard normals for theta~."""
        encoded, sigma = self.encoded(round), np.sqrt(self.noise(luck))
        if not self.per_arm:
            return self.of_all(round, self.head.sample(encoded, sigma[:, 0], normals))
        mean, variance = self.head.predict(encoded)
        return np.asarray(mean + np.take_along_axis(sigma, round.items, axis=1) * np.sqrt(variance) * normals)

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.head.predict(self.encoded(round))
        mean, width = self.of_all(round, mean), self.of_all(round, np.sqrt(variance))
        sigma = np.sqrt(self.noise(self.luck.at(round.step)))
        scale = np.take_along_axis(sigma, round.items, axis=1) if self.per_arm else sigma
        return Explanation("sample", self.scores(round), mean, width, scale)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        luck, normals = self.luck.at(round.step).shape, self.normals.at(round.step).shape
        while True:
            yield self.drawn(round, generator.random(luck), generator.standard_normal(normals))

    def noise(self, luck: FloatArray) -> FloatArray:
        """sigma^2 of every head, (R, M): fixed, or drawn from its posterior by ``luck (R, M)``."""
        if self.params[0].noise == "fixed":
            return np.broadcast_to(self.sigma2[:, None], self.squares.shape)
        from scipy.special import gammaincinv

        explained = (self.head.theta * self.head.b).sum(axis=2)  # theta' A theta
        a = self.a0[:, None] + self.head.count / 2
        b = self.b0[:, None] + np.maximum(self.squares - explained, 0) / 2
        return np.asarray(b / gammaincinv(a, np.maximum(luck, 2.0**-54)))

    def absorb(self, round: Round, at: IntArray, slate: IntArray, feedback: Feedback) -> None:
        super().absorb(round, at, slate, feedback)
        heads = np.take_along_axis(round.items, slate, axis=1) if self.per_arm else np.zeros_like(slate)
        rows = np.broadcast_to(np.arange(len(slate))[:, None], slate.shape)
        shows = self.shows(feedback)
        np.add.at(self.squares, (rows, heads), shows * targets(feedback, shows) ** 2)

    def train(self) -> None:
        super().train()
        if self.params[0].rebuild:
            self.squares[...] = self.rebuild()  # what is no longer remembered is no evidence of noise either
