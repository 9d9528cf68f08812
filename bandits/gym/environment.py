"""One row of a simulator as an environment of Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from bandits.base.errors import UserError
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round
from bandits.simulators import REGISTRY

LARGEST = 2**53


class BanditEnv(gymnasium.Env[FloatArray, Any]):
    """An environment whose episodes are visits, or replications where there are no visits.

    The observation holds the features of all candidates, float64 (K, D). The action is the index of
    the candidate that is shown; of a slate, those of its S slots in order. The reward is the sum
    over the slots. An action that names an unavailable candidate, or one twice, shows nothing:
    reward and value are 0, and the state of a visit stays.

    ``info`` holds ``action_mask``, int8 (K,): 1 where a candidate is available. After a step it
    also holds what the simulator knows of it, by the names of `bandits.base.types.Truth`.

    ``reset(seed=s)`` begins replication 0 of an experiment with seed s: the same users and random
    numbers. Without a seed, it begins the next replication, or the next visit after one that has
    ended.

    Parameters
    ----------
    params : SimulatorParams
    steps : int
        Steps until an episode is truncated, where there are no visits.
    """

    def __init__(self, params: Any, steps: int) -> None:
        self._params, self._steps = params, steps
        self._cls = REGISTRY[params.kind]
        spec = self._cls.describe(params)
        K, S = spec.n_candidates, spec.slate
        self._slate, self._visits = S, "visits" in spec.capabilities
        self.observation_space = spaces.Box(*spec.bounds, (K, spec.n_features), np.float64)
        self.action_space = spaces.Discrete(K) if S == 1 else spaces.MultiDiscrete([K] * S)
        self._seed: int | None = None
        self._round: Round | None = None
        self._visit_ended = False

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode, and return its first observation."""
        super().reset(seed=seed)
        if seed is not None or self._seed is None:
            self._seed = int(self.np_random.integers(LARGEST)) if seed is None else seed
            self._start(0)
        elif not self._visit_ended:
            self._start(self._replication + 1)
        self._visit_ended = False
        return self._observe()

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Show candidates.

        Returns
        -------
        tuple
            Next observation, reward, whether the visit has ended, whether the replication has, and
            ``info``.

        Raises
        ------
        UserError
            The action is not in the action space, or no episode has begun.
        """
        if self._round is None:
            raise UserError("no episode has begun; call reset before step")
        if not self.action_space.contains(action):
            raise UserError(f"action is {action}; it must be in {self.action_space}")
        round, available = self._round, self._round.available[0]
        shown = np.atleast_1d(np.asarray(action, np.int64))
        allowed = bool(available[shown].all()) and len(np.unique(shown)) == self._slate
        # the optimum of the step does not depend on what is shown
        slate = (shown if allowed else np.flatnonzero(available)[: self._slate])[None]
        uniforms = self._simulator.uniforms.at(self._step)
        feedback, truth = self._simulator.respond(round, slate, uniforms)
        if allowed:
            self._simulator.move(round, slate, uniforms)
        known = {k: float(v[0]) for k, v in truth._asdict().items() if v is not None}
        if not allowed:
            known |= {k: 0.0 for k in ("value", "lost") if k in known}
        self._step += 1
        self._visit_ended = allowed and feedback.ended is not None and bool(feedback.ended[0])
        over = not self._visits and self._step >= self._steps
        observation, info = self._observe()
        if self._visit_ended or over:
            self._round = None
        reward = float(feedback.rewards[0].sum()) if allowed else 0.0
        return observation, reward, self._visit_ended, over, known | info

    def _start(self, replication: int) -> None:
        assert self._seed is not None
        self._replication, self._step = replication, 0
        self._simulator = self._cls(self._params, Streams(self._seed, [replication]))

    def _observe(self) -> tuple[FloatArray, dict[str, Any]]:
        self._round = self._simulator.round_at(self._step)
        mask = self._round.available[0].astype(np.int8)
        return np.array(self._round.features[0], np.float64), {"action_mask": mask}
