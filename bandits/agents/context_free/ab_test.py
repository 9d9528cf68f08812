"""A/B test: uniform choice for a fixed number of decisions, then the winner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.params import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.selection import shares_of_largest
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

from .base import ContextFreeAgent
from .loop import Stretch, count, play

# that its memory is estimated for
MAX_SEGMENTS = 16


class ABTest(ContextFreeAgent):
    """A/B/n test [1]_: uniform choice for m decisions, then the item with the highest CTR of the
    test, for good.

    After the test nothing is learned. The CTR of an item that the test did not show is 0; winners
    with the same CTR are shown in random turn. With
    ``winner`` segment the CTRs, and so the winners, are those of each user segment; the m decisions
    are counted over all segments together.

    References
    ----------
    .. [1] Lattimore, Szepesvári (2020), Bandit algorithms, Algorithm 1 (explore-then-commit).

    Attributes
    ----------
    tested : int64 (R,)
        Decisions of the test whose feedback is known.
    shown, clicks : float64 (R, G n_items)
        Counts of the test, one block of items for each of G segments (1 with ``winner`` all).
    """

    class Params(LearnerParams):
        kind: Literal["ab_test"] = "ab_test"
        test: int = param(
            2000,
            title="Test length",
            symbol="T_0",
            unit="decisions",
            ge=1,
            le=10_000_000,
            typical=(100, 20_000),
            basic=True,
            sweep=(100, 20_000),
            help=(
                "Number of decisions that choose uniformly at random; from then on the item with "
                "the highest CTR is shown. Larger values find the winner more reliably and lose "
                "more clicks until then; usually 20 to 400 per item."
            ),
        )
        winner: Literal["all", "segment"] = param(
            "all",
            title="Winner",
            structural=True,
            help=(
                "Whom the winner is for. all: one item for all users. segment: one item for each "
                "user segment, from the decisions of that segment."
            ),
        )

    title = "A/B test"
    keywords = "split test"
    formula = r"\mathrm{Uniform}\ \text{while}\ t<T_0,\quad\text{then}\ \bar r_a(T_0)"
    colour = "#7A5195"
    propensity = "exact"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        K, self.test = spec.n_candidates, self.column("test")
        self.uniforms = streams.blocks("agent", lambda g, n: g.random((n, K)), width=K)
        groups = access.n_segments if self.params[0].winner == "segment" else 1
        self.tested = np.zeros(len(self.params), np.int64)
        self.shown = np.zeros((len(self.params), groups * spec.n_items))
        self.clicks = np.zeros_like(self.shown)
        self.state = ("shown", "clicks", "tested")

    @property
    def testing(self) -> BoolArray:
        """Rows whose test is not over, bool (R,)."""
        return np.asarray(self.tested < self.test)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        super().learn(self._in_blocks(round), slate, _where(feedback, self.testing))
        self.tested += self.testing & feedback.examined.any(axis=1)

    def rates(self, round: Round) -> FloatArray:
        """Return the CTR of the candidates in the test, float64 (R, K)."""
        shown, clicks = self.counts(self._in_blocks(round))
        return np.asarray(clicks / np.where(shown > 0, shown, 1))

    def probabilities(self, round: Round) -> FloatArray:
        uniform = round.available / round.available.sum(axis=1, keepdims=True)
        winner = shares_of_largest(np.where(round.available, self.rates(round), -np.inf))
        return np.where(self.testing[:, None], uniform, winner)

    def scores(self, round: Round) -> FloatArray:
        return np.where(self.testing[:, None], self.uniforms.at(round.step), self.rates(round))

    def play(self, steps: PredrawnSteps, alive: BoolArray) -> IntArray | None:
        if self.params[0].winner == "segment":
            return None
        uniforms = self.uniforms.slice(steps.start, len(steps.context))
        return _play((self.test, self.tested, uniforms), self.stretch(steps, alive))

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        while True:
            yield np.where(
                self.testing[:, None], generator.random(round.items.shape), self.rates(round)
            )

    def explain(self, round: Round) -> Explanation:
        return Explanation("greedy", self.scores(round), self.rates(round), randomised=self.testing)

    def _in_blocks(self, round: Round) -> Round:
        """Return the round with items numbered by segment and item."""
        if self.params[0].winner == "all":
            return round
        return round._replace(items=round.items + self.spec.n_items * round.segments[:, None])

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | ({"segments"} if params.winner == "segment" else set())

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        return [] if "segments" in spec.capabilities else [{"winner": "all"}]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        return super().memory(params, spec) + 64 * spec.n_items * MAX_SEGMENTS * int(
            params.winner == "segment"
        )

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{"test": 30}, {"test": 30, "winner": "segment"}]


def _where(feedback: Feedback, rows: BoolArray) -> Feedback:
    """Return the feedback of some rows; the others examined nothing."""
    kept = rows[:, None]
    return Feedback(np.where(kept, feedback.rewards, 0.0), feedback.examined & kept)


@njit(nogil=True)
def _score(
    own: Any, shown: FloatArray, clicks: FloatArray, r: int, t: int, out: FloatArray
) -> None:
    test, tested, uniforms = own
    for k in range(len(out)):
        rate = clicks[k] / (shown[k] if shown[k] > 0 else 1.0)
        out[k] = uniforms[t, r, k] if tested[r] < test[r] else rate


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
    test, tested, _ = own
    if tested[r] < test[r]:
        count(own, shown, clicks, r, item, exposure, reward)
        tested[r] += 1


@njit(cache=True, nogil=True)
def _play(own: Any, stretch: Stretch) -> IntArray:
    return play(_score, _learn, own, stretch)
