"""Advance a lane and record what a system in production sees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from bandits.agents.guards.base import unguarded
from bandits.base.explanation import Explanation
from bandits.base.selection import explored_share
from bandits.base.types import Contexts, FloatArray, IntArray, Round
from bandits.experiments.lane import Lane, join
from bandits.experiments.lockstep import CHUNK

from .alarm import Need, Samples, Steps, join_samples

# steps from one sample of features, means and probabilities to the next
EVERY = 10
# of the scores, for probabilities that an agent does not state
REDRAWS = 100
SAMPLED: frozenset[Need] = frozenset({"features", "means", "probabilities"})


def offered(lane: Lane) -> frozenset[Need]:
    """Return what monitors can have from a lane at its first step."""
    simulator, agent = lane.simulator, lane.agent
    facts: dict[Need, bool] = {
        "features": True,
        "means": agent.explain(simulator.round_at(lane.step)).mean is not None,
        "probabilities": agent.propensity in ("exact", "monte_carlo"),
        "fallbacks": agent.fell_back is not None,
        "segments": len(simulator.segment_names()) > 1,
        "single": simulator.spec.slate == 1,
        "binary": "binary" in simulator.spec.capabilities,
    }
    return frozenset(need for need, there in facts.items() if there)


def observe(
    lane: Lane, to: int, needs: frozenset[Need], *, every: int = EVERY, chunk: int = CHUNK
) -> Iterator[Steps]:
    """Advance a lane to a step and yield what is seen on the way, in chunks.

    Parameters
    ----------
    lane : Lane
    to : int
        The last step.
    needs : set of str
        What is recorded besides rewards and items.
    every : int
        Steps from one sample to the next.
    chunk : int
        Steps at a time.
    """
    sampler = _Sampler(lane, needs) if needs & SAMPLED else None
    while lane.step < to:
        start, end = lane.step, min(lane.step + chunk, to)
        traces, samples = [], []
        while lane.step < end:
            sampled = sampler is not None and lane.step % every == 0
            if sampler is not None and sampled:
                sampler.before()
            stop = min(lane.step - lane.step % every + every, end) if sampler is not None else end
            trace = lane.advance(stop - lane.step)
            traces.append(trace)
            if sampler is not None and sampled:
                samples.append(sampler.after(trace.items[0], trace.rewards[0]))
        trace = join(traces) if len(traces) > 1 else traces[0]
        yield Steps(
            start,
            trace.items,
            trace.segments,
            trace.rewards,
            join_samples(samples),
            trace.fell_back,
        )


class _Sampler:
    """Record one step: what the agent states before it, and what was shown."""

    def __init__(self, lane: Lane, needs: frozenset[Need]) -> None:
        self.lane, self.needs = lane, needs
        self.rows = np.arange(lane.rows)
        unguarded(lane.agent).n_redraws = REDRAWS
        self._contexts: Contexts | None = None
        self._dense: FloatArray = np.empty(0)

    def before(self) -> None:
        """Look at the coming round with the current estimates; no state changes."""
        lane, needs = self.lane, self.needs
        self.round: Round = lane.simulator.round_at(lane.step)
        self.explanation: Explanation | None = (
            lane.agent.explain(self.round) if "means" in needs else None
        )
        self.probabilities = (
            lane.agent.probabilities(self.round) if "probabilities" in needs else None
        )

    def after(self, shown: IntArray, rewards: FloatArray) -> Samples:
        """Describe the step just done, which showed the items ``shown (R, S)``."""
        round, needs = self.round, self.needs
        places = (round.items[:, None, :] == shown[:, :, None]).argmax(axis=2)  # (R, S)
        first = places[:, 0]
        features = context = means = explored = weights = law = None
        if "features" in needs:
            dense = self._features(round)
            features = dense[self.rows, first]
            available = round.available[:, :, None]
            context = (dense * available).sum(axis=1) / available.sum(axis=1)
        if self.explanation is not None and self.explanation.mean is not None:
            mean = expit(self.explanation.mean) if self.explanation.logit else self.explanation.mean
            means = mean[self.rows, first]
            explored = explored_share(mean, round.available, places)
        if self.probabilities is not None:
            candidates = round.available.sum(axis=1)
            each = 1 / np.where(
                self.probabilities > 0, candidates[:, None] * self.probabilities, np.inf
            )
            expected = (self.probabilities > 0).sum(axis=1) / candidates
            variance = np.maximum(each.sum(axis=1) / candidates - expected**2, 0.0)
            weights = each[self.rows, first]
            law = np.stack([expected, variance, each.max(axis=1)], axis=1)
        columns = (features, context, means, explored, weights, law)
        return Samples(
            np.array([round.step]),
            rewards[None],
            *(None if column is None else column[None] for column in columns),
        )

    def _features(self, round: Round) -> FloatArray:
        """Return the features of the candidates, float64 (R, K, D).

        Fixed contexts are expanded once.
        """
        if not self.lane.simulator.spec.fixed_contexts:
            return round.features
        if round.contexts is not self._contexts:
            self._contexts, self._dense = round.contexts, round.contexts.dense()
        return np.asarray(self._dense[round.context])
