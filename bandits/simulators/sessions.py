"""Visits of many clicks: what is shown now changes how long the visitor stays."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bandits.base.params import param
from bandits.base.randomness import BlockedDraws, Streams
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorSpec,
    Truth,
)

from . import session_kernels
from .base import Simulator, SimulatorParams
from .petshop_rates import CATEGORIES, CLICK_RATES, PERSONAS, SPOKEN_PERSONAS, Table, users_param
from .session_values import MOODS, N_KINDS, NONE, START, action_values, solve, visit_model

__all__ = ["Sessions", "solve"]

_P, _C = len(PERSONAS), len(CATEGORIES)
# clicked items that agents see with observed history
REMEMBERED = 5
Share = Annotated[float, Field(ge=0, le=1)]


class Sessions(Simulator):
    """A pet shop that shows one product after the other to a visitor, until the visitor leaves.

    Each category has staples and treats. Treats are clicked more often, and spoil the mood; the
    mood decides how soon the visitor leaves. Choices move the state, so that agents serve the same
    visitors with the same random numbers, but on paths of their own."""

    class Params(SimulatorParams):
        kind: Literal["sessions"] = "sessions"
        n_products: int = param(
            50,
            title="Products",
            symbol="K",
            ge=10,
            le=10_000,
            sweep=(10, 200),
            help=(
                "Number of products, spread evenly over staples and treats of five categories. "
                "More products need more exploration; usually 20 to 200."
            ),
        )
        n_users: int = users_param()
        consequence: float = param(
            1.0,
            title="Consequence",
            symbol="c",
            ge=0,
            le=1,
            basic=True,
            sweep=(0.25, 1),
            help=(
                "How much treats spoil the mood. 0: as little as staples, so that a bandit is "
                "enough. Larger values favour agents that plan; usually 0 to 1."
            ),
        )
        lift: float = param(
            1.3,
            title="Treat lift",
            ge=1,
            le=3,
            help=(
                "How many times as often a treat is clicked as a staple, up to a click probability "
                "of 0.95. Larger values tempt short-sighted agents more; usually 1.1 to 1.5."
            ),
        )
        intent: float = param(
            0.0,
            title="Intent",
            symbol="e",
            ge=0,
            le=1,
            basic=True,
            sweep=(0.1, 1),
            help=(
                "Share by which the taste follows the complement of the category clicked last "
                "(food to toy). Larger values make the last click matter more; usually 0 to 0.5."
            ),
        )
        observed: Literal["history", "mood", "nothing"] = param(
            "history",
            title="Observed",
            basic=True,
            help=(
                "What agents see besides persona and product. history: the last five clicked kinds "
                "of products. mood: the mood itself. nothing: no more."
            ),
        )
        features: Literal["additive", "interaction", "both"] = param(
            "additive",
            title="Features",
            help=(
                "Features of persona and product. additive: persona (4), category (5), treat (1). "
                "interaction: persona x kind of product (40). both: all of these."
            ),
        )
        reward: Literal["click", "purchase"] = param(
            "click",
            title="Reward",
            help=(
                "What earns 1. click: every click. purchase: a click that becomes a purchase, at "
                "the rate of its category."
            ),
        )
        limit: int | None = param(
            40,
            title="Longest visit",
            unit="steps",
            empty="none",
            ge=1,
            le=1000,
            help=(
                "Steps after which every visit ends. Larger values let good policies earn more; "
                "usually 20 to 100. Empty: no limit."
            ),
        )
        leave: tuple[Share, Share, Share, Share, Share] = param(
            (0.16, 0.12, 0.08, 0.06, 0.05),
            title="Leaving",
            help=(
                "Probability to leave after a step, by the mood from 0 to 4. Larger values make "
                "visits shorter; usually 0.02 to 0.3."
            ),
        )
        mood_up: float = param(
            0.3,
            title="Mood gain",
            ge=0,
            le=1,
            help=(
                "Probability that a click on a staple raises the mood. Larger values lengthen "
                "good visits; usually 0.1 to 0.5."
            ),
        )
        mood_down: float = param(
            0.1,
            title="Mood loss",
            ge=0,
            le=1,
            help=(
                "Probability that the mood falls after a product that is not clicked. Larger "
                "values shorten poor visits; usually 0 to 0.3."
            ),
        )
        treat_down: float = param(
            0.5,
            title="Treat loss",
            ge=0,
            le=1,
            help=(
                "Probability that the mood falls after a click on a treat, at consequence 1. "
                "Larger values make treats more harmful; usually 0.2 to 0.8."
            ),
        )
        click_rates: Table = param(
            CLICK_RATES,
            title="Click probabilities",
            table=(SPOKEN_PERSONAS, CATEGORIES),
            help=(
                "Those of staples: one per persona (row) and product category (column). Larger "
                "values mean more clicks."
            ),
        )
        purchase_rates: tuple[Share, Share, Share, Share, Share] = param(
            (0.1, 0.2, 0.1, 0.2, 0.15),
            title="Purchase rates",
            help=(
                "Share of the clicks that become purchases, by category; with reward purchase. "
                "Larger values mean more purchases; usually 0.05 to 0.3."
            ),
        )

        @classmethod
        def idle(cls, values: dict[str, Any]) -> frozenset[str]:
            return (
                frozenset() if values.get("reward") == "purchase" else frozenset({"purchase_rates"})
            )

        @model_validator(mode="after")
        def _possible(self) -> Self:
            up, down = self.mood_up * (1 - self.consequence), self.treat_down * self.consequence
            if up + down > 1 + 1e-12:
                raise ValueError(
                    f"simulator.mood_up and simulator.treat_down give {up + down:g} together after "
                    "a click on a treat; their probabilities must be at most 1"
                )
            if self.limit is None and min(self.leave) < 0.001:
                raise ValueError(
                    f"simulator.leave holds {min(self.leave):g}; without simulator.limit each must "
                    "be at least 0.001, so that visits end"
                )
            return self

    title = "Sessions"
    family = "Recommendation"
    preset = "visits"
    state = ("visitor", "visited", "mood", "last", "clicked")

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, K = len(streams.rows), params.n_products
        self._users, self._numbers = (
            np.array(
                [
                    streams.generator(stream, row=row).integers(2**64, dtype=np.uint64)
                    for row in streams.rows
                ]
            )
            for stream in ("world", "clicks")
        )
        self.visitor, self.visited = np.zeros(R, np.int64), np.zeros(R, np.int64)
        self.mood, self.last = np.full(R, START), np.full(R, NONE)
        self.clicked = np.full((R, REMEMBERED), N_KINDS)
        self.uniforms = _VisitNumbers(self)
        self.kinds = np.arange(K) % N_KINDS
        self.model = visit_model(params)
        self.solution = solve(params)
        best, average = (
            self.model.rewards.max(axis=2),
            self.model.rewards[:, :, self.kinds].mean(axis=2),
        )
        self._tables = self.model.clicks, self.model.rewards, best, average, self.solution.q
        self._moves = np.stack([self.model.up, self.model.down, self.model.missed])
        self._limit = params.limit or 0
        self._contexts = _contexts(params, np.arange(N_KINDS))
        self._all = _contexts(params, self.kinds)
        self._all.distinct = self._contexts, self.kinds
        self._rows, self._items = np.arange(R), np.broadcast_to(np.arange(K), (R, K)).copy()
        self._available = np.ones((R, K), np.bool_)

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        columns, n_features = _columns(params, np.arange(1))
        capabilities = {"ids", "truth", "segments", "binary", "arm_features", "categories"}
        states = {"history": 0, "mood": _P * MOODS, "nothing": _P}[params.observed]
        return SimulatorSpec(
            n_items=params.n_products,
            n_candidates=params.n_products,
            n_features=n_features,
            n_stored=columns.shape[2] + (REMEMBERED if params.observed == "history" else 0),
            n_users=params.n_users,
            n_categories=_C,
            n_distinct=N_KINDS,
            fixed_contexts=states,
            bounds=(0.0, 1.0),
            capabilities=frozenset(capabilities | {"visits"} | ({"states"} if states else set())),
        )

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        spec = cls.describe(params)
        tables = 8 * (params.limit or 1) * _P * MOODS * (NONE + 1) * (N_KINDS + 1)
        per_row = 16 * spec.n_candidates * (spec.n_stored + 2) + spec.n_candidates
        fixed = 16 * max(spec.fixed_contexts, _P) * spec.n_candidates * spec.n_stored
        return int(2 * tables + 2 * fixed + rows * (2 * per_row + 1024))

    # what agents see

    def users(self) -> IntArray:
        """Return the user of each row's visitor, int64 (R,)."""
        return session_kernels.users_of(self._users, self.visitor, self.params.n_users)

    def round_at(self, step: int) -> Round:
        users = self.users()
        personas = users % _P
        context, contexts = personas, self._all
        if self.params.observed == "mood":
            context = personas * MOODS + self.mood
        elif self.params.observed == "history":
            context, contexts = self._rows, self._with_history(personas)
        return Round(step, users, self._items, contexts, context, self._available, personas)

    def _with_history(self, personas: IntArray) -> Contexts:
        clicked = self.clicked.copy()
        n_base = self.spec.n_features - REMEMBERED * N_KINDS
        known = clicked < N_KINDS
        # a click that is missing is a stored zero
        columns = n_base + N_KINDS * np.arange(REMEMBERED) + np.where(known, clicked, 0)

        def wide(base: Contexts, groups: IntArray | None = None) -> Contexts:
            n = base.columns.shape[1]
            more = np.broadcast_to(columns[:, None], (len(columns), n, REMEMBERED))
            values = np.broadcast_to(known[:, None], more.shape)
            return Contexts(
                lambda: np.concatenate([base.values[personas], values], axis=2),
                np.concatenate([base.columns[personas], more], axis=2),
                self.spec.n_features,
                distinct=None if groups is None else (wide(self._contexts), groups),
            )

        return wide(self._all, self.kinds)

    def features(self, item: int | None) -> FloatArray:
        chosen = self._contexts if item is None else _contexts(self.params, self.kinds[[item]])
        base = chosen.dense().reshape(-1, chosen.n_features)
        if self.params.observed != "history":
            return np.unique(base, axis=0)
        clicks = np.eye(self.spec.n_features)[chosen.n_features :]
        more = np.zeros((len(base), REMEMBERED * N_KINDS))
        return np.concatenate([np.column_stack([base, more]), clicks])

    def categories(self) -> IntArray:
        return np.tile(self.kinds // 2, (len(self._rows), 1))

    def name(self, item: int, row: int = 0) -> str:  # noqa: ARG002
        kind = int(self.kinds[item])
        return f"{CATEGORIES[kind // 2]}, {('staple', 'treat')[kind % 2]}"

    @classmethod
    def segment_names(cls) -> list[str]:
        return list(SPOKEN_PERSONAS)

    @classmethod
    def category_names(cls) -> list[str]:
        return list(CATEGORIES)

    # what happens

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        (value, best_value, average, reward, best_reward, lost), ended = session_kernels.responses(
            self._numbers,
            self._state,
            round.segments,
            self.kinds[slate[:, 0]],
            uniforms,
            self._tables,
            self._moves,
            self.model.leave,
            self._limit,
        )
        return (
            Feedback(reward[:, None], np.ones(slate.shape, np.bool_), ended),
            Truth(value, best_value, average, best_reward, lost),
        )

    def move(self, round: Round, slate: IntArray, uniforms: FloatArray) -> None:
        session_kernels.move(
            self._numbers,
            self._state,
            self.clicked,
            (START, NONE, N_KINDS),
            round.segments,
            self.kinds[slate[:, 0]],
            uniforms,
            self.model.clicks,
            self._moves,
            self.model.leave,
            self._limit,
        )

    @property
    def _state(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        return self.visitor, self.visited, self.mood, self.last

    def probabilities(self, round: Round) -> FloatArray:
        return np.ascontiguousarray(self.model.rewards[round.segments, self.last][:, self.kinds])

    def long_run(self, round: Round) -> FloatArray:
        return np.ascontiguousarray(self._q(round.segments)[:, self.kinds])

    def _q(self, personas: IntArray) -> FloatArray:
        """Return the optimal value of each kind of item in the state of each row, (R, A)."""
        limit = self.params.limit
        left = np.zeros_like(self.visited) if limit is None else limit - 1 - self.visited
        return np.asarray(self.solution.q[left, personas, self.mood, self.last])

    def action_values(self, value: FloatArray, discount: float = 1.0) -> FloatArray:
        """Return Q of a step after which states are worth ``value (P, M, L)``."""
        return action_values(self.model, value, discount)


class _VisitNumbers(BlockedDraws):
    """The random number of the click of each row's visitor at the present step of the visit.

    All agents serve visitor n with the same numbers, at whichever step of the run."""

    def __init__(self, simulator: Sessions) -> None:
        self._simulator = simulator

    def at(self, step: int) -> FloatArray:  # noqa: ARG002
        own = self._simulator
        return session_kernels.click_numbers(own._numbers, own.visitor, own.visited)


def _columns(params: Any, kinds: IntArray) -> tuple[IntArray, int]:
    """Return the columns of the stored features, (C, n, N), and D, without the history."""
    personas, width = np.arange(_P), 0
    moods = np.arange(MOODS if params.observed == "mood" else 1)
    persona, mood, kind = np.meshgrid(personas, moods, kinds, indexing="ij")
    columns = []
    if params.features != "interaction":
        # a staple has no treat column: its stored value is 0
        columns += [persona, _P + kind // 2, np.full(kind.shape, _P + _C)]
        width += _P + _C + 1
    if params.features != "additive":
        columns.append(width + persona * N_KINDS + kind)
        width += _P * N_KINDS
    if params.observed == "mood":
        columns.append(width + mood)
        width += MOODS
    stacked = np.stack(columns, axis=-1).reshape(-1, len(kinds), len(columns))
    return np.ascontiguousarray(stacked), width + (
        REMEMBERED * N_KINDS if params.observed == "history" else 0
    )


def _contexts(params: Any, kinds: IntArray) -> Contexts:
    """Return one context per persona, and per mood where it is observed, without the history."""
    columns, n_features = _columns(params, kinds)
    values = np.ones(columns.shape)
    if params.features != "interaction":
        values[..., 2] = kinds % 2
    more = REMEMBERED * N_KINDS if params.observed == "history" else 0
    return Contexts(values, columns, n_features - more)
