"""Online bootstrap of ridge models."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.model_params import epsilon_param
from bandits.agents.rows import row_axis
from bandits.agents.stochastic import StochasticAgent
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.selection import (
    best_of,
    leading_gumbel_scores,
    mixed_with_uniform,
    shares_of_largest,
    tied_from,
)
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    KeyArray,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.linear.rank_one import REFRESH, refresh
from bandits.models.linear.ridge import Ridge
from bandits.models.linear.ridge_kernels import learn_one
from bandits.models.position_bias import weighted

from .base import LinearAgent
from .models import make_model
from .params import LinearParams

# P(w <= k) of the Poisson distribution with mean 1; the rest is below the spacing of the uniforms
_POISSON = np.cumsum([np.exp(-1) / factorial(k) for k in range(19)])


class Bag(StochasticAgent, LinearAgent):
    """Bagging [1]_: one of B models decides, each of which has learned from its own online
    bootstrap sample.

    P(a) = (1 - epsilon) / B * |{j: a is best by theta_j,a . x_a}| + epsilon / K

    Every observation counts for member j with a weight w_j ~ Poisson(1) [2]_, or 0 or 2
    (double_or_nothing) [3]_. Before any data all candidates are tied.

    Members differ in what they have observed only: an arm that none of them has observed, or that
    all have forgotten (gamma, window), they estimate at 0 alike. Therefore a random candidate is
    shown with probability epsilon, as in Vowpal Wabbit.

    References
    ----------
    .. [1] Agarwal, Hsu, Kale, Langford, Li, Schapire (2014), Taming the monster, section 6; Bietti,
           Agarwal, Langford (2021), A contextual bandit bake-off, Algorithm 3 (bag).
    .. [2] Oza, Russell (2001), Online bagging and boosting.
    .. [3] Eckles, Kaptein (2014), Thompson sampling with the online bootstrap.
    """

    class Params(LinearParams):
        kind: Literal["bag"] = "bag"
        members: int = param(
            10,
            title="Bag size",
            symbol="M",
            ge=2,
            le=100,
            structural=True,
            basic=True,
            help=(
                "Number of models. Larger bags represent the uncertainty better and take longer; "
                "usually 5 to 30."
            ),
            sweep=(2, 50),
        )
        epsilon: float = epsilon_param()
        weights: Literal["poisson", "double_or_nothing"] = param(
            "poisson",
            title="Bootstrap weights",
            structural=True,
            help=(
                "Weight of an observation for each model. poisson: 0, 1, 2, ... with mean 1. "
                "double_or_nothing: 0 or 2."
            ),
        )

    title = "Bag"
    keywords = "VW, Vowpal Wabbit"
    uncertainty = "posterior"
    formula = r"\hat\theta_{j,a}^\top x_a,\quad j\sim\mathcal U\{1..M\}"
    colour = "#7A5195"
    dash = "longdash"
    exploration_param = "epsilon"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        B, S = self.params[0].members, spec.slate
        self.members, self.epsilon = B, self.column("epsilon")
        self.model = make_model(
            [p for p in self.params for _ in range(B)],
            self.spec,
            streams,
            access._replace(categories=lambda: np.repeat(access.categories(), B, axis=0)),
            lambda step: self.copied(self.transformed(access.round_at(step))),
            joint=False,
        )
        # the weights of a step
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, S * B)), width=S * B)

    def copied(self, round: Round) -> Round:
        """Return the round with a row for each member."""
        B = self.members
        return round._replace(
            users=np.repeat(round.users, B),
            items=np.repeat(round.items, B, axis=0),
            context=np.repeat(round.context, B),
            available=np.repeat(round.available, B, axis=0),
            segments=np.repeat(round.segments, B),
        )

    def member_means(self, round: Round) -> FloatArray:
        """Estimate the reward of every candidate by every member, float64 (R, B, K)."""
        means = self.model.mean(self.copied(self.transformed(round)))
        return means.reshape(len(self.params), self.members, -1)

    def mean(self, round: Round) -> FloatArray:
        return np.asarray(self.member_means(round).mean(axis=1))

    def probabilities(self, round: Round) -> FloatArray:
        means = np.where(round.available[:, None], self.member_means(round), -np.inf)
        shares = np.asarray(shares_of_largest(means).mean(axis=1))
        return mixed_with_uniform(shares, self.epsilon, round.available)

    def explain(self, round: Round) -> Explanation:
        means = self.member_means(round)
        return super().explain(round)._replace(mean=means.mean(axis=1), width=means.std(axis=1))

    def weights(self, step: int) -> FloatArray:
        """Draw the weight of each slot for each member, float64 (R, B, S)."""
        return self._counted(self.uniforms.at(step)).reshape(len(self.params), self.members, -1)

    def _counted(self, u: FloatArray) -> FloatArray:
        if self.params[0].weights == "poisson":
            return np.searchsorted(_POISSON, u, side="right").astype(np.float64)
        return np.where(u < 0.5, 2.0, 0.0)

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        model, (values, columns, n_features) = self.compiled_model, steps.contexts
        # with a model per arm, which neither forgets nor estimates its prior
        if model is None or type(model) is not Ridge or model.sharing != "per_arm":
            return None
        if values.shape[2] == n_features:
            return None
        n = len(steps.context)
        once = self.exposure(Feedback(np.zeros((1, 1)), np.ones((1, 1), np.bool_)))[0, 0]
        return _play(
            values,
            columns,
            steps.context,
            steps.probabilities,
            steps.row,
            np.ascontiguousarray(steps.uniforms),
            alive,
            self.streams.ties,
            steps.start,
            model.A,
            model.inverse,
            model.b,
            model.theta,
            model.count,
            model.factor,
            float(once),
            self.epsilon,
            self._counted(self.uniforms.slice(steps.start, n)),
            self._uniforms.slice(steps.start, n),
        )

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        w = self.weights(round.step).reshape(-1, slate.shape[1])
        slates = np.repeat(slate, self.members, axis=0)
        rewards = np.repeat(feedback.rewards, self.members, axis=0)
        exposures = np.repeat(self.exposure(feedback), self.members, axis=0) * w
        # the target stays the reward per exposure: see `weighted`
        own = Feedback(rewards * w, exposures > 0)
        self.model.update(*weighted(self.copied(self.transformed(round)), slates, own, exposures))

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        found = super().spectrum(bases)
        assert found is not None
        each = found.reshape(len(self.params), self.members, *found.shape[1:])
        return np.asarray(each.mean(axis=1))

    def state_dict(self) -> dict[str, Any]:
        """Copy the state arrays, by name; the members have an axis behind that of the rows."""
        state = super().state_dict()
        for name, value in state.items():
            axis = row_axis(name)
            rows = (len(self.params), self.members)
            state[name] = value.reshape(*value.shape[:axis], *rows, *value.shape[axis + 1 :])
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore saved state arrays."""
        flat = {}
        for name, value in state.items():
            axis = row_axis(name)
            rows = len(self.params) * self.members
            flat[name] = value.reshape(*value.shape[:axis], rows, *value.shape[axis + 2 :])
        super().load_state_dict(flat)

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        width = params.members * spec.slate
        # one model more while they are made
        drawn = 8 * width * block_length(width)
        return int(super().memory(params, spec) * (params.members + 1) + drawn)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [
            {"members": 3},
            {"members": 2, "sharing": "shared", "window": 20, "weights": "double_or_nothing"},
            {"members": 2, "prior": "category", "prior_every": 7},
        ]


@njit(cache=True, nogil=True)
def _play(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    probabilities: FloatArray,
    row: IntArray,
    uniforms: FloatArray,
    alive: BoolArray,
    ties: KeyArray,
    start: int,
    A: FloatArray,
    inverse: FloatArray,
    b: FloatArray,
    theta: FloatArray,
    count: IntArray,
    factor: FloatArray,
    exposure: float,
    epsilon: FloatArray,
    weights: FloatArray,
    exploration: FloatArray,
) -> IntArray:
    """Advance T steps with one model per arm and member: row r has the models r B to r B + B - 1.

    ``weights (T, R, B)`` are those of the bootstrap, ``exploration (T, R, K)`` decides which item
    is shown; the others as in `bandits.models.linear.play_kernels.play_per_arm`.
    """
    T, R = context.shape
    C, K, N = values.shape
    B, D = weights.shape[2], b.shape[2]
    u, rows, x = np.empty(D), np.empty(D, np.int64), np.empty(N)
    out = np.full((T, R), -1)
    # means, and after how many observations of their model they were computed
    mean, after = np.empty((B, C, K)), np.empty((B, C, K), np.int64)
    shares, scores, every = np.empty(K), np.empty(K), np.ones(K, np.bool_)
    for r in range(R):
        after[:] = -1
        for t in range(T):
            if not alive[r]:
                break
            c = context[t, r]
            shares[:] = 0.0
            for j in range(B):
                highest, tied, diverged = -np.inf, 0, -1
                for k in range(K):
                    if after[j, c, k] != count[r * B + j, k]:
                        mean[j, c, k] = 0.0
                        for i in range(N):
                            weight = theta[r * B + j, k, columns[c, k, i]]
                            mean[j, c, k] += values[c, k, i] * weight
                        after[j, c, k] = count[r * B + j, k]
                    highest = max(highest, mean[j, c, k])
                    if np.isnan(mean[j, c, k]) and diverged < 0:
                        diverged = k
                # as in `shares_of_largest`
                if diverged >= 0:
                    shares[diverged] += 1.0
                    continue
                floor = tied_from(highest)
                for k in range(K):
                    tied += mean[j, c, k] >= floor
                for k in range(K):
                    if mean[j, c, k] >= floor:
                        shares[k] += 1.0 / tied
            for k in range(K):
                shares[k] = (1 - epsilon[r]) * (shares[k] / B) + epsilon[r] / K
            leading_gumbel_scores(shares, exploration[t, r], scores)
            best = best_of(scores, every, ties[r], start + t)
            out[t, r] = best
            reward = 1.0 if uniforms[t, r] < probabilities[row[t, r], best] else 0.0
            for j in range(B):
                w, m = weights[t, r, j] * exposure, r * B + j
                if w == 0:
                    continue
                # the target is the reward per exposure, as in `weighted`
                root = np.sqrt(w)
                for i in range(N):
                    x[i] = values[c, best, i] * root
                learn_one(
                    x,
                    columns[c, best],
                    reward * weights[t, r, j] / w * root,
                    A[m, best],
                    inverse[m, best],
                    b[m, best],
                    theta[m, best],
                    factor[m, best],
                    u,
                    rows,
                )
                count[m, best] += 1
                if count[m, best] % REFRESH == 0:
                    refresh(A[m, best], inverse[m, best], b[m, best], theta[m, best])
    return out
