"""Ranking with a cascade: slates out of retrieved candidates; the user stops at the first click."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bandits.base.params import param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import (
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorSpec,
    Truth,
    Vectors,
)

from . import ann_index, ranking_kernels
from .base import Simulator, SimulatorParams, layout_param
from .changed_inputs import break_dense
from .changes import Features, Shock, changes_param, check, order_at
from .launches import Launch, Withdraw, check_stock
from .petshop_rates import scaled
from .ranking_layouts import Layouts, Offer, log_sum_exp

# users times items, where the whole catalogue is in the softmax
MAX_PAIRS = 200_000_000
# buckets of neighbouring items, in which choices from a large catalogue are counted
BUCKETS = 10_000
# bytes of candidates and click probabilities that are kept for other agents
MEMORY_OF_STEPS = 2**25
# items up to which choices are counted per item
MAX_COUNTED = 100_000

Changes = Annotated[Shock | Features | Launch | Withdraw, Field(discriminator="kind")]


def _width(params: Any) -> int:
    """Count the features, D."""
    return int(
        {"concatenation": 2, "product": 1, "both": 3}[params.features] * params.embedding
        + params.constant
    )


@dataclass
class _Step:
    """Candidates of a step; click probabilities and optimum once they are needed."""

    items: IntArray
    expected: tuple[FloatArray, tuple[FloatArray, FloatArray, FloatArray]] | None = None


class Ranking(Simulator):
    """Users and items with embeddings; click probabilities grow with their inner product.

    At each step a random user comes, K items are retrieved (at random, or those with the largest
    inner product of the vectors that agents observe), and a slate of S is shown. The user examines
    the slots in order (cascade model): the item i in slot k, once examined, is clicked with
    probability b_k p_i, b_k = k^-bias, and the user stops at the first click. p is a softmax of u .
    i / temperature over the whole catalogue or over the candidates, or a sigmoid per item.

    The value of a slate is 1 - prod (1 - b_k p_k); the optimal slate shows the items with the
    largest p in descending order."""

    class Params(SimulatorParams):
        kind: Literal["ranking"] = "ranking"
        choice: Literal["catalogue", "candidates", "sigmoid"] = param(
            "candidates",
            title="Choice model",
            basic=True,
            help=(
                "Items that compete for a click. catalogue: softmax over all items, as "
                "published. candidates: softmax over the retrieved items. sigmoid: none, every "
                "item has a click probability of its own."
            ),
        )
        temperature: float = param(
            0.005,
            title="Temperature",
            symbol=r"\tau",
            ge=1e-4,
            le=1,
            typical=(0.001, 0.02),
            log=True,
            basic=True,
            help=(
                "Divides the inner product of user and item. Larger values make click "
                "probabilities more equal; usual are 0.001 to 0.02."
            ),
        )
        features: Literal["concatenation", "product", "both"] = param(
            "product",
            title="Features",
            basic=True,
            help=(
                "What agents observe of user and item. concatenation: both vectors. product: "
                "their elementwise product, in which utility is linear. both: all of these."
            ),
        )
        constant: bool = param(
            True,
            title="Constant feature",
            help="Add a feature that is always 1: the intercept of a linear model.",
        )
        n_users: int = param(
            1000,
            title="Users",
            ge=1,
            le=100_000,
            typical=(100, 10_000),
            help="Number of users. More users return less often; usually 100 to 10,000.",
        )
        n_items: int = param(
            10_000,
            title="Items",
            ge=2,
            le=1_000_000,
            typical=(100, 1_000_000),
            log=True,
            sweep=(500, 50_000),
            help=(
                "Number of items in the catalogue. More items need more exploration; usually 100 "
                "to 1,000,000."
            ),
        )
        n_candidates: int = param(
            500,
            title="Candidates",
            symbol="K",
            ge=2,
            le=5000,
            typical=(20, 1000),
            help=(
                "Number of items retrieved at each step. More candidates raise the optimum and "
                "need more exploration; usually 20 to 1,000."
            ),
        )
        retrieval: Literal["random", "nearest", "exact"] = param(
            "random",
            title="Retrieval",
            later=True,
            help=(
                "How candidates are retrieved. random: uniformly. nearest: largest inner product "
                "with the user, by an approximate index. exact: the same by exhaustive search."
            ),
        )
        breadth: int = param(
            128,
            title="Index breadth",
            ge=1,
            le=1000,
            typical=(16, 512),
            log=True,
            later=True,
            help=(
                "With nearest: number of lists of the index that a search scans. The index has "
                "about √n lists for n items. Larger values find more of the nearest items and "
                "take longer; usually 16 to 512."
            ),
        )
        slate: int = param(
            10,
            title="Slots",
            symbol="S",
            ge=1,
            le=50,
            help=(
                "Number of items shown at once, one below the other. More slots earn more "
                "clicks; usually 1 to 20."
            ),
        )
        bias: float = param(
            1.0,
            title="Position bias",
            ge=0,
            le=3,
            help=(
                "Exponent b of the position bias: in slot k the click probability is multiplied "
                "by k to the power of −b. Larger values favour the first slots; usually 0 to 2."
            ),
        )
        noise: float = param(
            0.0,
            title="Embedding noise",
            ge=0,
            le=1,
            typical=(0, 0.1),
            help=(
                "Standard deviation of the error in the vectors that agents observe. Larger "
                "values hide preferences; usually 0 to 0.1; the true entries have standard "
                "deviation 0.06."
            ),
        )
        intercept: float = param(
            4.0,
            title="Intercept",
            ge=-10,
            le=20,
            typical=(0, 8),
            help=(
                "With sigmoid: subtracted from the log-odds of every item. Larger values mean "
                "fewer clicks; usually 0 to 8."
            ),
        )
        embedding: int = param(
            32,
            title="Embedding size",
            symbol="d",
            ge=1,
            le=256,
            sweep=(4, 64),
            help=(
                "Number of dimensions of the vectors of users and items. Larger vectors are "
                "harder to learn from; usually 8 to 64."
            ),
        )
        layout: Literal["shared", "per_row"] = layout_param("catalogue")
        changes: tuple[Changes, ...] = changes_param(
            "preferences (shock), items (launch, withdraw)"
        )

        @classmethod
        def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
            given = {
                name: values.get(name, field.default) for name, field in cls.model_fields.items()
            }
            candidates = min(given["n_candidates"], given["n_items"])
            changed = {"n_candidates": candidates, "slate": min(given["slate"], candidates)}
            kinds = {c["kind"] if isinstance(c, dict) else c.kind for c in given["changes"]}
            fixed = not kinds & {"launch", "withdraw"}
            if given["retrieval"] == "nearest" and not (
                fixed and given["n_items"] >= ann_index.MIN_ITEMS
            ):
                changed["retrieval"] = "exact"
            if given["choice"] == "catalogue" and not (
                fixed and given["n_users"] * given["n_items"] <= MAX_PAIRS
            ):
                changed["choice"] = "candidates"
            return {
                **values,
                **{name: value for name, value in changed.items() if value != given[name]},
            }

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.n_candidates > self.n_items:
                raise ValueError(
                    f"simulator.n_candidates is {self.n_candidates:,}; it must be at most n_items, "
                    f"{self.n_items:,}"
                )
            if self.retrieval == "nearest" and self.n_items < ann_index.MIN_ITEMS:
                raise ValueError(
                    f"simulator.n_items is {self.n_items}; retrieval nearest needs at least "
                    f"{ann_index.MIN_ITEMS}"
                )
            if self.slate > self.n_candidates:
                raise ValueError(
                    f"simulator.slate is {self.slate}; it must be at most n_candidates, "
                    f"{self.n_candidates}"
                )
            if self.choice == "catalogue" and self.n_users * self.n_items > MAX_PAIRS:
                raise ValueError(
                    f"simulator.choice catalogue scores {self.n_users:,} users x {self.n_items:,} "
                    f"items; at most {MAX_PAIRS:,} pairs are allowed"
                )
            check(self.all_changes, _width(self))
            for name, change in self.all_changes.items():
                if isinstance(change, Launch | Withdraw):
                    self._offers(name)
            check_stock(self.all_changes, [self.n_items], self.n_candidates)
            return self

        def _offers(self, name: str) -> None:
            """Raise ValueError where what is computed once per run needs the same items
            throughout.
            """
            if self.retrieval == "nearest":
                raise ValueError(
                    f"{name} needs simulator.retrieval random or exact; nearest builds its index "
                    "once, of all items"
                )
            if self.choice == "catalogue":
                raise ValueError(
                    f"{name} needs simulator.choice candidates or sigmoid; the softmax of "
                    "catalogue is over all items"
                )

    title = "Ranking"
    family = "Recommendation"
    preset = "slates"
    item_noun = "item"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, K = len(streams.rows), params.n_candidates
        layouts, index = np.unique(self.layouts(), return_inverse=True)
        self._layout_index = index.astype(np.int64)
        self.shared = Layouts.of(params, streams, layouts)
        # (L, n, d), with the layout of each row in _layout_index
        self.users, self.items = self.shared.users, self.shared.items
        self.observed_users, self.observed_items = (
            self.shared.observed_users,
            self.shared.observed_items,
        )
        self.positions = np.array(self.spec.positions)
        self._user_ids = streams.blocks("world", lambda g, n: g.integers(0, params.n_users, n))
        self._drawn = streams.blocks("world", lambda g, n: g.random((n, K)), width=K, part=1)
        D = self.spec.n_features
        self._columns = np.broadcast_to(np.arange(D), (R, K, D)).copy()
        self._available, self._rows = np.ones((R, K), np.bool_), np.arange(R)
        self._pool = np.arange(params.n_items if params.retrieval == "random" else 0)
        # None: the same items throughout
        self._offer = Offer.of(params, streams, layouts)
        self._zeros = np.zeros(R, np.int64)
        # which the lanes of other agents need too
        self._latest: dict[int, _Step] = {}
        self._n_latest = max(1, MEMORY_OF_STEPS // (16 * R * K))

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        D = _width(params)
        capabilities = {"ids", "truth", "binary", "arm_features"}
        if params.features == "concatenation" and not any(
            isinstance(c, Features) for c in params.changes
        ):
            capabilities.add("vectors")
        in_buckets = params.n_items > MAX_COUNTED or params.retrieval != "random"
        return SimulatorSpec(
            n_items=params.n_items,
            n_candidates=params.n_candidates,
            n_features=D,
            n_stored=D,
            slate=params.slate,
            n_users=params.n_users,
            capabilities=frozenset(capabilities),
            bucket_size=-(-params.n_items // BUCKETS) if in_buckets else 1,
            positions=tuple(float(k) ** -params.bias for k in range(1, params.slate + 1)),
        )

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        K, D = params.n_candidates, cls.describe(params).n_features
        catalogue = (
            16 * min(params.n_users, 64) * params.n_items if params.choice == "catalogue" else 0
        )
        drawn = block_length(K) * K if params.retrieval == "random" else 6 * K
        scored = 24 * params.n_items if params.retrieval == "exact" else 0
        pool = 8 * params.n_items if params.retrieval == "random" else 0
        latest = max(MEMORY_OF_STEPS, 16 * rows * K)
        scored += Offer.memory(params, rows if params.layout == "per_row" else 1)
        return int(catalogue + scored + pool + latest + 8 * rows * (drawn + K * (2 * D + 8)))

    @classmethod
    def shared_memory(cls, params: Any, layouts: int) -> int:
        n, d = params.n_items, params.embedding
        one = 8 * (params.n_users + n) * d * (1 + (params.noise > 0))
        # stacked from the parts
        total = layouts * one + (one if layouts > 1 else 0) * layouts
        if params.retrieval == "nearest":
            total += layouts * ann_index.index_memory(n, d) + ann_index.build_memory(n, d)
        return int(total)

    def round_at(self, step: int) -> Round:
        p, user_ids = self.params, self.visitors(step)
        items = self._step(step, user_ids).items
        concatenated, product = p.features != "product", p.features != "concatenation"

        def features(more: int = 0, dtype: type[Any] = np.float64) -> NDArray[Any]:
            out = np.empty((*items.shape, self.spec.n_features + more), dtype)
            ranking_kernels.pairs(
                self.observed_users,
                self.observed_items,
                self._layout_index,
                user_ids,
                items,
                concatenated,
                product,
                p.constant,
                out,
            )
            return break_dense(out, p.changes, step)

        contexts = Contexts(
            features, self._columns, self.spec.n_features, partial(features, dtype=np.float32)
        )
        return Round(step, user_ids, items, contexts, self._rows, self._available, self._zeros)

    def _step(self, step: int, user_ids: IntArray) -> _Step:
        if step not in self._latest:
            if len(self._latest) >= self._n_latest:
                del self._latest[next(iter(self._latest))]  # the oldest
            self._latest[step] = _Step(self._candidates(step, user_ids))
        return self._latest[step]

    def _candidates(self, step: int, user_ids: IntArray) -> IntArray:
        pools = None if self._offer is None else self._offer.at(step)
        if self.params.retrieval != "random":
            return self.retrieve(user_ids, exact=self.params.retrieval == "exact", pools=pools)
        drawn = self._drawn.at(step)
        if pools is None:
            return ranking_kernels.distinct(drawn, self._pool)
        parts = [
            ranking_kernels.distinct(drawn[rows], pools[layout])
            for layout, rows in self._rows_by_layout()
        ]
        return np.concatenate(parts)

    def _rows_by_layout(self) -> list[tuple[int, slice]]:
        """Return the rows of each layout: all of one, or one of each."""
        R = len(self._layout_index)
        if len(self.items) == 1:
            return [(0, slice(None))]
        return [(int(self._layout_index[r]), slice(r, r + 1)) for r in range(R)]

    def retrieve(
        self,
        user_ids: IntArray,
        *,
        exact: bool,
        observed: bool = True,
        pools: list[IntArray] | None = None,
    ) -> IntArray:
        """Retrieve the nearest items to the users ``user_ids (R,)`` of the rows, int64 (R, K), in
        ascending order.

        Parameters
        ----------
        exact : bool
            By exhaustive search, or by the index.
        observed : bool
            By the vectors that agents observe, or by the true ones (always exhaustively).
        pools : list of int64, optional
            The items of each layout that can be retrieved; all by default.
        """
        K, breadth = self.params.n_candidates, self.params.breadth
        users, items = (
            (self.observed_users, self.observed_items) if observed else (self.users, self.items)
        )
        among = np.full(
            (
                len(user_ids),
                min(self.params.n_items, ann_index.OVERSAMPLING * K + ann_index.MARGIN),
            ),
            -1,
        )
        for layout in np.unique(self._layout_index):
            rows = np.flatnonzero(self._layout_index == layout)
            queries = users[layout, user_ids[rows]]
            if pools is not None:
                pool = pools[layout]
                candidates = pool[ann_index.exact_search(items[layout][pool], queries, K)]
            elif exact or not observed:
                candidates = ann_index.exact_search(items[layout], queries, K)
            else:
                candidates = self.shared.indexes[layout].search(queries, K, breadth)
            among[rows, : candidates.shape[1]] = candidates
        return ranking_kernels.nearest(users, items, self._layout_index, user_ids, among, K)

    def visitors(self, step: int) -> IntArray:
        """Return the user of each row, int64 (R,): the draw behind `round_at`, without the
        retrieval.
        """
        return self._user_ids.at(step)

    def scanned(self, user_ids: IntArray) -> IntArray:
        """Count the items whose codes the index scans for the users ``user_ids (R,)``,
        int64 (R,).
        """
        queries = (
            (self._layout_index[r], self.observed_users[self._layout_index[r], user_ids[r]])
            for r in range(len(user_ids))
        )
        return np.concatenate(
            [
                self.shared.indexes[layout].scanned(user[None], self.params.breadth)
                for layout, user in queries
            ]
        )

    def best_value(self, user_ids: IntArray, items: IntArray, among: IntArray) -> FloatArray:
        """Return the value (R,) of the optimal slate of ``items (R, n)``, where ``among (R, K)``
        are the candidates.
        """
        p = -np.sort(-self.clicks(user_ids, items, among), axis=1)[:, : self.spec.slate]
        return np.asarray(1 - (1 - p * self.positions).prod(axis=1))

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        p, (ideal, best_value, random_value) = self._expected(round)
        chances, value = ranking_kernels.slate_value(p, self.positions, slate)
        rewards, examined = ranking_kernels.cascade_clicks(chances, uniforms)
        best_reward = ranking_kernels.cascade_clicks(ideal, uniforms)[0].sum(axis=1)
        return Feedback(rewards, examined), Truth(value, best_value, random_value, best_reward)

    def probabilities(self, round: Round) -> FloatArray:
        return self._expected(round)[0]

    def _expected(
        self, round: Round
    ) -> tuple[FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
        """Return the click probabilities of the candidates, and the `ranking_kernels.optimum`."""
        step = self._latest.get(round.step)
        if step is None or step.items is not round.items:
            step = _Step(round.items)
        if step.expected is None:
            order = order_at(self.params.changes, round.step, self.params.n_users)
            p = self.clicks(
                round.users if order is None else order[round.users], round.items, round.items
            )
            if self._offer is not None and (quality := self._offer.quality) is not None:
                p = scaled(p, quality[self._layout_index[:, None], round.items])
            step.expected = p, ranking_kernels.optimum(p, self.positions)
        return step.expected

    def clicks(self, user_ids: IntArray, items: IntArray, among: IntArray) -> FloatArray:
        """Return click probabilities of ``items (R, n)`` shown first, where ``among (R, K)`` are
        the candidates.
        """
        from scipy.special import expit

        p = self.params
        utility = ranking_kernels.utilities(
            self.users, self.items, self._layout_index, user_ids, items, p.temperature
        )
        if p.choice == "sigmoid":
            return np.asarray(expit(utility - p.intercept))
        if p.choice == "candidates":
            others = (
                utility
                if among is items
                else ranking_kernels.utilities(
                    self.users, self.items, self._layout_index, user_ids, among, p.temperature
                )
            )
            return np.asarray(np.exp(utility - log_sum_exp(others)[:, None]))
        return np.exp(
            utility - self.shared.log_totals(p.temperature)[self._layout_index, user_ids][:, None]
        )

    def launched(self) -> dict[int, list[IntArray]]:
        cohorts = {} if self._offer is None else self._offer.cohorts
        return {i: [items[at] for at in self._layout_index] for i, items in cohorts.items()}

    def vectors(self) -> Vectors:
        return Vectors(self.observed_users, self.observed_items, self._layout_index)

    def features(self, item: int | None) -> FloatArray:
        D, d = self.spec.n_features, self.params.embedding
        if item is None or self.params.features != "concatenation":
            return np.eye(D)
        own = np.zeros((len(self.observed_items), D))
        own[:, d : 2 * d] = self.observed_items[:, item]
        own[:, 2 * d :] = 1
        return np.concatenate([np.eye(D)[:d], own])

    def name(self, item: int, row: int = 0) -> str:  # noqa: ARG002
        return f"item {item:,}"
