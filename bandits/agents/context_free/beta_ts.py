"""Thompson sampling with a Beta posterior per item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from bandits.agents.base import Propensity
from bandits.agents.model_params import check_prior, closest_prior, every_param, groups_of
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    PredrawnSteps,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.largest import beta_largest

from .base import ForgettingContextFreeAgent, ForgettingCountsParams

# of a prior; below, draws in double precision tie at 0 or 1
LEAST_CLICKS, LEAST_MISSES = 0.1, 0.5
# exposures that a prior counts as, at most
STRONGEST = 1000.0


class BetaPrior(NamedTuple):
    """Pseudo-clicks and pseudo-misses."""

    clicks: float
    misses: float


def beta_prior(shows: FloatArray, clicks: FloatArray) -> BetaPrior | None:
    """Estimate the Beta distribution that the rates of several items are drawn from.

    None with too few data.

    The variance of the rates is the variance between items, beyond that of clicks within items
    (one-way analysis of variance with unequal numbers of observations) [1]_.

    Parameters
    ----------
    shows, clicks : float64 (n,)

    References
    ----------
    .. [1] Kleinman (1973), Proportions with extraneous variance: single and independent samples.
    """
    seen = shows > 0
    n, c = shows[seen], clicks[seen]
    items, total = len(n), float(n.sum())
    if items < 2 or total <= items:
        return None
    rate, rates = float(c.sum()) / total, c / n
    within = float((n * rates * (1 - rates)).sum()) / (total - items)
    between = float((n * (rates - rate) ** 2).sum()) / (items - 1)
    size = (total - float((n**2).sum()) / total) / (items - 1)
    variance = (between - within) / size
    strength = STRONGEST if variance * STRONGEST <= within else within / variance
    return BetaPrior(max(rate * strength, LEAST_CLICKS), max((1 - rate) * strength, LEAST_MISSES))


class BetaTS(ForgettingContextFreeAgent):
    """Thompson sampling without context [1]_: draws each item's CTR from Beta(a + clicks, b +
    misses).

    Discounted Thompson sampling [2]_ multiplies clicks and misses by gamma at every step; a window
    counts its steps alone. The prior is kept whole.

    With ``prior`` category or pooled, the prior is estimated from the items of the same category,
    or from all items, every ``prior_every`` steps (empirical Bayes, `beta_prior`); the given one
    holds until then.

    Propensities are exact with a prior of at least 0.1 clicks and 0.5 misses; others make many
    draws equal to 1.

    References
    ----------
    .. [1] Thompson (1933); Chapelle, Li (2011), An empirical evaluation of Thompson sampling,
           Algorithm 2.
    .. [2] Raj, Kalyani (2017), Taming non-stationary bandits: a Bayesian approach, Algorithm 1.
    """

    class Params(ForgettingCountsParams):
        kind: Literal["beta_ts"] = "beta_ts"
        prior_clicks: float = param(
            1.0,
            title="Prior clicks",
            symbol=r"\alpha_0",
            ge=0.01,
            le=1000,
            basic=True,
            help=(
                "Pseudo-clicks of each item before any data (Beta prior). Larger values start "
                "from a higher CTR and explore longer; a = b = 1 is the uniform prior."
            ),
        )
        prior_misses: float = param(
            1.0,
            title="Prior misses",
            symbol=r"\beta_0",
            ge=0.01,
            le=1000,
            basic=True,
            help=(
                "Pseudo-exposures without a click before any data (Beta prior). Larger values "
                "start from a lower CTR; a = b = 1 is the uniform prior."
            ),
        )
        prior: Literal["given", "category", "pooled"] = param(
            "given",
            title="Prior",
            structural=True,
            later=True,
            help=(
                "Where the CTR of an item starts. given: at the prior clicks and misses. "
                "category: at the CTRs of the items of the same category (empirical Bayes). "
                "pooled: at those of all items."
            ),
        )
        prior_every: int = every_param()

        @classmethod
        def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
            return closest_prior(super().closest(values), "given")

        @model_validator(mode="after")
        def _can_be_estimated(self) -> Self:
            check_prior(self.kind, dict(self), "given")
            return self

    title = "Beta Thompson"
    formula = (
        r"\tilde p_a\sim\mathrm{Beta}\big(\alpha_0+\text{clicks}_a,\ \beta_0+\text{misses}_a\big)"
    )
    uncertainty = "posterior"
    colour = "#D55E00"
    propensity: Propensity = "monte_carlo"
    needs = frozenset({"binary"})

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.a, self.b = self.column("prior_clicks"), self.column("prior_misses")
        if self.a.min() >= LEAST_CLICKS and self.b.min() >= LEAST_MISSES:
            self.propensity = "exact"
        # rejection sampling uses a varying amount of numbers: every step starts at its own place in
        # the row's stream
        p = params[0]
        self.prior, self.every = p.prior, p.prior_every
        if self.prior != "given":
            self.groups = groups_of(self.prior, len(params), spec, access)
            shape = len(params), int(self.groups.max()) + 1
            self.prior_clicks = np.broadcast_to(self.a[:, None], shape).copy()  # of each group
            self.prior_misses = np.broadcast_to(self.b[:, None], shape).copy()
            self.state += ("prior_clicks", "prior_misses")
        # compiles where it is imported
        from bandits.models.beta_draws import BetaStreams

        self._draws = BetaStreams([streams.generator("agent", row=row) for row in streams.rows])

    def scores(self, round: Round) -> FloatArray:
        return self._draws.draw(round.step, *self.posterior(round))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.forgets(self.params[0]) or self.prior != "given":
            return None
        once = self.exposure(Feedback(np.zeros((1, 1)), np.ones((1, 1), np.bool_)))[0, 0]
        return self._draws.play(
            steps.start,
            self.a,
            self.b,
            self.shown,
            self.clicks,
            float(once),
            steps.row,
            steps.probabilities,
            np.ascontiguousarray(steps.uniforms),
            alive,
            self.streams.ties,
        )

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        super().learn(round, slate, feedback)
        if self.prior != "given" and (round.step + 1) % self.every == 0:
            self.estimate()

    def estimate(self) -> None:
        """Estimate the priors of all groups from the items' data."""
        for r, g in np.ndindex(*self.prior_clicks.shape):
            own = self.groups[r] == g
            if (found := beta_prior(self.shown[r, own], self.clicks[r, own])) is not None:
                self.prior_clicks[r, g], self.prior_misses[r, g] = found

    def posterior(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Return the Beta parameters of the candidates, two of float64 (R, K)."""
        shows, clicks = self.counts(round)
        if self.prior != "given":
            group = np.take_along_axis(self.groups, round.items, axis=1)
            a, b = (
                np.take_along_axis(p, group, axis=1) for p in (self.prior_clicks, self.prior_misses)
            )
            return a + clicks, b + np.maximum(shows - clicks, 0)
        return self.a[:, None] + np.maximum(clicks, 0), self.b[:, None] + np.maximum(
            shows - clicks, 0
        )

    def probabilities(self, round: Round) -> FloatArray:
        if self.propensity != "exact":
            return super().probabilities(round)
        return beta_largest(*self.posterior(round), round.available)

    def explain(self, round: Round) -> Explanation:
        a, b = self.posterior(round)
        width = np.sqrt(a * b / (a + b + 1)) / (a + b)
        return Explanation("sample", self.scores(round), a / (a + b), width)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        a, b = self.posterior(round)
        while True:
            yield generator.beta(a, b)

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | ({"categories"} if params.prior == "category" else set())

    @classmethod
    def generalises(cls, params: Any) -> bool:
        return bool(params.prior != "given")

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        return [] if "categories" in spec.capabilities else [{"prior": "given"}]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        return super().memory(params, spec) + 24 * spec.n_items * int(params.prior != "given")

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [
            *super().test_params(),
            *({"prior": p, "prior_every": 7} for p in ("category", "pooled")),
        ]
