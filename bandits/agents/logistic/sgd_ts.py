"""SGD-TS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np

from bandits.agents.base import Agent
from bandits.agents.facts import Representation
from bandits.agents.model_params import ridge_param
from bandits.agents.params import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.linear import logistic_fit, logistic_kernels, ridge_kernels
from bandits.models.linear.logistic import Sharing, history_memory, make_history


class SGDTS(Agent):
    """Online stochastic gradient descent with Thompson sampling [1]_: O(D) per step, no matrix
    except in the first fit.

    It starts with tau random rounds and a fit theta^. After every batch j of tau rounds it takes
    one step on the log loss of the batch, theta_j = projection of theta_j-1 - eta / j grad onto the
    ball around theta^, and draws theta~ ~ N(mean of the iterates, sigma^2 / j I) once for all
    choices of the next batch.

    Notes
    -----
    Differences from the paper: its step size 1 / (alpha j) is eta / j, and its covariance A_j = (2
    c_3 g_1(j)^2 / (alpha j) + 2 g_2(j)^2 / j) I is sigma^2 / j I, as in the authors' code, which
    tunes eta and 2 g_1^2 + 2 g_2^2 as constants (the paper's g_1, g_2 grow like sqrt(log j) and
    need unknown constants). Where the maximum-likelihood estimate of the first tau rounds is
    infinite, that code changes an observation; here the start is a MAP estimate with a ridge. The
    first batch is used for this start alone; the paper's step on it, j = 1, is left out. At a
    maximum-likelihood start its gradient is zero and the two agree; at a MAP start it would move
    the weights by eta ridge theta^, away from zero. The radius of the ball, 2 in the paper (which
    assumes
    |theta*|, |x| <= 1), is a parameter.
    ``sharing`` per arm is the published algorithm on the features one-hot(arm) (x) x: one clock,
    one ball, one draw.

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
                "Variance of the posterior draw in the first batch; after j batches it is "
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
            symbol=r"\tau",
            unit="steps",
            ge=1,
            le=100_000,
            typical=(10, 1000),
            structural=True,
            help=(
                "Number of random steps at the start, and of steps between two updates (gradient "
                "step and posterior draw). Larger values update less often; usually 10 to 1,000."
            ),
        )
        radius: float = param(
            10.0,
            title="Radius",
            symbol=r"\rho",
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

    title = "SGD-TS"
    formula = (
        r"\tilde\theta^\top x_a,\quad\tilde\theta\sim\mathcal N(\bar\theta_j,\ \tfrac{\sigma^2}{j}I),\quad"  # noqa: E501
        r"\theta_j=\Pi_{|\theta-\hat\theta|\le\rho}\big(\theta_{j-1}-\tfrac{\eta}{j}\nabla\ell_j(\theta_{j-1})\big),"
        r"\ \bar\theta_j=\tfrac1j\textstyle\sum_{i\le j}\theta_i"
    )
    uncertainty = "posterior"
    exploration_param = "sigma2"
    colour = "#B8A500"
    dash = "longdash"
    needs = frozenset({"binary"})
    propensity = "monte_carlo"
    state = (
        *("center", "iterate", "mean", "drawn", "gradient"),
        *(f"history.{name}" for name in logistic_fit.History._fields),
    )

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p, R, K = params[0], len(params), spec.n_candidates
        M, D = 1 if p.sharing == "shared" else spec.n_items, spec.n_features
        self.batch, self.shared = p.batch, p.sharing == "shared"
        self.sigma2, self.rate = self.column("sigma2"), self.column("learning_rate")
        self.radius, self.ridge = self.column("radius"), self.column("ridge")
        # theta^, theta_j, the mean of the iterates, theta~, and the gradient of the batch so far
        self.center, self.iterate, self.mean, self.drawn, self.gradient = np.zeros((5, R, M, D))
        # of the random rounds
        self.history = make_history(R, p.batch * spec.slate, spec.n_stored)
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, K)), width=K)
        self.normals = streams.blocks(
            "agent", lambda g, n: g.standard_normal((n, M, D)), width=M * D, part=1
        )

    def models(self, round: Round) -> IntArray:
        """Return the model index of every candidate, int64 (R, K)."""
        return np.zeros_like(round.items) if self.shared else round.items

    def scores(self, round: Round) -> FloatArray:
        if round.step < self.batch:
            return self.uniforms.at(round.step)
        return self.logits(round, self.drawn)

    def logits(self, round: Round, theta: FloatArray) -> FloatArray:
        """Compute theta . x of every candidate, float64 (R, K), for ``theta (R, M, D)``."""
        values, columns, _ = round.contexts
        return ridge_kernels.ridge_mean(values, columns, round.context, self.models(round), theta)

    def explain(self, round: Round) -> Explanation:
        if (j := round.step // self.batch) == 0:
            return Explanation(
                "score", self.scores(round), randomised=np.ones(len(self.params), np.bool_)
            )
        width = np.linalg.norm(round.contexts.values[round.context], axis=-1) / np.sqrt(j)
        mean, sigma = self.logits(round, self.mean), np.sqrt(self.sigma2)[:, None]
        return Explanation("sample", self.scores(round), mean, width, sigma, logit=True)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        j = round.step // self.batch
        while True:
            if j:
                noise = np.sqrt(self.sigma2 / j)[:, None, None] * generator.standard_normal(
                    self.mean.shape
                )
                yield self.logits(round, self.mean + noise)
            else:
                yield generator.random(round.items.shape)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        values, columns, _ = round.contexts
        logistic_kernels.sgd_observe(
            values,
            values.view(np.int64),
            columns,
            round.context,
            self.models(round),
            slate,
            feedback.rewards,
            self.exposure(feedback),
            self.iterate,
            self.gradient,
            self.history,
            round.step < self.batch,
        )
        j, rest = divmod(round.step + 1, self.batch)
        if rest:
            return
        if j == 1:
            logistic_kernels.sgd_start(self.history, self.ridge, self.center, self.iterate)
        logistic_kernels.sgd_step(
            j,
            self.rate,
            self.sigma2,
            self.radius,
            self.normals.at(j),
            self.center,
            self.iterate,
            self.mean,
            self.drawn,
            self.gradient,
        )

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.ridge)

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "features"

    @classmethod
    def generalises(cls, params: Any) -> bool:
        return bool(params.sharing != "per_arm")

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{"batch": 7, "sharing": sharing} for sharing in get_args(Sharing)]

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        return [{"sharing": "shared"}] if "arm_features" in spec.capabilities else []

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        weights = spec.n_features * (1 if params.sharing == "shared" else spec.n_items)
        history = history_memory(params.batch * spec.slate, spec.n_stored)
        fit = 16 * spec.n_features**2
        return fit + history + 8 * weights * (5 + block_length(weights))
