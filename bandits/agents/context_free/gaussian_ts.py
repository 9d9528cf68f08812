"""Thompson sampling of Gaussian rewards with unknown variance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.base import Propensity
from bandits.agents.model_params import noise_scale_param, noise_shape_param
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
from bandits.models.student import (
    normal_quantiles,
    quantile,
    quantile_bounds,
    quantiles,
    stdtrit_address,
)

from .base import ForgettingContextFreeAgent, ForgettingCountsParams
from .loop import Stretch, count, play

# the quantile of 0 is infinite
LEAST = 2.0**-54
# a score that is certain to be lower by this share cannot be the best, whatever is rounded
SLACK = 1e-9


class GaussianTS(ForgettingContextFreeAgent):
    """Thompson sampling without context for rewards on any scale: mean and variance of each item
    are unknown [1]_.

    With the normal-inverse-gamma prior (m, k, a0, b0), n rewards of sum s and sum of squares q give
    k_n = k + n, m_n = (k m + s) / k_n, a_n = a0 + n / 2 and b_n = b0 + (q + k m^2 - k_n m_n^2) / 2.
    The score is a draw of the mean: m_n + sqrt(b_n / (a_n k_n)) times Student's t with 2 a_n
    degrees of freedom.

    References
    ----------
    .. [1] Honda, Takemura (2014), Optimality of Thompson sampling for Gaussian bandits depends on
           priors; the posterior: Murphy (2007), Conjugate Bayesian analysis of the Gaussian
           distribution, section 3.

    Attributes
    ----------
    squares : float64 (R, n_items)
        Sum of squared rewards.
    """

    class Params(ForgettingCountsParams):
        kind: Literal["gaussian_ts"] = "gaussian_ts"
        prior_mean: float = param(
            0.0,
            title="Prior mean",
            symbol="m_0",
            ge=-1e6,
            le=1e6,
            typical=(-5, 5),
            basic=True,
            help=(
                "Mean reward that each item is expected to have before any data. Larger values "
                "try every item more often at first."
            ),
        )
        strength: float = param(
            0.1,
            title="Prior strength",
            symbol="k_0",
            gt=0,
            le=1000,
            typical=(0.01, 10),
            log=True,
            help=(
                "Number of rewards that the prior mean counts as. Larger values hold on to it for "
                "longer; usually 0.01 to 1."
            ),
        )
        a0: float = noise_shape_param()
        b0: float = noise_scale_param()

    title = "Gaussian Thompson"
    formula = r"\tilde\mu_a=m_n+\sqrt{b_n/(a_n k_n)}\;t_{2a_n}"
    uncertainty = "posterior"
    colour = "#D55E00"
    dash = "dashdot"
    propensity: Propensity = "monte_carlo"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        self.prior = [self.column(name)[:, None] for name in ("prior_mean", "strength", "a0", "b0")]
        self.squares = np.zeros((len(params), spec.n_items))
        self.state += ("squares",)
        K = spec.n_candidates
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, K)), width=K)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        if self.params[0].gamma < 1:
            self.squares *= self.gamma
        if self.window is not None:
            at = round.step % self.window
            old = (self._rows, self.ring_items[at])
            np.subtract.at(self.squares, old, self.ring_clicks[at] ** 2)
        items = round.items[self._rows, slate]
        np.add.at(self.squares, (self._rows, items), feedback.rewards**2)
        super().learn(round, slate, feedback)

    def posterior(self, round: Round) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return location, scale and degrees of freedom of the candidates' means, three of float64
        (R, K).
        """
        n, total = self.counts(round)
        squares = self.squares[self._rows, round.items]
        m, k, a, b = self.prior
        strength = k + np.maximum(n, 0)
        mean, shape = (k * m + total) / strength, a + np.maximum(n, 0) / 2
        # rounding may leave less than nothing
        spread = np.maximum(squares + k * m**2 - strength * mean**2, 0.0)
        return mean, np.sqrt((b + spread / 2) / (shape * strength)), 2 * shape

    def scores(self, round: Round) -> FloatArray:
        return self._draw(round, self.uniforms.at(round.step))

    def _draw(self, round: Round, uniforms: FloatArray) -> FloatArray:
        mean, width, freedom = self.posterior(round)
        return mean + width * quantiles(freedom, np.maximum(uniforms, LEAST))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.forgets(self.params[0]) or (address := stdtrit_address()) is None:
            return None
        R, K = self.shown.shape
        own = (
            self.squares,
            np.hstack(self.prior),
            self.uniforms.slice(steps.start, len(steps.context)),
            # location, scale and degrees of freedom, and whether they are known
            np.empty((3, R, K)),
            np.zeros((R, K), np.bool_),
            # the upper bound of each score
            np.empty(K),
            normal_quantiles(),
            address,
        )
        return _play(own, self.stretch(steps, alive))

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        while True:
            yield self._draw(round, generator.random(round.items.shape))

    def explain(self, round: Round) -> Explanation:
        mean, width, freedom = self.posterior(round)
        with np.errstate(divide="ignore"):
            deviation = width * np.sqrt(np.where(freedom > 2, freedom / (freedom - 2), np.inf))
        return Explanation("sample", self.scores(round), mean, deviation)


@njit(nogil=True)
def _score(
    own: Any, shown: FloatArray, clicks: FloatArray, r: int, t: int, out: FloatArray
) -> None:
    """Compute the draws that may be the highest, from bounds of all of them."""
    squares, prior, uniforms, posteriors, knowns, upper, table, function = own
    posterior, known = posteriors[:, r], knowns[r]
    m, k, a, b = prior[r]
    least = -np.inf
    for i in range(len(out)):
        if not known[i]:
            strength = k + max(shown[i], 0.0)
            mean, shape = (k * m + clicks[i]) / strength, a + max(shown[i], 0.0) / 2
            spread = max(squares[r, i] + k * m**2 - strength * mean**2, 0.0)
            posterior[0, i], posterior[2, i] = mean, 2 * shape
            posterior[1, i] = np.sqrt((b + spread / 2) / (shape * strength))
            known[i] = True
        mean, width, freedom = posterior[:, i]
        low, high = quantile_bounds(freedom, max(uniforms[t, r, i], LEAST), table)
        least, upper[i] = max(least, mean + width * low), mean + width * high
    floor, n, best = least - SLACK * (1 + abs(least)), 0, 0
    for i in range(len(out)):
        out[i] = -np.inf
        if not upper[i] < floor:
            n, best = n + 1, i
    if n == 1:
        # whatever it is
        out[best] = upper[best]
        return
    for i in range(len(out)):
        if not upper[i] < floor:
            mean, width, freedom = posterior[:, i]
            out[i] = mean + width * quantile(function, freedom, max(uniforms[t, r, i], LEAST))


@njit(nogil=True)
def _learn(
    own: Any,
    shown: FloatArray,
    clicks: FloatArray,
    r: int,
    item: int,
    exposure: float,
    reward: float,
) -> None:
    squares, _, _, _, known, _, _, _ = own
    squares[r, item] += reward**2
    known[r, item] = False
    count(own, shown, clicks, r, item, exposure, reward)


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, _learn, own, stretch)
