"""The wheel bandit: rare high rewards near the rim of a disc."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    Round,
    SimulatorSpec,
    Truth,
)

from .base import Encoding, Simulator, SimulatorParams, normal, single_response
from .changed_inputs import break_dense
from .changes import ShocksAndFaults, changes_param, check, order_at

ARMS = 5
# away from the rim; the last arm is the safe choice
MEANS = (1.0, 1.0, 1.0, 1.0, 1.2)
# near the rim, for the arm of the quadrant
HIGH = 50.0


class Wheel(Simulator):
    """A point in the unit disc as context, and five arms [1]_.

    Arm 4 has mean 1.2, the others 1.0, except near the rim: at a distance of delta or more from the
    centre, one of arms 0 to 3 has mean 50 (0 where both coordinates are positive, 1 where the first
    is, 2 where the second is, 3 where neither is). The closer delta is to 1, the more exploration
    it takes to find these rewards.

    Random choice has regret (1 - delta^2) 39.16 + delta^2 0.16 per step.

    References
    ----------
    .. [1] Riquelme, Tucker, Snoek (2018), Deep Bayesian bandits showdown, section 5.4, and its
       code, in which the noise of the low rewards is .05 (paper: .01).
    """

    class Params(SimulatorParams):
        kind: Literal["wheel"] = "wheel"
        delta: float = param(
            0.5,
            title="Inner radius",
            symbol=r"\delta",
            ge=0,
            le=1,
            basic=True,
            help=(
                "Distance from the centre beyond which one arm has mean 50. Larger values make "
                "these rewards rarer; usually 0.5 to 0.99."
            ),
        )
        features: Literal["plain", "constant"] = param(
            "plain",
            title="Features",
            basic=True,
            help=(
                "plain: the point's two coordinates, as published. constant: the coordinates and "
                "a 1, which gives a linear model an intercept."
            ),
        )
        encoding: Encoding = param(
            "context",
            title="Encoding",
            basic=True,
            help=(
                "context: the same features for all arms, for models per arm. block: a block of "
                "features per arm, with which one shared model can distinguish the arms."
            ),
        )
        noise: float = param(
            0.05,
            title="Noise",
            ge=0,
            le=100,
            typical=(0, 1),
            help=(
                "Standard deviation of the low rewards. Larger values make learning slower; "
                "usually 0.01 to 0.5."
            ),
        )
        noise_high: float = param(
            0.01,
            title="Rim noise",
            ge=0,
            le=100,
            typical=(0, 1),
            help=(
                "Standard deviation of the rewards of 50. Larger values blur them; usually 0.01 "
                "to 0.5."
            ),
        )
        changes: ShocksAndFaults = changes_param("preferences (shock)")

        @model_validator(mode="after")
        def _agree(self) -> Self:
            check(self.all_changes, 3 if self.features == "constant" else 2)
            return self

    title = "Wheel"
    family = "Known functions"
    preset = "wheel"
    reward_noun = "points"
    rate_title = "Reward per step"
    item_noun = "arm"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, N = len(streams.rows), self.spec.n_stored
        offset = (
            N * np.arange(ARMS)[:, None]
            if params.encoding == "block"
            else np.zeros((ARMS, 1), np.int64)
        )
        self._columns = np.broadcast_to(offset + np.arange(N), (R, ARMS, N)).copy()
        self._points = streams.blocks("world", _draw, width=2)
        self._items = np.broadcast_to(np.arange(ARMS), (R, ARMS)).copy()
        self._available = np.ones((R, ARMS), np.bool_)
        self._rows, self._zeros = np.arange(R), np.zeros(R, np.int64)

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        N = 3 if params.features == "constant" else 2
        return SimulatorSpec(
            n_items=ARMS,
            n_candidates=ARMS,
            n_features=N * ARMS if params.encoding == "block" else N,
            n_stored=N,
            capabilities=frozenset(
                {"truth", "log"} | ({"arm_features"} if params.encoding == "block" else set())
            ),
        )

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:  # noqa: ARG003
        return 8 * rows * (2 * block_length(2) + 10 * ARMS)

    def round_at(self, step: int) -> Round:
        observed = break_dense(self._vectors(self._points.at(step)), self.params.changes, step)
        values = np.repeat(observed[:, None], ARMS, axis=1)
        contexts = Contexts(values, self._columns, self.spec.n_features)
        return Round(
            step, self._zeros, self._items, contexts, self._rows, self._available, self._zeros
        )

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        return single_response(self.probabilities(round), slate, uniforms, self._reward)

    def probabilities(self, round: Round) -> FloatArray:
        return self.means(
            self._points.at(round.step), order_at(self.params.changes, round.step, ARMS - 1)
        )

    def means(self, points: FloatArray, order: IntArray | None = None) -> FloatArray:
        """Return the expected reward of each arm at ``points (n, 2)``, float64 (n, 5).

        Parameters
        ----------
        points : float64 (n, 2)
        order : int64 (4,), optional
            Quadrant whose arm each quadrant has; its own by default.
        """
        means = np.tile(MEANS, (len(points), 1))
        rim = np.flatnonzero(np.hypot(points[:, 0], points[:, 1]) >= self.params.delta)
        x, y = (points[rim] > 0).T
        quadrant = np.where(x, 0, 2) + np.where(y, 0, 1)
        means[rim, quadrant if order is None else order[quadrant]] = HIGH
        return means

    def features(self, item: int | None) -> FloatArray:
        vectors = np.eye(self.spec.n_features)
        if item is None or self.params.encoding == "context":
            return vectors
        N = self.spec.n_stored
        return vectors[N * item : N * (item + 1)]

    def log(self, layout: int, n: int) -> LoggedData:
        generator = self.streams.generator("log", row=layout)
        items, points = generator.integers(0, ARMS, size=n), _draw(generator, n)
        means = self.means(points)[np.arange(n), items]
        rewards = self._reward(means, generator.random(n))
        return LoggedData(
            np.zeros(n, np.int64),
            items,
            self._vectors(points),
            self._columns[0][items],
            rewards,
            means,
        )

    def _vectors(self, points: FloatArray) -> FloatArray:
        """Return the features of points (n, 2), float64 (n, N)."""
        if self.params.features == "plain":
            return points
        return np.column_stack([points, np.ones(len(points))])

    def _reward(self, means: FloatArray, uniforms: FloatArray) -> FloatArray:
        noise = np.where(means == HIGH, self.params.noise_high, self.params.noise)
        return np.asarray(means + noise * normal(uniforms))


def _draw(generator: np.random.Generator, n: int) -> FloatArray:
    """Draw points (n, 2), uniform in the unit disc: the squared distance from the centre is
    uniform.
    """
    u, v = generator.random((2, n))
    angle = 2 * np.pi * v
    return np.asarray(np.sqrt(u)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
