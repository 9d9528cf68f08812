"""The Zooplus pet shop: four personas, five product categories."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bandits.base.formatting import count
from bandits.base.params import param
from bandits.base.randomness import Streams, steps_left_in_block
from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    PredrawnSteps,
    Round,
    SimulatorSpec,
    Truth,
)

from . import changes
from .base import ClickTable, Simulator, SimulatorParams, layout_param
from .changed_inputs import ObservedContexts, VisitorShares
from .changes import Change, Features, Season, Traffic, changes_param
from .launches import Launch, Stock, Withdraw, check_stock
from .petshop_features import distinct, feature_width, make_contexts, notebook_shop
from .petshop_rates import CATEGORIES as CATEGORIES
from .petshop_rates import CLICK_RATES as CLICK_RATES
from .petshop_rates import PERSONAS as PERSONAS
from .petshop_rates import (
    SPOKEN_PERSONAS,
    Drift,
    ProductLaunch,
    ProductTraits,
    ProductWithdrawal,
    RateSchedule,
    RateShock,
    Table,
    draw_personas,
    draw_traits,
    scaled,
    users_param,
)

# of click probabilities
KEPT_TABLES = 3
# click probabilities of moving rates that are computed at once
MOVING_CELLS = 2**17
# products whose hints are enough to span those of all
HINTED = 1000
_P, _C = len(PERSONAS), len(CATEGORIES)
_EQUAL = (1 / _P,) * _P

Changes = Annotated[
    RateShock | Drift | Season | Traffic | Features | ProductLaunch | ProductWithdrawal,
    Field(discriminator="kind"),
]


class PetShop(Simulator):
    """A shop that shows one product to each visitor, who clicks or not.

    Every user has one of four personas, every product one of five categories (balanced, shuffled);
    click ~ Bernoulli(click probability of the persona for the category). From ``shock_step`` on,
    every persona has the preferences of the next one in the table; ``changes`` hold this and more.
    Regret is against the optimum of the step."""

    class Params(SimulatorParams):
        kind: Literal["petshop"] = "petshop"
        n_products: int = param(
            50,
            title="Products",
            symbol="K",
            ge=2,
            le=10_000_000,
            basic=True,
            sweep=(10, 200),
            help=(
                "Number of products, spread evenly over five categories. More products need more "
                "exploration; usual are 20 to 200."
            ),
        )
        n_users: int = users_param()
        features: Literal["additive", "interaction", "both"] = param(
            "additive",
            title="Features",
            basic=True,
            help=(
                "What agents observe. additive: persona (4) and category (5), as published. "
                "interaction: persona x category (20), with which one shared linear model can "
                "represent preferences. both: all of these."
            ),
        )
        layout: Literal["shared", "per_row", "notebook"] = layout_param(
            "shop", " notebook: the published notebook's shop, in every replication."
        )
        shock_step: int | None = param(
            None,
            title="Market shock",
            unit="step",
            empty="never",
            ge=1,
            le=100_000_000,
            basic=True,
            sweep=(1_000, 16_000),
            help=(
                "Step at which the preferences of the personas are permuted, so that agents must "
                "relearn them. Empty: never."
            ),
        )
        click_rates: Table = param(
            CLICK_RATES,
            title="Click probabilities",
            table=(SPOKEN_PERSONAS, CATEGORIES),
            help=(
                "One per persona (row) and product category (column). Larger values mean more "
                "clicks."
            ),
        )
        changes: tuple[Changes, ...] = changes_param(
            "preferences (shock, drift, season), visitors (traffic), products (launch, withdraw)"
        )
        variety: float = param(
            0.0,
            title="Variety",
            symbol="v",
            ge=0,
            le=0.5,
            later=True,
            help=(
                "How much products of one category differ: click probabilities are multiplied by "
                "exp(v z − v²/2) with z standard normal, up to 0.95. Larger values make single "
                "products matter more; usually 0.1 to 0.3."
            ),
        )
        hints: float = param(
            0.0,
            title="Hints",
            symbol="h",
            ge=0,
            le=1,
            later=True,
            help=(
                "Correlation of one more feature with the quality z of a product; with persona x "
                "category features also its product with each of them. Larger values let models "
                "predict new products; 0: no such feature."
            ),
        )
        persona_shares: tuple[float, ...] = param(
            _EQUAL,
            title="Persona shares",
            later=True,
            min_length=_P,
            max_length=_P,
            help=(
                "Share of the users with each persona; they add up to 1. A smaller share makes a "
                "persona rarer."
            ),
        )

        @property
        def width(self) -> tuple[int, int]:
            """The number of features D, and the number of stored ones N."""
            return feature_width(self.features, hinted=bool(self.hints))

        @property
        def all_changes(self) -> dict[str, Change]:
            found: dict[str, Change] = {
                f"simulator.changes.{i}": change for i, change in enumerate(self.changes)
            }
            if self.shock_step is not None:
                found["simulator.shock_step"] = RateShock(at=self.shock_step)
            return found

        def without_changes(self) -> Self:
            return self.model_copy(update={"changes": (), "shock_step": None})

        @classmethod
        def when_empty(cls, name: str, values: dict[str, Any]) -> str:
            if name != "shock_step" or not values.get("changes"):
                return super().when_empty(name, values)
            given = [c if isinstance(c, dict) else c.model_dump() for c in values["changes"]]
            at = sorted(
                c["at"] for c in given if c.get("kind") == "shock" and isinstance(c.get("at"), int)
            )
            return f"{', '.join(map(count, at))} (in Changes)" if at else "never (see Changes)"

        @model_validator(mode="after")
        def _agree(self) -> Self:
            changes.check(self.all_changes, self.width[0])
            check_stock(self.all_changes, [len(range(c, self.n_products, _C)) for c in range(_C)])
            if min(self.persona_shares) < 0 or abs(sum(self.persona_shares) - 1) > 1e-6:
                given = ", ".join(f"{share:g}" for share in self.persona_shares)
                raise ValueError(
                    f"simulator.persona_shares are {given}; they must be from 0 to 1 and add up to "
                    "1"
                )
            if self.layout == "notebook" and self.persona_shares != _EQUAL:
                raise ValueError(
                    "simulator.persona_shares must be equal with layout notebook, which draws its "
                    "own"
                )
            for name, change in self.all_changes.items():
                if isinstance(change, Traffic) and (n := len(change.shares)) != _P:
                    raise ValueError(
                        f"{name}.shares has {n} numbers; it must have {_P}, one per persona"
                    )
            return self

        @classmethod
        def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
            own = (
                values.get("layout") == "notebook"
                and tuple(values.get("persona_shares", _EQUAL)) != _EQUAL
            )
            return {**values, "persona_shares": _EQUAL} if own else values

    title = "Pet shop"
    family = "Recommendation"
    preset = "race"

    def __init__(self, params: Any, streams: Streams) -> None:
        super().__init__(params, streams)
        R, K = len(streams.rows), params.n_products
        shops = streams.rows if params.layout == "per_row" else (0,)
        users, products, traits = zip(*(self._layout(layout) for layout in shops), strict=True)
        # (L, n_users), L layouts
        self._personas = np.stack(users)
        self._categories = np.stack(products)  # (L, K)
        self._hints = np.stack([t.hint for t in traits]) if params.hints else None
        self._layout_index = np.arange(R) if len(shops) > 1 else np.zeros(R, np.int64)
        self._changes = tuple(params.all_changes.values())
        self._schedule = RateSchedule(params.click_rates, self._changes)
        self._stock = Stock(
            self._changes,
            self._categories,
            lambda layout, part: streams.generator("layout", row=shops[layout], part=part),
        )
        # of the click probabilities, (L, K); None: all 1
        self._factor = self._stock.quality
        if params.variety:
            factor = np.stack([t.factor for t in traits])
            self._factor = factor if self._factor is None else factor * self._factor
        # by the first step with these click probabilities
        self._tables: dict[int, ClickTable] = {}
        contexts = make_contexts(params.features, self._categories, self._hints, params.width)
        self._observed = ObservedContexts(contexts, self._changes, self.spec.n_stored)
        self._traffic = VisitorShares(self._personas, self._changes)
        self._items = np.broadcast_to(np.arange(K), (R, K)).copy()
        # by the first step at which these are
        self._available = {0: self._stock.at(0)[self._layout_index]}
        self._users = streams.blocks("world", lambda g, n: g.integers(0, params.n_users, size=n))

    @classmethod
    def describe(cls, params: Any) -> SimulatorSpec:
        n_features, n_stored = params.width
        faults = params.all_changes.values()
        n_stored += changes.more_stored(faults, n_stored, n_features)
        broken = any(isinstance(change, Features) for change in faults)
        return SimulatorSpec(
            n_items=params.n_products,
            n_candidates=params.n_products,
            n_features=n_features,
            n_stored=n_stored,
            n_users=params.n_users,
            n_categories=len(CATEGORIES),
            fixed_contexts=0 if broken else _P,
            bounds=(-np.inf, np.inf) if broken or params.hints else (0.0, 1.0),
            capabilities=frozenset(
                {"ids", "truth", "segments", "log", "binary", "arm_features", "categories"}
            ),
        )

    @classmethod
    def memory(cls, params: Any, rows: int) -> int:
        layouts = rows if params.layout == "per_row" else 1
        n_stored, n_changes = cls.describe(params).n_stored, len(params.all_changes)
        versions = 1 + sum(isinstance(change, Features) for change in params.all_changes.values())
        tables = 2 if not params.changes else 2 * KEPT_TABLES
        per_layout = (3 + 2 * bool(n_changes)) * params.n_users
        per_layout += params.n_products * _P * (2 * n_stored * versions + tables)
        stocks = sum(
            isinstance(change, Launch | Withdraw) for change in params.all_changes.values()
        )
        per_layout += params.n_products * (
            4 * bool(params.variety or params.hints or stocks) + stocks
        )
        return int(8 * (layouts * per_layout + rows * params.n_products * (1 + stocks // 8)))

    def round_at(self, step: int) -> Round:
        users = self._traffic.users(self._users.at(step), self._layout_index, step)
        personas = self._personas[self._layout_index, users]
        context = personas + _P * self._layout_index
        return Round(
            step,
            users,
            self._items,
            self._observed.at(step),
            context,
            self._available_at(step),
            personas,
        )

    def respond(
        self, round: Round, slate: IntArray, uniforms: FloatArray
    ) -> tuple[Feedback, Truth]:
        return self._rates_at(round.step).respond(round.context, slate, uniforms)

    def probabilities(self, round: Round) -> FloatArray:
        return self._rates_at(round.step).probabilities[round.context]

    def features(self, item: int | None) -> FloatArray:
        chosen = (
            slice(None if self._hints is None else HINTED)
            if item is None
            else slice(item, item + 1)
        )
        found = [distinct(contexts, chosen) for contexts in self._observed.all()]
        return found[0] if len(found) == 1 else np.unique(np.vstack(found), axis=0)

    def launched(self) -> dict[int, list[IntArray]]:
        return {
            i: [items[at] for at in self._layout_index] for i, items in self._stock.cohorts.items()
        }

    def categories(self) -> IntArray:
        return self._categories[self._layout_index]

    def log(self, layout: int, n: int) -> LoggedData:
        """Return interactions logged before the first change: what is learned from them is outdated
        after it.
        """
        generator = self.streams.generator("log", row=layout)
        at = (
            int(np.flatnonzero(self.layouts() == layout)[0])
            if self.params.layout == "per_row"
            else 0
        )
        users = generator.integers(0, self.params.n_users, size=n)
        items = generator.integers(0, self.params.n_products, size=n)
        if not self._stock.complete(0):
            offered = np.flatnonzero(self._stock.at(0)[at])
            items = offered[items * len(offered) // self.params.n_products]
        context = self._personas[at, users] + _P * at
        means = self._rates_at(0).probabilities[context, items]
        rewards = (generator.random(n) < means).astype(np.float64)
        values, columns, _ = self._observed.at(0)
        return LoggedData(
            users, items, values[context, items], columns[context, items], rewards, means
        )

    def predraw(self, step: int, n: int) -> PredrawnSteps | None:
        # compiled steps offer every item
        if not self._stock.complete(step):
            return None
        n = steps_left_in_block(step, n, self.params.n_products)
        n = min(n, self._traffic.next_change(step) - step, self._observed.next_change(step) - step)
        n = min(n, self._stock.interval(step)[1] - step)
        end = self._schedule.interval(step)[1]
        moving = end == step + 1
        n = min(n, max(1, MOVING_CELLS // self._categories.size)) if moving else min(n, end - step)
        users = self._traffic.users(self._users.slice(step, n), self._layout_index, step)
        personas = self._personas[self._layout_index, users]
        context = personas + _P * self._layout_index
        table, row = self._rates_at(step), context
        # a table for each step, below each other
        if moving:
            table = self._table(self._schedule.rates(step, n), step)
            row = context + len(self._personas) * _P * np.arange(n)[:, None]
        uniforms = self.uniforms.slice(step, n)[:, :, 0]
        return PredrawnSteps(
            step, users, personas, context, self._observed.at(step), *table, row, uniforms
        )

    @classmethod
    def variation(cls, params: Params, steps: int) -> float | None:
        launched = (change for change in params.all_changes.values() if isinstance(change, Launch))
        # products differ by what is drawn
        if params.variety or any(launch.quality != 1 for launch in launched):
            return None
        schedule = RateSchedule(params.click_rates, tuple(params.all_changes.values()))
        return schedule.variation(steps)

    def log_key(self) -> str:
        later = {"variety", "hints", "persona_shares"}
        fields = type(self.params).model_fields
        default = {name for name in later if getattr(self.params, name) == fields[name].default}
        key = str(self.params.model_dump_json(exclude={"shock_step", "changes", *default}))
        launched = {name: c for name, c in self.params.all_changes.items() if isinstance(c, Launch)}
        return key + "".join(
            f"|{name}: {c.model_dump_json(exclude={'at'})}" for name, c in launched.items()
        )

    def name(self, item: int, row: int = 0) -> str:
        layout = self._layout_index[row]
        category = CATEGORIES[self._categories[layout, item]]
        differs = self.params.hints or (
            self._factor is not None and self._factor[layout, item] != 1
        )
        return f"{category} {item}" if differs else category

    @classmethod
    def segment_names(cls) -> list[str]:
        return list(SPOKEN_PERSONAS)

    @classmethod
    def category_names(cls) -> list[str]:
        return list(CATEGORIES)

    def _layout(self, layout: int) -> tuple[IntArray, IntArray, ProductTraits]:
        """Draw the persona of every user, the category of every product, and what makes products
        differ.
        """
        p, generator = self.params, self.streams.generator("layout", row=layout)
        products = generator.permutation(np.arange(p.n_products) % _C)
        if p.layout == "notebook":
            users, products = notebook_shop(p.n_users, p.n_products)
        elif p.persona_shares == _EQUAL:
            users = generator.integers(0, _P, size=p.n_users)
        else:
            users = draw_personas(generator, p.n_users, p.persona_shares)
        n = p.n_products if p.variety or p.hints else 0
        own = self.streams.generator("layout", row=layout, part=1)
        return users, products, draw_traits(own, n, p.variety, p.hints)

    def _available_at(self, step: int) -> BoolArray:
        """Return the products that can be shown at a step, bool (R, K)."""
        start, _ = self._stock.interval(step)
        if start not in self._available:
            self._available = {start: self._stock.at(step)[self._layout_index]}
        return self._available[start]

    def _table(self, rates: FloatArray, step: int) -> ClickTable:
        """Make the table of every layout and persona from click probabilities (n, persona,
        category), in this order.
        """
        tables = rates[:, :, self._categories].transpose(0, 2, 1, 3)  # (n, L, persona, K)
        if self._factor is not None:
            tables = scaled(tables, self._factor[:, None])
        K = tables.shape[-1]
        if self._stock.complete(step):
            return ClickTable.of(tables.reshape(-1, K))
        offered = np.broadcast_to(self._stock.at(step)[:, None], tables.shape)
        return ClickTable.of(tables.reshape(-1, K), offered.reshape(-1, K))

    def _rates_at(self, step: int) -> ClickTable:
        start = max(self._schedule.interval(step)[0], self._stock.interval(step)[0])
        if start not in self._tables:
            if len(self._tables) >= KEPT_TABLES:
                del self._tables[next(iter(self._tables))]  # the oldest
            self._tables[start] = self._table(self._schedule.rates(start), start)
        return self._tables[start]
