"""Thompson sampling with a Beta posterior per item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from bandits.agents.base import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, WorldAccess, WorldSpec

from .base import ContextFreeAgent

_STRETCH = 2**40  # numbers of the agent's stream reserved for one step


class BetaTS(ContextFreeAgent):
    """Thompson sampling without context [1]_: draws each item's CTR from Beta(a + clicks, b + misses).

    References
    ----------
    .. [1] Thompson (1933); Chapelle, Li (2011), An empirical evaluation of Thompson sampling, Algorithm 2.
    """

    class Params(LearnerParams):
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
    propensity = "monte_carlo"
    needs = frozenset({"binary"})

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.a, self.b = self.column("prior_clicks"), self.column("prior_misses")
        # rejection sampling uses a varying amount of numbers: every step starts at its own place in the row's stream
        self._generators = [streams.generator("agent", row=row) for row in streams.rows]
        self._starts: list[Any] = [g.bit_generator.state for g in self._generators]

    def scores(self, round: Round) -> FloatArray:
        a, b = self.posterior(round)
        return np.stack([self._generator(r, round.step).beta(a[r], b[r]) for r in range(len(a))])

    def posterior(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Return the Beta parameters of the candidates, two of float64 (R, K)."""
        shows, clicks = self.counts(round)
        return self.a[:, None] + clicks, self.b[:, None] + np.maximum(shows - clicks, 0)

    def explain(self, round: Round) -> Explanation:
        a, b = self.posterior(round)
        width = np.sqrt(a * b / (a + b + 1)) / (a + b)
        return Explanation("sample", self.scores(round), a / (a + b), width)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        a, b = self.posterior(round)
        while True:
            yield generator.beta(a, b)

    def _generator(self, row: int, step: int) -> np.random.Generator:
        generator = self._generators[row]
        bits = generator.bit_generator
        assert isinstance(bits, np.random.PCG64)
        bits.state = self._starts[row]
        bits.advance(step * _STRETCH)
        return generator
