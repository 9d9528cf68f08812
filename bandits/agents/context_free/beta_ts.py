"""Thompson sampling with a Beta posterior per item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.base import Propensity
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, PredrawnSteps, Round, WorldAccess, WorldSpec
from bandits.models.beta_draws import BetaStreams
from bandits.models.largest import beta_largest

from .base import ForgettingContextFreeAgent, ForgettingCountsParams

LEAST_CLICKS, LEAST_MISSES = 0.1, 0.5  # of a prior; below, draws in double precision tie at 0 or 1


class BetaTS(ForgettingContextFreeAgent):
    """Thompson sampling without context [1]_: draws each item's CTR from Beta(a + clicks, b + misses).

    Discounted Thompson sampling [2]_ multiplies clicks and misses by gamma at every step; a window counts its steps
    alone. The prior is kept whole.

    Propensities are exact with a prior of at least 0.1 clicks and 0.5 misses; others make many draws equal to 1.

    References
    ----------
    .. [1] Thompson (1933); Chapelle, Li (2011), An empirical evaluation of Thompson sampling, Algorithm 2.
    .. [2] Raj, Kalyani (2017), Taming non-stationary bandits: a Bayesian approach, Algorithm 1.
    """

    class Params(ForgettingCountsParams):
        kind: Literal["beta_ts"] = "beta_ts"
        prior_clicks: float = param(
            1.0, title="Prior clicks", symbol="a", ge=0.01, le=1000, basic=True,
            help="Pseudo-clicks of each item before any data (Beta prior). Larger values start from a higher CTR and "
            "explore longer; a = b = 1 is the uniform prior.",
        )  # fmt: skip
        prior_misses: float = param(
            1.0, title="Prior misses", symbol="b", ge=0.01, le=1000, basic=True,
            help="Pseudo-exposures without a click before any data (Beta prior). Larger values start from a lower "
            "CTR; a = b = 1 is the uniform prior.",
        )  # fmt: skip

    title = "Beta Thompson"
    formula = r"\tilde p_a\sim\mathrm{Beta}\big(a+\text{clicks}_a,\ b+\text{misses}_a\big)"
    uncertainty = "posterior"
    colour = "#D55E00"
    propensity: Propensity = "monte_carlo"
    needs = frozenset({"binary"})

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.a, self.b = self.column("prior_clicks"), self.column("prior_misses")
        if self.a.min() >= LEAST_CLICKS and self.b.min() >= LEAST_MISSES:
            self.propensity = "exact"
        # rejection sampling uses a varying amount of numbers: every step starts at its own place in the row's stream
        self._draws = BetaStreams([streams.generator("agent", row=row) for row in streams.rows])

    def scores(self, round: Round) -> FloatArray:
        return self._draws.draw(round.step, *self.posterior(round))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.forgets(self.params[0]):
            return None
        once = self.exposure(Feedback(np.zeros((1, 1)), np.ones((1, 1), np.bool_)))[0, 0]
        return self._draws.play(
            steps.start, self.a, self.b, self.shown, self.clicks, float(once), steps.row, steps.probabilities,
            np.ascontiguousarray(steps.uniforms), alive,
        )  # fmt: skip

    def posterior(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Return the Beta parameters of the candidates, two of float64 (R, K)."""
        shows, clicks = self.counts(round)
        return self.a[:, None] + np.maximum(clicks, 0), self.b[:, None] + np.maximum(shows - clicks, 0)

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
