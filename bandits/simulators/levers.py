"""K levers without features: the bandit of the textbooks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bandits.base.params import param
from bandits.base.randomness import Streams, steps_left_in_block
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    PredrawnSteps,
    Round,
    SimulatorSpec,
    Truth,
)

from .base import ClickTable, Simulator, SimulatorParams, layout_param, normal, single_response
from .changes import Season, Shock, changes_param, check, order_at

# cells of the tables of moving means that are drawn ahead at once
MOVING_CELLS = 2**17
# mean of the good lever with means one_good
GOOD = 0.5

Changes = Annotated[Shock | Season, Field(discriminator="kind")]


class Levers(Simulator):
    """K levers with one mean reward each, and no features of lever or visitor.

    The means are given (fixed), or drawn once per layout: uniform from 0 to 1; normal with mean 0
    and standard deviation 1, the testbed of Sutton and Barto [1]_; or one good lever, of mean 1/2,
    among levers that are worse by the gap [2]_. A linear model reads a constant of 1, so that one
    model per arm estimates the lever's mean.

    A shock gives every lever the mean of another one; in a season the means rise and fall in turn.

    References
    ----------
    .. [1] Sutton, Barto (2018), Reinforcement learning: an introduction, section 2.3.
    .. [2] Chapelle, Li (2011), An empirical evaluation of Thompson sampling, section 3.
    """

    class Params(SimulatorParams):
        kind: Literal["levers"] = "levers"
        n_arms: int = param(
            10,
            title="Levers",
            symbol="K",
            ge=2,
            le=1000,
            basic=True,
            help="Number of levers. More levers need more exploration; usually 2 to 50.",
        )
        reward: Literal["bernoulli", "gaussian", "student_t"] = param(
            "bernoulli",
            title="Reward distribution",
            basic=True,
            help=(
                "bernoulli: 1 or 0, with the mean as probability. gaussian: the mean plus normal "
                "noise. student_t: the mean plus noise with heavy tails."
            ),
        )
        means: Literal["fixed", "uniform", "normal", "one_good"] = param(
            "uniform",
            title="Means",
            basic=True,
            # with every distribution of rewards
            sweep=("fixed", "uniform", "one_good"),
            help=(
                "Mean rewards of the levers. fixed: those given. uniform: drawn from 0 to 1. "
                "normal: drawn with mean 0 and standard deviation 1. one_good: one lever of 0.5, "
                "the others lower by the gap."
            ),
        )
        values: tuple[float, ...] = param(
            (0.6, 0.1, 0.1),
            title="Fixed means",
            min_length=2,
            max_length=1000,
            help=(
                "Mean reward of each lever (means fixed); their number is the number of levers. "
                "Larger values earn more; clicks need 0 to 1."
            ),
        )
        offset: float = param(
            0.0,
            title="Offset",
            symbol="c",
            ge=-1000,
            le=1000,
            typical=(-10, 10),
            later=True,
            help=(
                "Added to every mean that is drawn (not fixed, not clicks). Larger values move all "
                "rewards up and change no gap; usually 0 to 5."
            ),
        )
        gap: float = param(
            0.1,
            title="Gap",
            symbol=r"\Delta",
            gt=0,
            le=0.5,
            help=(
                "How much worse than the good lever all others are (means one_good). Smaller "
                "values are harder to find and cost less; usually 0.01 to 0.2."
            ),
        )
        noise: float = param(
            1.0,
            title="Noise",
            symbol=r"\sigma",
            ge=0,
            le=100,
            typical=(0, 2),
            help=(
                "Standard deviation of the noise (gaussian), or its scale (student_t). Larger "
                "values make learning slower; usually 0.1 to 2."
            ),
        )
        tail: float = param(
            3.0,
            title="Tail",
            symbol=r"\nu",
            gt=1,
            le=100,
            typical=(1.5, 30),
            help=(
                "Degrees of freedom of Student's t. Smaller values have heavier tails, and up to "
                "2 no finite variance; usually 2 to 10."
            ),
        )
        layout: Literal["shared", "per_row"] = layout_param("means")
        changes: tuple[Changes, ...] = changes_param(
            "which lever is good (shock), or how good all of them are (season)", features=False
        )

        @property
        def size(self) -> int:
            """The number of levers, K."""
            return len(self.values) if self.means == "fixed" else self.n_arms

        @classmethod
        def idle(cls, values: dict[str, Any]) -> frozenset[str]:
            means, reward = values.get("means", "uniform"), values.get("reward", "bernoulli")
            idle = {"n_arms", "layout"} if means == "fixed" else {"values"}
            idle |= {"offset"} if means == "fixed" or reward == "bernoulli" else set()
            idle |= set() if means == "one_good" else {"gap"}
            idle |= {"noise"} if reward == "bernoulli" else set()
            return frozenset(idle | (set() if reward == "student_t" else {"tail"}))

        @classmethod
        def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
            if values.get("reward", "bernoulli") != "bernoulli":
                return values
            if values.get("means") == "normal":
                return {**values, "means": "uniform"}
            given = values.get("values", ())
            return (
                {**values, "values": tuple(min(max(v, 0.0), 1.0) for v in given)}
                if given
                else values
            )

        @model_validator(mode="after")
        def _agree(self) -> Self:
            check(self.all_changes, 1)
            if self.reward == "bernoulli" and self.means == "normal":
                raise ValueError(
                    "simulator.means normal leaves the range from 0 to 1; it needs reward "
                    "gaussian or student_t, not bernoulli"
                )
            outside = [v for v in self.values if not 0 <= v <= 1]
            if self.reward == "bernoulli" and self.means == "fixed" and outside:
                raise ValueError(
                    f"simulator.values has {outside[0]:g}; means of clicks (reward bernoulli) must "
                    "be from 0 to 1"
                )
            return self

    title = "Levers"
    family = "Known functions"
    preset = "levers"
    reward_noun = "points"
    rate_title = "Reward per pull"
    item_noun = "lever"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, K = len(streams.rows), self.spec.n_items
        layouts, self._layout_index = np.unique(self.layouts(), return_inverse=True)
        # (L, K), L layouts
        self._means = np.stack([self._draw_means(int(layout)) for layout in layouts])
        self._contexts = Contexts(np.ones((1, K, 1)), np.zeros((1, K, 1), np.int64), 1)
        self._seasons = [c for c in params.changes if isinstance(c, Season)]
        self._items = np.broadcast_to(np.arange(K), (R, K)).copy()
        self._available = np.ones((R, K), np.bool_)
        self._zeros = np.zeros(R, np.int64)

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        binary = {"binary"} if params.reward == "bernoulli" else set()
        return SimulatorSpec(
            n_items=params.size,
            n_candidates=params.size,
            n_features=1,
            n_stored=1,
            fixed_contexts=1,
            bounds=(0.0, 1.0),
            capabilities=frozenset({"truth", "log"} | binary),
        )

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        return int(8 * (10 * rows * params.size + 4 * MOVING_CELLS + 4 * 1024 * rows))

    @classmethod
    def layout_per_row(cls, params: Any) -> bool:
        return bool(params.layout == "per_row" and params.means != "fixed")

    def round_at(self, step: int) -> Round:
        zeros = self._zeros
        return Round(step, zeros, self._items, self._contexts, zeros, self._available, zeros)

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        return single_response(self.probabilities(round), slate, uniforms, self._reward)

    def probabilities(self, round: Round) -> FloatArray:
        return np.asarray(self.means(round.step)[0][self._layout_index])

    def means(self, start: int, n: int = 1) -> FloatArray:
        """Return the means of every layout at n steps without a shock between them, float64 (n, L,
        K).
        """
        order = order_at(self.params.changes, start, self.spec.n_items)
        means = np.repeat(
            (self._means if order is None else self._means[:, order])[None], n, axis=0
        )
        for season in self._seasons:
            means *= season.factor(np.arange(start, start + n), self.spec.n_items)[:, None]
        return np.clip(means, 0.0, 1.0) if self._seasons and self._binary else means

    def predraw(self, step: int, n: int) -> PredrawnSteps | None:
        # compiled steps draw clicks
        if not self._binary:
            return None
        L, K = self._means.shape
        n = steps_left_in_block(step, n, K)
        n = min([n, *(c.at - step for c in self.params.changes if c.begins > step)])
        moving = n if self._seasons else 1
        if self._seasons:
            moving = n = min(n, max(1, MOVING_CELLS // (L * K)))
        # a table for each step, below each other
        table = ClickTable.of(self.means(step, moving).reshape(-1, K))
        row = self._layout_index + L * np.minimum(np.arange(n), moving - 1)[:, None]
        zeros = np.zeros((n, len(self._zeros)), np.int64)
        uniforms = np.ascontiguousarray(self.uniforms.slice(step, n)[:, :, 0])
        return PredrawnSteps(step, zeros, zeros, zeros, self._contexts, *table, row, uniforms)

    @classmethod
    def variation(cls, params: Any, steps: int) -> float | None:
        return None if params.changes or steps < 1 else 0.0

    def log(self, layout: int, n: int) -> LoggedData:
        generator, K = self.streams.generator("log", row=layout), self.spec.n_items
        items = generator.integers(0, K, size=n)
        means = self._draw_means(layout)[items]
        rewards = self._reward(means, generator.random(n))
        zeros = np.zeros((n, 1), np.int64)
        return LoggedData(zeros[:, 0], items, np.ones((n, 1)), zeros, rewards, means)

    def _draw_means(self, layout: int) -> FloatArray:
        """Return the means of one layout before any change, float64 (K,)."""
        p, K = self.params, self.spec.n_items
        generator = self.streams.generator("layout", row=layout)
        if p.means == "fixed":
            return np.array(p.values, np.float64)
        offset = 0.0 if self._binary else p.offset
        if p.means == "uniform":
            return generator.random(K) + offset
        if p.means == "normal":
            return generator.standard_normal(K) + offset
        means = np.full(K, GOOD - p.gap)
        means[generator.integers(K)] = GOOD
        return means + offset

    def _reward(self, means: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Draw a reward from each mean by a uniform number."""
        if self._binary:
            return (uniforms < means).astype(np.float64)
        if self.params.reward == "gaussian":
            return np.asarray(means + self.params.noise * normal(uniforms))
        from scipy.special import stdtrit

        # the quantile of 0 is infinite
        t = stdtrit(self.params.tail, np.maximum(uniforms, 2.0**-54))
        return np.asarray(means + self.params.noise * t)

    @property
    def _binary(self) -> bool:
        return bool(self.params.reward == "bernoulli")
