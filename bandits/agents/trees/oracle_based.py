"""Exploration on any regressor or classifier of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.agents.inverse_gap import InverseGapAgent, InverseGapParams
from bandits.agents.model_params import window_param
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import mixed_with_uniform, shares_of_largest, softmax
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.estimators import check_estimator, fitted, is_classifier, predicted
from bandits.models.observations import planned_fits, refit_params

from .base import RefittedAgent

EVERY, GROWTH, HISTORY = refit_params()
# of the row's agent stream
FIT_PART = 11
GRADIENT_BOOSTING = "GradientBoostingRegressor", "n_estimators=30, max_depth=3"


class OracleBased(RefittedAgent, InverseGapAgent):
    """Any estimator of scikit-learn as the regression oracle [1]_, refitted on a schedule:
    gradient-boosted trees by default.

    epsilon: the best estimate, or a random candidate with probability epsilon. softmax: P(a) ~
    exp(y_a / tau). squarecb: inverse gap weighting, see `SquareCB`. bootstrap: the best estimate of
    one of B estimators, each fitted to a bootstrap sample [2]_.

    A fit costs what the estimator costs, for every model (one per arm, or one), bootstrap member
    and replication. T observations take about T / m fits at first, and ln(T / T_0) / ln(1 + growth)
    later; the note of a run states how many. A stored run holds the observations, and resumes by
    repeating the last fit with the same seed: an estimator whose second fit differs is refused.

    References
    ----------
    .. [1] Bietti, Agarwal, Langford (2021), A contextual bandit bake-off, sections 2 and 3.
    .. [2] Nilsson, Johansson, Åkerblom, Chehreghani (2024), Tree ensembles for contextual bandits;
           Elmachtoub, McNellis, Oh, Petrik (2017), A practical method for solving contextual
           bandit problems using decision trees, Algorithm 1 (TreeBootstrap).
    """

    class Params(InverseGapParams):
        kind: Literal["oracle_based"] = "oracle_based"
        estimator: str = param(
            GRADIENT_BOOSTING[0],
            title="Estimator",
            structural=True,
            basic=True,
            pattern=r"^[A-Z][A-Za-z]{2,59}$",
            help=(
                "Name of a regressor or classifier of scikit-learn, such as "
                "RandomForestClassifier, HistGradientBoostingRegressor or LogisticRegression."
            ),
        )
        options: str = param(
            GRADIENT_BOOSTING[1],
            title="Options",
            structural=True,
            pattern=r"^[\w=., '+-]{0,200}$",
            help="Arguments of the estimator, such as n_estimators=30, max_depth=3; may be empty.",
        )
        sharing: Literal["per_arm", "shared"] = param(
            "per_arm",
            title="Sharing",
            structural=True,
            help=(
                "Which arms share an estimator. per_arm: one per arm. shared: one for all arms, "
                "which costs less."
            ),
        )
        exploration: Literal["epsilon", "softmax", "squarecb", "bootstrap"] = param(
            "epsilon",
            title="Exploration",
            structural=True,
            basic=True,
            help=(
                "epsilon: a random arm at times. softmax: by the estimates over the temperature. "
                "squarecb: by inverse gaps. bootstrap: one of several estimators decides."
            ),
        )
        epsilon: float = param(
            0.05,
            title="Exploration rate",
            symbol=r"\varepsilon",
            ge=0,
            le=1,
            help=(
                "Probability of choosing a random arm (epsilon). Larger values explore more; "
                "usually 0.01 to 0.2."
            ),
        )
        temperature: float = param(
            0.05,
            title="Temperature",
            symbol=r"\tau",
            gt=0,
            le=10,
            help=(
                "Divides the estimates (softmax). Larger values explore more; usually 0.01 to 0.5."
            ),
        )
        members: int = param(
            5,
            title="Ensemble size",
            symbol="M",
            ge=2,
            le=100,
            structural=True,
            help=(
                "Number of estimators (bootstrap). Larger ensembles represent the uncertainty "
                "better and take longer; usually 5 to 30."
            ),
        )
        every: int = EVERY
        fit_growth: float = GROWTH
        history: int = HISTORY
        window: int | None = window_param(later=False)

        @classmethod
        def idle(cls, values: dict[str, Any]) -> frozenset[str]:
            used = {
                "epsilon": {"epsilon"},
                "softmax": {"temperature"},
                "squarecb": {"gap_weight", "growth"},
                "bootstrap": {"members"},
            }
            own = used.get(str(values.get("exploration", "epsilon")), set())
            return super().idle(values) | frozenset(set().union(*used.values()) - own)

        @model_validator(mode="after")
        def _can_be_resumed(self) -> Self:
            # loads scikit-learn, so the default, which a test checks, is not tried
            if (self.estimator, self.options) != GRADIENT_BOOSTING:
                check_estimator(self.estimator, self.options)
            return self

    title = "Oracle-based"
    keywords = "random forest, nearest neighbours"
    formula = r"\hat f_a(x_a),\ \text{explored by }\varepsilon,\ \text{softmax, inverse gaps or bootstrap}"  # noqa: E501
    colour = "#0072B2"
    dash = "dash"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p, R = self.params[0], len(self.params)
        self.epsilon, self.temperature = self.column("epsilon"), self.column("temperature")
        self.bootstrap = p.exploration == "bootstrap"
        self.members = p.members if self.bootstrap else 1
        # of each row: its models by member and arm, and what they predict by context
        self._models: list[list[dict[int, Any]] | None] = [None] * R
        self._known: list[dict[int, FloatArray]] = [{} for _ in range(R)]
        self._contexts: Contexts | None = None

    def member_estimates(self, round: Round) -> FloatArray:
        """Estimate the reward of every candidate by every member, float64 (R, B, K)."""
        # the same object at every step where contexts are fixed
        if round.contexts is not self._contexts:
            self._contexts = round.contexts
            self._known = [{} for _ in self.params]
        out, items, x = [], round.items, round.features
        fixed = self.spec.n_items == items.shape[1]
        for r, c in enumerate(round.context.tolist()):
            found = self._known[r].get(c) if fixed else None
            if found is None:
                found = self._predict(r, x[r], items[r])
                self._known[r][c] = found
            out.append(found)
        return np.stack(out)

    def _predict(self, row: int, x: FloatArray, items: IntArray) -> FloatArray:
        """Predict the candidates of one row, float64 (B, K)."""
        models = self.models(row)
        out = np.zeros((self.members, len(x)))
        for b, of_member in enumerate(models):
            groups = (
                [(0, np.arange(len(x)))] if self.shared else [(m, [k]) for k, m in enumerate(items)]
            )
            for m, own in groups:
                model = of_member.get(int(m), of_member.get(-1, 0.0))
                constant = isinstance(model, float)
                out[b, own] = model if constant else predicted(model, x[own])
        return out

    def models(self, row: int) -> list[dict[int, Any]]:
        """Return the estimators of each member by arm; -1 is the mean, for arms without data.

        After a run was loaded they are fitted again, to the same bits."""
        known = self._models[row]
        if known is None:
            known = self._models[row] = self._fit(row)
        return known

    def _fit(self, row: int) -> list[dict[int, Any]]:
        """Fit the estimators of a row to the observations of its last fit."""
        x, items, rewards, _ = self.observed.of_fit(row)
        if not len(rewards):
            return [{} for _ in range(self.members)]
        p, block = self.params[row], int(self.observed.fits[row])
        generator = self.streams.generator(
            "agent", row=self.streams.rows[row], part=FIT_PART, block=block
        )
        arms = np.zeros_like(items) if self.shared else items
        made = []
        for _ in range(self.members):
            own = np.arange(len(rewards))
            if self.bootstrap:
                own = generator.integers(len(rewards), size=len(rewards))
            of_arm: dict[int, Any] = {-1: float(rewards[own].mean())}
            for m in np.unique(arms).tolist():
                seed, mine = int(generator.integers(2**31)), own[arms[own] == m]
                if len(mine):
                    of_arm[m] = fitted(p.estimator, p.options, seed, x[mine], rewards[mine])
            made.append(of_arm)
        return made

    def probabilities(self, round: Round) -> FloatArray:
        each = self.member_estimates(round)
        available, p = round.available, self.params[0]
        if self.bootstrap:
            best = shares_of_largest(np.where(available[:, None], each, -np.inf))
            return np.asarray(best.mean(axis=1))
        y = each[:, 0]
        if p.exploration == "squarecb":
            return super().probabilities(round)
        offered = np.where(available, y, -np.inf)
        if p.exploration == "epsilon":
            return mixed_with_uniform(shares_of_largest(offered), self.epsilon, available)
        return softmax(y / self.temperature[:, None], available)

    def estimates(self, round: Round) -> FloatArray:
        return np.asarray(self.member_estimates(round).mean(axis=1))

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        x = round.features
        for r, s in np.argwhere(feedback.examined).tolist():
            k = slate[r, s]
            item, reward = int(round.items[r, k]), feedback.rewards[r, s]
            self.observed.add(r, round.step, x[r, k], item, reward, 1.0)
        for r in range(len(slate)):
            if self.observed.due(r):
                self.observed.begin_fit(r, round.step)
                self._models[r], self._known[r] = None, {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore saved observations; the estimators are fitted at the next choice."""
        super().load_state_dict(state)
        self._models, self._known = [None] * len(self.params), [{} for _ in self.params]

    def note(self) -> str:
        models = self.members * (1 if self.shared else self.spec.n_items)
        return f"{self.observed.fits.mean():.0f} fits of {models} models per replication"

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        default = params.estimator == GRADIENT_BOOSTING[0]
        classifier = not default and is_classifier(params.estimator)
        return super().requires(params) | ({"binary"} if classifier else set())

    @classmethod
    def least_work(cls, params: Any, spec: SimulatorSpec, steps: int) -> float:
        """Compute the operations of reading every observation once in every fit."""
        fits = planned_fits(params.every, params.fit_growth, params.history, steps)
        members = params.members if params.exploration == "bootstrap" else 1
        return float(fits * params.every * members * spec.n_features)

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        observed = cls.observed_memory(params, spec)
        members = params.members if params.exploration == "bootstrap" else 1
        # with their copy in a checkpoint; trees take about as much as what they are fitted to
        return int(super().memory(params, spec) + observed * (2 + members))

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small: dict[str, Any] = {"options": "max_depth=2", "every": 25, "history": 40}
        return [
            {
                **small,
                "estimator": "DecisionTreeClassifier",
                "sharing": "shared",
                "exploration": "bootstrap",
                "members": 2,
                "window": 20,
            },
            {**small, "estimator": "DecisionTreeRegressor", "exploration": "squarecb"},
        ]
