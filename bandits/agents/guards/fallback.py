"""A fallback for agents that fail or take too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numba import njit

from bandits.agents.base import Agent, Propensity
from bandits.agents.context_free.baselines import Default, Random
from bandits.agents.context_free.popularity import Popularity
from bandits.agents.linear.epsilon_greedy import EpsilonGreedy
from bandits.base.explanation import Explanation
from bandits.base.randomness import Streams, block_length
from bandits.base.selection import gumbel_scores
from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, Round, SimulatorSpec

from . import params
from .base import Guard, decided

POLICIES: dict[str, type[Agent]] = {
    "random": Random,
    "epsilon_greedy": EpsilonGreedy,
    "popularity": Popularity,
    "default": Default,
}
FELL_BACK = "the fallback stood in, as the agent failed or missed its time limit"
# 99 % quantile of the standard normal distribution
Z99 = 2.3263478740408408


class GuardStreams(Streams):
    """The streams of a fallback: what it draws as an agent comes from the stream of guards."""

    def __init__(self, streams: Streams, part: int) -> None:
        super().__init__(streams.seed, streams.rows)
        self._part = part

    def generator(
        self, stream: Any, *, row: int = 0, part: int = 0, block: int = 0
    ) -> np.random.Generator:
        if stream == "agent":
            stream, part = "guard", self._part + part
        return super().generator(stream, row=row, part=part, block=block)


class Fallback(Guard):
    """Another policy decides where the agent raises an error, scores NaN (it has diverged), or
    misses its time limit.

    Response times are simulated, log-normal by median and 99th percentile, so that runs are
    reproducible. An error in choosing counts for all rows of that step; after an error in learning
    the agent is not asked again."""

    guard: params.Fallback

    def __init__(
        self, guard: params.Fallback, inner: Agent, streams: Streams, position: int
    ) -> None:
        super().__init__(guard, inner, streams, position)
        R = len(self.params)
        cls = POLICIES[guard.to]
        params = [cls.Params()] * R  # type: ignore[call-arg]
        own = GuardStreams(streams, self._part + 1)
        self.policy = cls(params, self.spec, own, self.access)
        self.normals = self.draws(lambda g, n: g.standard_normal((n, 1)), 1)
        self.broken, self.fallbacks = np.zeros(1, np.bool_), np.zeros(R, np.int64)
        self.state = ("broken", "fallbacks", *(f"policy.{name}" for name in self.policy.state))
        self.error = ""
        self._fell = np.zeros(R, np.bool_)
        self._limit = deviations(guard)
        if inner.propensity == "deterministic":
            self.propensity = "exact"

    @property
    def fell_back(self) -> BoolArray:
        inside = self.inner.fell_back
        return self._fell if inside is None else self._fell | inside

    def _fallen(self, round: Round, scores: FloatArray) -> BoolArray:
        """Return the rows in which the agent scores NaN, or its response time exceeds the limit,
        bool (R,).
        """
        return fallen(scores, round.available, self.normals.at(round.step), self._limit)

    def scores(self, round: Round) -> FloatArray:
        own = self._own_scores(round)
        self._fell = self._fallen(round, own)
        if not np.count_nonzero(self._fell):
            return own
        return np.where(self._fell[:, None], self.policy.scores(round), own)

    def _own_scores(self, round: Round) -> FloatArray:
        """Return the agent's scores; NaN where it fails."""
        nothing = np.full(round.items.shape, np.nan)
        if self.broken[0]:
            return nothing
        try:
            return self.inner.scores(round)
        except Exception as error:  # noqa: BLE001
            self.error = f"{type(error).__name__}: {error}"
            return nothing

    @staticmethod
    def _failed(round: Round, scores: FloatArray) -> BoolArray:
        return np.asarray((np.isnan(scores) & round.available).any(axis=1))

    def shown(self, round: Round, slate: IntArray) -> None:
        super().shown(round, slate)
        if np.count_nonzero(self._fell):
            self.fallbacks += self._fell

    def deliver(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.policy.learn(round, slate, feedback)
        self._attempt(super().deliver, round, slate, feedback)

    def settle(self) -> None:
        if self._within is not None:
            self._attempt(super().settle)

    def _attempt(self, learning: Callable[..., None], *arguments: Any) -> None:
        """Let the agent learn, unless it has failed in that before."""
        if self.broken[0]:
            return
        try:
            learning(*arguments)
        except Exception as error:  # noqa: BLE001
            self.error = f"{type(error).__name__}: {error}"
            self.broken[0] = True

    def probabilities(self, round: Round) -> FloatArray:
        return self._stated(round, "probabilities")

    @property
    def slot_propensity(self) -> Propensity:
        own = self.inner.slot_propensity
        return "exact" if own == "deterministic" else own

    def slot_probabilities(self, round: Round) -> FloatArray:
        return self._stated(round, "slot_probabilities")

    def _stated(
        self, round: Round, name: Literal["probabilities", "slot_probabilities"]
    ) -> FloatArray:
        """Mix what the agent and the other policy state, float64 (R, ..., K)."""
        from scipy.special import ndtr

        instead: FloatArray = getattr(self.policy, name)(round)
        if self.broken[0]:
            return instead
        try:
            own: FloatArray = getattr(self.inner, name)(round)
            failed = self._failed(round, self.inner.scores(round)) | np.isnan(
                own.reshape(len(own), -1)
            ).any(axis=1)
        except Exception:  # noqa: BLE001
            return instead
        per_row = (-1, *[1] * (own.ndim - 1))
        late = np.where(failed, 1.0, ndtr(-self._limit)).reshape(per_row)
        return np.asarray(
            np.where(failed.reshape(per_row), instead, (1 - late) * own + late * instead)
        )

    def explain(self, round: Round) -> Explanation:
        own, policy = self._own_scores(round), self.policy.explain(round)
        fell = self._fallen(round, own)
        try:
            inner = None if np.isnan(own).all() else self.inner.explain(round)
        except Exception:  # noqa: BLE001
            inner = None
        if inner is None:
            everywhere = np.ones(len(fell), np.bool_)
            parts = Explanation("score", policy.score, randomised=everywhere)
            return parts._replace(guard=decided(parts, everywhere, FELL_BACK))
        randomised = fell if inner.randomised is None else fell | inner.randomised
        score = np.where(fell[:, None], policy.score, own)
        return inner._replace(
            score=score, randomised=randomised, guard=decided(inner, fell, FELL_BACK)
        )

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        try:
            return None if self.broken[0] else self.inner.spectrum(bases)
        except Exception:  # noqa: BLE001
            return None

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        drawn = None if self.broken[0] else self.inner.redraws(round, generator)
        policy = self.policy.probabilities(round)
        while True:
            scores = np.full(round.items.shape, np.nan)
            if drawn is not None:
                try:
                    scores = next(drawn)
                except StopIteration:
                    # the agent draws no samples
                    return
                except Exception:  # noqa: BLE001
                    drawn = None
            fell = self._failed(round, scores) | (
                generator.standard_normal(len(scores)) > self._limit
            )
            instead = gumbel_scores(policy, generator.random(scores.shape))
            yield np.where(fell[:, None], instead, scores)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "error": self.error}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.error = str(state["error"])

    def note(self) -> str:
        counted = f"{int(self.fallbacks.sum()):,} decisions by the fallback"
        parts = (self.inner.note(), counted, f"last error: {self.error}" if self.error else "")
        return ", ".join(part for part in parts if part)

    @staticmethod
    def guard_memory(guard: params.Fallback, spec: SimulatorSpec) -> int:
        """Compute the bytes per row."""
        cls = POLICIES[guard.to]
        return cls.memory(cls.Params(), spec) + 8 * block_length(1) + 32 * spec.n_candidates  # type: ignore[call-arg]


def deviations(guard: params.Fallback) -> float:
    """Return the time limit in standard deviations of the logarithm of the response time."""
    sigma = np.log(guard.p99_ms / guard.median_ms) / Z99
    gap = np.log(guard.budget_ms / guard.median_ms)
    return float(gap / sigma) if sigma > 0 else float(np.copysign(np.inf, gap))


@njit(cache=True, nogil=True)
def fallen(
    scores: FloatArray, available: BoolArray, normals: FloatArray, limit: float
) -> BoolArray:
    """Return the rows with a NaN among the available scores (R, K), or with ``normals (R, 1)``
    above the limit.
    """
    R, K = scores.shape
    out = np.empty(R, np.bool_)
    for r in range(R):
        out[r] = normals[r, 0] > limit
        for k in range(K):
            if available[r, k] and np.isnan(scores[r, k]):
                out[r] = True
                break
    return out
