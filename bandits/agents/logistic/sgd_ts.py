"""SGD-TS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np

from bandits.agents.base import Agent, Propensity
from bandits.agents.facts import Representation
from bandits.agents.model_params import gamma_param, ridge_param
from bandits.agents.params import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.largest import normal_largest
from bandits.models.linear import logistic_fit, logistic_kernels, ridge_kernels
from bandits.models.linear.logistic import Sharing, history_memory, make_history


class SGDTS(Agent):
    """Online stochastic gradient descent with Thompson sampling [1]_: O(D) per step, no matrix
    except in the first fit.

    It starts with tau random rounds and a fit theta^. After every batch j of tau rounds it takes
    one step on the log loss of the batch, theta_j = projection of theta_j-1 - eta / j grad onto the
    ball around theta^. Each choice draws theta~ ~ N(mean of the iterates, sigma^2 / j I).

    It can forget: with ``gamma``, j is the discounted number of batches, j <- gamma^tau j + 1, so
    that steps and draws stay as large as after 1 / (1 - gamma^tau) batches, and old iterates lose
    their weight in the mean. The ball does not move.

    Notes
    -----
    Differences from the paper: theta~ is drawn for each choice, not once for all choices of the
    next batch. Choices of a batch that share a draw are not independent given the past, and have
    no propensities, however long feedback is held back. Rounds count when their feedback is
    learned from.
    Its step size 1 / (alpha j) is eta / j, and its covariance A_j = (2 c_3 g_1(j)^2 / (alpha j) +
    2 g_2(j)^2 / j) I is sigma^2 / j I, as in the authors' code, which tunes eta and 2 g_1^2 + 2
    g_2^2 as constants (the paper's g_1, g_2 grow like sqrt(log j) and need unknown constants).
    Where the maximum-likelihood estimate of the first tau rounds is infinite, that code changes an
    observation; here the start is a MAP estimate with a ridge. The first batch is used for this
    start alone; the paper's step on it, j = 1, is left out. At a maximum-likelihood start its
    gradient is zero and the two agree; at a MAP start it would move the weights by eta ridge
    theta^, away from zero. The radius of the ball, 2 in the paper (which assumes |theta*|, |x| <=
    1), is a parameter.
    ``sharing`` per arm is the published algorithm on the features one-hot(arm) (x) x: one clock,
    one ball. The draws of its candidates are independent, so that propensities are exact.

    References
    ----------
    .. [1] Ding, Hsieh, Sharpnack (2021), An efficient algorithm for generalized linear bandit:
       online stochastic gradient descent and Thompson sampling, Algorithm 1.
    """

    class Params(LearnerParams):
        kind: Literal["sgd_ts"] = "sgd_ts"
        sigma2: float = param(
            0.1,
            title="Posterior scale",
            symbol=r"\sigma^2",
            ge=0,
            le=1000,
            typical=(0, 10),
            basic=True,
            usual=(0.01, 1),
            help=(
                "Variance of the posterior draws after the first batch; after j batches it is "
                "divided by j. Larger values explore more; usually 0.01 to 1."
            ),
            sweep=(0.001, 10),
        )
        learning_rate: float = param(
            30.0,
            title="Step size",
            symbol=r"\eta",
            gt=0,
            le=100,
            typical=(0.1, 100),
            basic=True,
            log=True,
            usual=(1, 100),
            help=(
                "Size of the first gradient step; after j batches it is divided by j. Larger "
                "values learn faster and less stably; usually 1 to 100."
            ),
        )
        batch: int = param(
            10,
            title="Batch size",
            symbol="N",
            unit="steps",
            ge=1,
            le=100_000,
            typical=(10, 1000),
            structural=True,
            help=(
                "Number of random steps at the start, and of observations between two gradient "
                "steps. Larger values update less often; usually 10 to 1,000."
            ),
        )
        radius: float = param(
            10.0,
            title="Radius",
            symbol="R",
            gt=0,
            le=1000,
            typical=(1, 20),
            help=(
                "Maximum distance of the weights from the first fit (2 as published). Larger "
                "values constrain less; usually 1 to 20."
            ),
        )
        ridge: float = ridge_param(
            0.1, "act in the first fit alone; usually 0.1 to 10", usual=(0.1, 10)
        )
        sharing: Sharing = param(
            "per_arm",
            title="Sharing",
            structural=True,
            help=(
                "Which arms share weights. shared: one model for all arms, as published. "
                "per_arm: one model per arm."
            ),
        )
        gamma: float = gamma_param()

    title = "SGD-TS"
    formula = (
        r"\tilde\theta^\top x_a,\quad\tilde\theta\sim\mathcal N(\bar\theta_j,\ \tfrac{\sigma^2}{j}I),\quad"  # noqa: E501
        r"\theta_j=\Pi_{|\theta-\hat\theta|\le R}\big(\theta_{j-1}-\tfrac{\eta}{j}\nabla\mathcal L_j(\theta_{j-1})\big),"  # noqa: E501
        r"\ \bar\theta_j=\tfrac1j\textstyle\sum_{i\le j}\theta_i"
    )
    uncertainty = "posterior"
    exploration_param = "sigma2"
    colour = "#B8A500"
    dash = "longdash"
    needs = frozenset({"binary"})
    propensity: Propensity = "monte_carlo"
    state = (
        *("center", "iterate", "mean", "gradient", "seen", "batches"),
        *(f"history.{name}" for name in logistic_fit.History._fields),
    )

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p, R, K = params[0], len(params), spec.n_candidates
        M, D = 1 if p.sharing == "shared" else spec.n_items, spec.n_features
        self.batch, self.shared = p.batch, p.sharing == "shared"
        if not self.shared:
            self.propensity = "exact"
        self.sigma2, self.rate = self.column("sigma2"), self.column("learning_rate")
        self.radius, self.ridge = self.column("radius"), self.column("ridge")
        # of one batch
        self.discount = self.column("gamma") ** self.batch
        # theta^, theta_j, the mean of the iterates, and the gradient of the batch so far
        self.center, self.iterate, self.mean, self.gradient = np.zeros((4, R, M, D))
        # rounds learned from, and j
        self.seen, self.batches = np.zeros(R, np.int64), np.zeros(R)
        # of the random rounds
        self.history = make_history(R, p.batch * spec.slate, spec.n_stored)
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, K)), width=K)
        width = noise_width(p, spec)
        self.normals = streams.blocks(
            "agent", lambda g, n: g.standard_normal((n, width)), width=width, part=1
        )

    def models(self, round: Round) -> IntArray:
        """Return the model index of every candidate, int64 (R, K)."""
        return np.zeros_like(round.items) if self.shared else round.items

    @property
    def starting(self) -> BoolArray:
        """The rows that still choose at random, bool (R, 1)."""
        return np.asarray(self.seen < self.batch)[:, None]

    @property
    def deviation(self) -> FloatArray:
        """Standard deviation of a draw's entries, float64 (R, 1)."""
        return np.asarray(np.sqrt(self.sigma2 / np.maximum(self.batches, 1)))[:, None]

    def scores(self, round: Round) -> FloatArray:
        return self.drawn(round, self.uniforms.at(round.step), self.normals.at(round.step))

    def drawn(self, round: Round, uniforms: FloatArray, normals: FloatArray) -> FloatArray:
        """Compute scores (R, K) from uniforms (R, K), in the random rounds, and normals for
        theta~.
        """
        if (starting := self.starting).all():
            return uniforms
        if self.shared:
            sampled = self.logits(round, self.mean + (self.deviation * normals)[:, None])
        else:
            sampled = self.logits(round, self.mean) + self.deviation * norms(round) * normals
        return np.where(starting, uniforms, sampled) if starting.any() else sampled

    def logits(self, round: Round, theta: FloatArray) -> FloatArray:
        """Compute theta . x of every candidate, float64 (R, K), for ``theta (R, M, D)``."""
        values, columns, _ = round.contexts
        return ridge_kernels.ridge_mean(values, columns, round.context, self.models(round), theta)

    def probabilities(self, round: Round) -> FloatArray:
        if self.shared:
            return super().probabilities(round)
        largest = normal_largest(
            self.logits(round, self.mean), self.deviation * norms(round), round.available
        )
        uniform = round.available / round.available.sum(axis=1, keepdims=True)
        return np.where(self.starting, uniform, largest)

    def explain(self, round: Round) -> Explanation:
        random = self.starting[:, 0]
        if random.all():
            return Explanation("score", self.scores(round), randomised=random)
        width = norms(round) / np.sqrt(np.maximum(self.batches, 1))[:, None]
        mean, sigma = self.logits(round, self.mean), np.sqrt(self.sigma2)[:, None]
        parts = Explanation("sample", self.scores(round), mean, width, sigma, logit=True)
        return parts._replace(randomised=random) if random.any() else parts

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        normals = self.normals.at(round.step).shape
        while True:
            yield self.drawn(
                round, generator.random(round.items.shape), generator.standard_normal(normals)
            )

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        values, columns, _ = round.contexts
        starting, exposure = self.starting[:, 0], self.exposure(feedback)
        logistic_kernels.sgd_observe(
            values,
            values.view(np.int64),
            columns,
            round.context,
            self.models(round),
            slate,
            feedback.rewards,
            exposure,
            self.iterate,
            self.gradient,
            self.history,
            starting,
        )
        observed = exposure.any(axis=1)
        self.seen += observed
        ends = observed & (self.seen % self.batch == 0)
        if not ends.any():
            return
        first, rows = np.flatnonzero(ends & starting), np.flatnonzero(ends)
        self.batches[rows] = self.discount[rows] * self.batches[rows] + 1
        logistic_kernels.sgd_start(first, self.history, self.ridge, self.center, self.iterate)
        logistic_kernels.sgd_step(
            rows,
            self.batches,
            self.rate,
            self.radius,
            self.center,
            self.iterate,
            self.mean,
            self.gradient,
        )

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def forgets(cls, params: Any) -> bool:
        return bool(params.gamma < 1)

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "features"

    @classmethod
    def generalises(cls, params: Any) -> bool:
        return bool(params.sharing != "per_arm")

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small = [{"batch": 7, "sharing": sharing} for sharing in get_args(Sharing)]
        return [*small, {**small[0], "gamma": 0.98}]

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        return [{"sharing": "shared"}] if "arm_features" in spec.capabilities else []

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        weights = spec.n_features * (1 if params.sharing == "shared" else spec.n_items)
        history = history_memory(params.batch * spec.slate, spec.n_stored)
        fit = 16 * spec.n_features**2
        width = noise_width(params, spec)
        return fit + history + 8 * (4 * weights + 2 + width * block_length(width))


def noise_width(params: Any, spec: SimulatorSpec) -> int:
    """Count the normals that a choice needs: one per weight of a shared model, else one per
    candidate.
    """
    return spec.n_features if params.sharing == "shared" else spec.n_candidates


def norms(round: Round) -> FloatArray:
    """Return the Euclidean length of the candidates' features, float64 (R, K)."""
    return np.asarray(np.linalg.norm(round.contexts.values, axis=-1)[round.context])
