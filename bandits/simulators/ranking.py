"""Slates of ten out of 500 candidates out of 10,000 items, for a user who stops at the first click."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator
from scipy.special import expit, logsumexp

from .. import kernels, slates
from ..params import setting
from ..randomness import Streams, block_length
from ..rounds import Contexts, Feedback, FloatArray, IntArray, Log, Round, Setting, Truth
from .base import Simulator, SimulatorParams

HALF_WIDTH = 0.1  # embeddings are uniform between plus and minus this
CELLS = 200_000_000  # users times items, where everything on offer decides a user's choice


class Ranking(Simulator):
    """Users and items are points; what lies in the same direction is clicked.

    Each step a random user comes, so many random items are retrieved, and a slate of them is shown. The user looks
    down the slate: in slot k, once looked at, item i is clicked with probability b_k p_i, b_k = k^-bias, and the user
    stops at the first click. p is a softmax of u . i / temperature over the whole catalogue or over the candidates, or
    a sigmoid of each item's own.

    A slate earns 1 - prod (1 - b_k p_k): the best one shows the items of the largest p, the largest first.
    """

    class Params(SimulatorParams):
        kind: Literal["ranking"] = "ranking"
        choice: Literal["catalogue", "candidates", "sigmoid"] = setting(
            "candidates", title="Choice", basic=True,
            help="What a click competes with. catalogue: everything on offer, as published. candidates: the retrieved "
            "items. sigmoid: nothing, every item has a chance of its own.",
        )  # fmt: skip
        temperature: float = setting(
            0.005, title="Temperature", symbol=r"\tau", ge=1e-4, le=1, typical=(0.001, 0.02), log=True, basic=True,
            help="The smaller, the more a click depends on taste: at .001 almost nobody clicks anything but few items.",
        )  # fmt: skip
        features: Literal["concatenation", "product", "both"] = setting(
            "product", title="Features", basic=True,
            help="What agents see of user and item. concatenation: both vectors. product: their elementwise product, "
            "in which taste is linear. both: all of these.",
        )  # fmt: skip
        constant: bool = setting(
            True, title="Constant feature",
            help="A 1 beside the features, so that a linear model can know how much is clicked on average.",
        )  # fmt: skip
        n_users: int = setting(1000, title="Users", ge=1, le=100_000, typical=(100, 10_000), help="People who come.")
        n_items: int = setting(
            10_000, title="Items", ge=2, le=100_000, typical=(100, 100_000), log=True, help="Size of the catalogue.",
        )  # fmt: skip
        n_candidates: int = setting(
            500, title="Candidates", symbol="K", ge=2, le=5000, typical=(20, 1000),
            help="Random items that are retrieved at each step, all different.",
        )  # fmt: skip
        slate: int = setting(
            10, title="Slots", symbol="S", ge=1, le=50, help="Items shown at once, one below the other."
        )
        bias: float = setting(
            1.0, title="Position bias", ge=0, le=3,
            help="The item in slot k is clicked k to the power of minus this as often as it would be in the first one.",
        )  # fmt: skip
        noise: float = setting(
            0.0, title="Noise on the embeddings", ge=0, le=1, typical=(0, 0.1),
            help="Standard deviation of the error in the vectors that agents see; the true ones are of size .06.",
        )  # fmt: skip
        intercept: float = setting(
            4.0, title="Intercept", ge=-10, le=20, typical=(0, 8),
            help="With sigmoid: what is taken off an item's log-odds; the larger, the fewer clicks.",
        )  # fmt: skip
        embedding: int = setting(32, title="Dimensions", ge=1, le=256, help="Numbers that describe a user or an item.")
        layout: Literal["shared", "per_row"] = setting(
            "shared", title="Layout",
            help="shared: one catalogue, lived through by all runs. per_row: every run has its own.",
        )  # fmt: skip

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.n_candidates > self.n_items:
                raise ValueError(
                    f"simulator.n_candidates is {self.n_candidates:,}; it must be at most n_items, {self.n_items:,}"
                )
            if self.slate > self.n_candidates:
                raise ValueError(
                    f"simulator.slate is {self.slate}; it must be at most n_candidates, {self.n_candidates}"
                )
            if self.choice == "catalogue" and self.n_users * self.n_items > CELLS:
                raise ValueError(
                    f"simulator.choice catalogue weighs {self.n_users:,} users x {self.n_items:,} items; "
                    f"at most {CELLS:,} pairs are possible"
                )
            return self

    title = "Ranking"
    item_noun = "item"
    rate_title = "Click rate"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, K = len(streams.rows), params.n_candidates
        layouts, which = np.unique(self.layouts(), return_inverse=True)
        self._which = which.astype(np.int64)
        made = [self._make(int(layout)) for layout in layouts]
        # (L, n, d), with the layout of each row in _which
        self.users, self.items, self.seen_users, self.seen_items = (np.stack(part) for part in zip(*made, strict=True))
        self._total = np.stack([self._denominators(u, v) for u, v in zip(self.users, self.items, strict=True)])
        self.positions = np.array(self.setting.positions)
        self._who = streams.blocks("world", lambda g, n: g.integers(0, params.n_users, n))
        self._retrieved = streams.blocks("world", lambda g, n: g.random((n, K)), width=K, part=1)
        D = self.setting.n_features
        self._columns = np.ascontiguousarray(np.broadcast_to(np.arange(D), (R, K, D)))
        self._available, self._rows = np.ones((R, K), np.bool_), np.arange(R)
        self._pool, self._nobody = np.arange(params.n_items), np.zeros(R, np.int64)

    @classmethod
    def describe(cls, params: Any) -> Setting:
        parts = {"concatenation": 2, "product": 1, "both": 3}[params.features]
        D = parts * params.embedding + params.constant
        offers = {"ids", "truth", "binary"} | ({"vectors"} if params.features == "concatenation" else set())
        return Setting(
            n_items=params.n_items, n_candidates=params.n_candidates, n_features=D, n_stored=D, slate=params.slate,
            n_users=params.n_users, offers=frozenset(offers),
            positions=tuple(float(k) ** -params.bias for k in range(1, params.slate + 1)),
        )  # fmt: skip

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        layouts = rows if params.layout == "per_row" else 1
        K, D = params.n_candidates, cls.describe(params).n_features
        vectors = 8 * layouts * (params.n_users + params.n_items) * 5 * params.embedding  # while they are made
        catalogue = 16 * min(params.n_users, 64) * params.n_items if params.choice == "catalogue" else 0
        return int(vectors + catalogue + 8 * rows * K * (block_length(K) + 2 * D + 8))

    def _make(self, layout: int) -> tuple[FloatArray, ...]:
        """Vectors of users (n_users, d) and items (n_items, d), and as agents see them."""
        p, generator = self.params, self.streams.generator("layout", row=layout)
        users = generator.uniform(-HALF_WIDTH, HALF_WIDTH, (p.n_users, p.embedding))
        items = generator.uniform(-HALF_WIDTH, HALF_WIDTH, (p.n_items, p.embedding))
        error = p.noise * generator.standard_normal((p.n_users + p.n_items, p.embedding))
        return users, items, users + error[: p.n_users], items + error[p.n_users :]

    def _denominators(self, users: FloatArray, items: FloatArray) -> FloatArray:
        """Log of every user's sum of exp(utility) over the catalogue, (n_users,); once, not at every step."""
        if self.params.choice != "catalogue":
            return np.zeros(len(users))
        parts = [users[start : start + 64] @ items.T for start in range(0, len(users), 64)]
        return np.concatenate([logsumexp(part / self.params.temperature, axis=1) for part in parts])

    def round_at(self, step: int) -> Round:
        p, who = self.params, self._who.at(step)
        items = slates.distinct(self._retrieved.at(step), self._pool)
        concatenated, product = p.features != "product", p.features != "concatenation"

        def features() -> FloatArray:
            return slates.pairs(
                self.seen_users, self.seen_items, self._which, who, items, concatenated, product, p.constant
            )

        contexts = Contexts(features, self._columns, self.setting.n_features)
        return Round(step, who, items, contexts, self._rows, self._available, self._nobody)

    def respond(self, round: Round, slate: IntArray, uniforms: FloatArray) -> tuple[Feedback, Truth]:
        p, alive = self.probabilities(round), np.ones(len(slate), np.bool_)
        best = kernels.top(p, round.available, alive, slate.shape[1])
        shown, ideal = (np.take_along_axis(p, which, axis=1) * self.positions for which in (slate, best))
        rewards, examined = slates.looked_down(shown, uniforms)
        truth = Truth(
            value=1 - (1 - shown).prod(axis=1),
            best_value=1 - (1 - ideal).prod(axis=1),
            random_value=slates.random_value(p, self.positions),
            best_reward=slates.looked_down(ideal, uniforms)[0].sum(axis=1),
        )
        return Feedback(rewards, examined), truth

    def probabilities(self, round: Round) -> FloatArray:
        p = self.params
        utility = slates.utilities(self.users, self.items, self._which, round.users, round.items, p.temperature)
        if p.choice == "sigmoid":
            return np.asarray(expit(utility - p.intercept))
        if p.choice == "candidates":
            return np.asarray(np.exp(utility - logsumexp(utility, axis=1, keepdims=True)))
        return np.exp(utility - self._total[self._which, round.users][:, None])

    def features(self, item: int | None) -> FloatArray:
        D, d = self.setting.n_features, self.params.embedding
        if item is None or self.params.features != "concatenation":
            return np.eye(D)
        own = np.zeros((len(self.seen_items), D))
        own[:, d : 2 * d] = self.seen_items[:, item]
        own[:, 2 * d :] = 1
        return np.concatenate([np.eye(D)[:d], own])

    def log(self, layout: int, n: int) -> Log:
        raise NotImplementedError("this world offers no log")

    def name(self, item: int, row: int = 0) -> str:  # noqa: ARG002
        return f"item {item:,}"
