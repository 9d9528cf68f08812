"""The Zooplus pet shop: four personas, five product categories."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

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
    Truth,
    WorldSpec,
)

from .base import ClickTable, Simulator, SimulatorParams

PERSONAS = ("new_puppy_parent", "cat_connoisseur", "budget_shopper", "fish_hobbyist")
_SPOKEN_PERSONAS = tuple(name.replace("_", " ") for name in PERSONAS)
CATEGORIES = ("Dog Food", "Dog Toy", "Cat Food", "Cat Toy", "Fish")
CLICK_RATES = (
    (0.40, 0.50, 0.10, 0.05, 0.02),
    (0.05, 0.02, 0.55, 0.45, 0.05),
    (0.25, 0.15, 0.40, 0.20, 0.20),
    (0.02, 0.02, 0.10, 0.08, 0.60),
)
_P, _C = len(PERSONAS), len(CATEGORIES)
_WIDTH = {"additive": (_P + _C, 2), "interaction": (_P * _C, 1), "both": (_P + _C + _P * _C, 3)}  # D, N

Rate = Annotated[float, Field(ge=0, le=1)]
Rates = Annotated[tuple[Rate, Rate, Rate, Rate, Rate], Field(strict=False)]
Table = Annotated[tuple[Rates, Rates, Rates, Rates], Field(strict=False)]


class PetShop(Simulator):
    """A shop that shows one product to each visitor, who clicks or not.

    Every user has one of four personas, every product one of five categories (balanced, shuffled);
    click ~ Bernoulli(click probability of the persona for the category). From ``shock_step`` on, every persona has the
    preferences of the next one in the table, and regret is against the new optimum.
    """

    class Params(SimulatorParams):
        kind: Literal["petshop"] = "petshop"
        n_products: int = param(
            50, title="Products", symbol="K", ge=2, le=10_000_000, basic=True,
            help="Number of products, spread evenly over five categories. More products need more exploration; usual "
            "are 20 to 200.",
        )  # fmt: skip
        n_users: int = param(
            1000, title="Users", ge=1, le=10_000_000,
            help="Number of customers, each with one of four personas. More are harder for agents that learn user "
            "embeddings; usually 100 to 10,000.",
        )  # fmt: skip
        features: Literal["additive", "interaction", "both"] = param(
            "additive", title="Features", basic=True,
            help="What agents observe. additive: persona (4) and category (5), as published. interaction: persona x "
            "category (20), with which one shared linear model can represent preferences. both: all of these.",
        )  # fmt: skip
        layout: Literal["shared", "per_row"] = param(
            "shared", title="Layout",
            help="shared: the same shop in every replication. per_row: each replication has its own, which widens the "
            "confidence bands.",
        )  # fmt: skip
        shock_step: int | None = param(
            None, title="Market shock", unit="step", empty="never", ge=1, le=100_000_000, basic=True,
            help="Step at which the preferences of the personas are permuted, so that agents must relearn them. Empty: "
            "never.",
        )  # fmt: skip
        click_rates: Table = param(
            CLICK_RATES, title="Click probabilities", table=(_SPOKEN_PERSONAS, CATEGORIES),
            help="One per persona (row) and product category (column). Larger values mean more clicks.",
        )  # fmt: skip

    title = "Pet shop"
    family = "Recommendation"
    preset = "race"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, K = len(streams.rows), params.n_products
        shops = streams.rows if params.layout == "per_row" else (0,)
        users, products = zip(*(self._layout(layout) for layout in shops), strict=True)
        self._personas = np.stack(users)  # (L, n_users), L layouts
        self._categories = np.stack(products)  # (L, K)
        self._layout_index = np.arange(R) if len(shops) > 1 else np.zeros(R, np.int64)
        self._contexts = self._make_contexts()
        rates = np.array(params.click_rates)
        self._before, self._after = self._table(rates), self._table(np.roll(rates, -1, axis=0))
        self._items = np.broadcast_to(np.arange(K), (R, K)).copy()
        self._available = np.ones((R, K), np.bool_)
        self._users = streams.blocks("world", lambda g, n: g.integers(0, params.n_users, size=n))

    @classmethod
    def describe(cls, params: Any) -> WorldSpec:
        n_features, n_stored = _WIDTH[params.features]
        return WorldSpec(
            n_items=params.n_products, n_candidates=params.n_products, n_features=n_features, n_stored=n_stored,
            n_users=params.n_users, fixed_contexts=_P,
            capabilities=frozenset({"ids", "truth", "segments", "log", "binary", "arm_features"}),
        )  # fmt: skip

    @classmethod
    def layout_per_row(cls, params: Any) -> bool:
        return bool(params.layout == "per_row")

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        layouts = rows if params.layout == "per_row" else 1
        n_stored = _WIDTH[params.features][1]
        per_layout = 3 * params.n_users + params.n_products * _P * (2 * n_stored + 2)
        return int(8 * (layouts * per_layout + rows * params.n_products))

    def round_at(self, step: int) -> Round:
        users = self._users.at(step)
        personas = self._personas[self._layout_index, users]
        context = personas + _P * self._layout_index
        return Round(step, users, self._items, self._contexts, context, self._available, personas)

    def respond(self, round: Round, slate: IntArray, uniforms: FloatArray) -> tuple[Feedback, Truth]:
        return self._rates_at(round.step).respond(round.context, slate, uniforms)

    def probabilities(self, round: Round) -> FloatArray:
        return self._rates_at(round.step).probabilities[round.context]

    def features(self, item: int | None) -> FloatArray:
        _, columns, n_features = self._contexts
        chosen = slice(None) if item is None else slice(item, item + 1)
        rows = np.unique(columns[:, chosen].reshape(-1, columns.shape[2]), axis=0)  # all values are one
        dense = np.zeros((len(rows), n_features))
        np.put_along_axis(dense, rows, 1.0, axis=1)
        return dense

    def log(self, layout: int, n: int) -> LoggedData:
        """Return interactions logged before the shock: what is learned from them is outdated after it."""
        generator = self.streams.generator("log", row=layout)
        at = int(np.flatnonzero(self.layouts() == layout)[0]) if self.params.layout == "per_row" else 0
        users = generator.integers(0, self.params.n_users, size=n)
        items = generator.integers(0, self.params.n_products, size=n)
        context = self._personas[at, users] + _P * at
        rewards = generator.random(n) < self._before.probabilities[context, items]
        values, columns, _ = self._contexts
        return LoggedData(users, items, values[context, items], columns[context, items], rewards.astype(np.float64))

    def predraw(self, step: int, n: int) -> PredrawnSteps:
        n = steps_left_in_block(step, n, self.params.n_products)
        shock = self.params.shock_step
        if shock is not None and step < shock:
            n = min(n, shock - step)
        users = self._users.slice(step, n)
        personas = self._personas[self._layout_index, users]
        context = personas + _P * self._layout_index
        uniforms = self.uniforms.slice(step, n)[:, :, 0]
        return PredrawnSteps(step, users, personas, context, self._contexts, *self._rates_at(step), uniforms)

    @classmethod
    def shock(cls, params: Params) -> int | None:
        return params.shock_step

    def log_key(self) -> str:
        return str(self.params.model_dump_json(exclude={"shock_step"}))

    def name(self, item: int, row: int = 0) -> str:
        return CATEGORIES[self._categories[self._layout_index[row], item]]

    @classmethod
    def segment_names(cls) -> list[str]:
        return list(_SPOKEN_PERSONAS)

    def _layout(self, layout: int) -> tuple[IntArray, IntArray]:
        """Draw the persona of every user and the category of every product."""
        generator = self.streams.generator("layout", row=layout)
        products = generator.permutation(np.arange(self.params.n_products) % _C)
        return generator.integers(0, _P, size=self.params.n_users), products

    def _make_contexts(self) -> Contexts:
        """Return one context per layout and persona, in that order."""
        persona = np.arange(_P)[None, :, None]
        category = self._categories[:, None, :]
        persona, category = (a.reshape(-1, a.shape[-1]) for a in np.broadcast_arrays(persona, category))
        columns = {
            "additive": [persona, _P + category],
            "interaction": [persona * _C + category],
            "both": [persona, _P + category, _P + _C + persona * _C + category],
        }[self.params.features]
        stacked = np.ascontiguousarray(np.stack(columns, axis=-1).astype(np.int64))
        return Contexts(np.ones(stacked.shape), stacked, self.spec.n_features)

    def _table(self, rates: FloatArray) -> ClickTable:
        tables = rates[:, self._categories].transpose(1, 0, 2)  # (L, persona, K)
        return ClickTable.of(tables.reshape(-1, tables.shape[-1]))

    def _rates_at(self, step: int) -> ClickTable:
        shock = self.params.shock_step
        return self._after if shock is not None and step >= shock else self._before
