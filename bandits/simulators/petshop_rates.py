"""Products of the pet shop and their click probabilities at every step: parameters, and what
changes do to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from bandits.base.params import param
from bandits.base.types import FloatArray, IntArray

from .changes import HOW, NEVER, Change, Season, permutation, step_param
from .launches import Launch, Withdraw

Category = Literal["Dog Food", "Dog Toy", "Cat Food", "Cat Toy", "Fish"]
CATEGORIES: tuple[str, ...] = get_args(Category)
# largest click probability of a product that differs from its category
MOST = 0.95


def users_param() -> Any:
    """Declare the number of users, each with a persona."""
    return param(
        1000,
        title="Users",
        ge=1,
        le=10_000_000,
        sweep=(100, 10_000),
        help=(
            "Number of customers, each with one of four personas. More are harder for agents "
            "that learn user embeddings; usually 100 to 10,000."
        ),
    )


class ProductLaunch(Launch):
    """At one step, new products become available; until then they cannot be shown."""

    category: Category | None = param(
        None, title="Category", empty="any", help="Category that they are drawn from. Empty: any."
    )

    @property
    def group(self) -> int | None:
        return None if self.category is None else CATEGORIES.index(self.category)


class ProductWithdrawal(Withdraw):
    """At one step, products are taken out of the shop; they never return."""

    category: Category | None = param(
        None, title="Category", empty="any", help="Category that they are drawn from. Empty: any."
    )

    @property
    def group(self) -> int | None:
        return None if self.category is None else CATEGORIES.index(self.category)


class ProductTraits(NamedTuple):
    """What makes products differ.

    Attributes
    ----------
    factor : float64 (K,)
        Of the click probabilities: exp(v z - v^2 / 2), of mean 1.
    hint : float64 (K,)
        Standard normal, with correlation h with z.
    """

    factor: FloatArray
    hint: FloatArray


def draw_traits(
    generator: np.random.Generator, n: int, variety: float, hints: float
) -> ProductTraits:
    """Draw z, standard normal, for each of n products, and what agents see of it."""
    z, other = generator.standard_normal((2, n))
    return ProductTraits(
        np.exp(variety * z - variety**2 / 2), hints * z + np.sqrt(1 - hints**2) * other
    )


def draw_personas(generator: np.random.Generator, n: int, shares: tuple[float, ...]) -> IntArray:
    """Draw the personas of n users, whose numbers have these shares as nearly as whole numbers can
    (int64).
    """
    exact = np.array(shares) * n
    counts = np.floor(exact).astype(np.int64)
    # largest remainders
    counts[np.argsort(counts - exact, kind="stable")[: n - counts.sum()]] += 1
    return generator.permutation(np.repeat(np.arange(len(shares)), counts))


def scaled(rates: FloatArray, factor: FloatArray) -> FloatArray:
    """Multiply click probabilities (..., K) by the factors of the products, up to `MOST`.

    1 changes nothing.
    """
    return np.where(factor == 1, rates, np.minimum(rates * factor, MOST))


Persona = Literal["new_puppy_parent", "cat_connoisseur", "budget_shopper", "fish_hobbyist"]
Destination = Literal[
    "new_puppy_parent", "cat_connoisseur", "budget_shopper", "fish_hobbyist", "mature_dog_owner"
]
PERSONAS: tuple[str, ...] = get_args(Persona)
SPOKEN_PERSONAS = tuple(name.replace("_", " ") for name in PERSONAS)
CLICK_RATES = (
    (0.40, 0.50, 0.10, 0.05, 0.02),
    (0.05, 0.02, 0.55, 0.45, 0.05),
    (0.25, 0.15, 0.40, 0.20, 0.20),
    (0.02, 0.02, 0.10, 0.08, 0.60),
)
# of no persona at first: puppy parents may drift there
MATURE_RATES = (0.60, 0.20, 0.10, 0.05, 0.02)

Rate = Annotated[float, Field(ge=0, le=1)]
Rates = Annotated[tuple[Rate, Rate, Rate, Rate, Rate], Field(strict=False)]
Table = Annotated[tuple[Rates, Rates, Rates, Rates], Field(strict=False)]


class RateShock(Change):
    """From one step on, the personas have other preferences."""

    kind: Literal["shock"] = "shock"
    at: int = step_param("Step", "First step with the new preferences.")
    how: Literal["next", "reverse", "table"] = param(
        "next",
        title="New preferences",
        help=(
            "next: every persona takes the preferences of the next one in the table. reverse: "
            "the first takes those of the last, and so on. table: those given."
        ),
    )
    table: Table | None = param(
        None,
        title="New table",
        empty="none",
        table=(SPOKEN_PERSONAS, CATEGORIES),
        help=(
            "New click probabilities, one per persona (row) and category (column). Larger values "
            "mean more clicks."
        ),
    )

    title = "Market shock"

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:
        return frozenset() if values.get("how") == "table" else frozenset({"table"})

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {
            **values,
            "table": (values.get("table") or CLICK_RATES) if values.get("how") == "table" else None,
        }

    @model_validator(mode="before")
    @classmethod
    def _table_as_how(cls, data: Any) -> Any:
        """Accept ``"how": [[...], ...]``."""
        if isinstance(data, dict) and isinstance(data.get("how"), list | tuple):
            return {**data, "how": "table", "table": data["how"]}
        return data

    @model_validator(mode="after")
    def _has_table(self) -> Self:
        if (self.how == "table") != (self.table is not None):
            raise ValueError(
                "table holds the new click probabilities: give it with how table, and only then"
            )
        return self

    def sentence(self) -> str:
        return f"{self.title} ({HOW[self.how]})"

    def apply(self, rates: FloatArray) -> FloatArray:
        """Return the click probabilities (4, 5) after it."""
        return (
            np.array(self.table)
            if self.how == "table"
            else rates[permutation(self.how, len(rates))]
        )


class Drift(Change):
    """Between two steps, the preferences of one persona become those of another, linearly."""

    kind: Literal["drift"] = "drift"
    start: int = step_param(
        "First step", "Last step at which the persona still has its own preferences."
    )
    end: int = step_param("Last step", "Step from which on the persona has the new preferences.")
    source: Persona = param(
        "new_puppy_parent", alias="from", title="From", help="Persona whose preferences change."
    )
    target: Destination = param(
        "mature_dog_owner",
        alias="to",
        title="To",
        help=(
            "Persona whose preferences it takes on. Mature dog owners like food above all, and "
            "appear only here."
        ),
    )

    title = "Drift"

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:
        return {"kind": "drift", "start": max(1, steps // 4), "end": max(2, 3 * steps // 4)}

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"end is {self.end:,}; it must be after start, {self.start:,}")
        if self.source == self.target:
            raise ValueError(f"from and to are both {self.source}; they must differ")
        return self

    @property
    def begins(self) -> int:
        return self.start

    @property
    def ends(self) -> int:
        return self.end

    def share(self, step: int) -> float:
        """Return the share of the way that is behind it, from 0 to 1."""
        return min(max((step - self.start) / (self.end - self.start), 0.0), 1.0)

    def sentence(self) -> str:
        return f"{self.title}: {self.source} to {self.target}".replace("_", " ")

    def contradicts(self, other: Change) -> str:
        if not isinstance(other, Drift) or self.source != other.source:
            return ""
        overlap = self.start < other.end and other.start < self.end
        return f"both move {self.source} at the same time" if overlap else ""


class RateSchedule:
    """Click probabilities of the personas for the categories at every step.

    Parameters
    ----------
    table : array_like (4, 5)
    changes : sequence of Change
        Those of rates are applied in this order: shocks, drifts, seasons.
    """

    def __init__(self, table: Any, changes: Sequence[Change]) -> None:
        self._table = np.array(table, np.float64)
        self._shocks = sorted((c for c in changes if isinstance(c, RateShock)), key=lambda c: c.at)
        self._drifts = sorted((c for c in changes if isinstance(c, Drift)), key=lambda c: c.start)
        self._seasons = [c for c in changes if isinstance(c, Season)]

    def rates(self, start: int, n: int = 1) -> FloatArray:
        """Return the click probabilities at ``n`` steps, float64 (n, 4, 5)."""
        out = np.empty((n, *self._table.shape))
        at, last = start, start + n
        while at < last:
            end = min(self._moves(at)[1], last)
            out[at - start : end - start] = self._without_seasons(at)
            at = end
        for season in self._seasons:
            out *= season.factor(np.arange(start, last), out.shape[2])[:, None, :]
        return np.clip(out, 0.0, 1.0) if self._seasons else out

    def interval(self, step: int) -> tuple[int, int]:
        """Return the first step with the rates of this one, and the first step after it with
        others.
        """
        return (step, step + 1) if self._seasons else self._moves(step)

    def variation(self, steps: int) -> float:
        """Compute the variation budget: the sum over steps of the largest change of any rate [1]_.

        References
        ----------
        .. [1] Besbes, Gur, Zeevi (2014), Stochastic multi-armed-bandit problem with non-stationary
               rewards, section 2.
        """
        total, step, length = 0.0, 0, 10_000
        while step < steps - 1:
            step = min(self.interval(step)[1], steps) - 1
            moving = self.rates(step, min(length, steps - step))
            total += float(np.abs(np.diff(moving, axis=0)).max(axis=(1, 2)).sum())
            step += max(1, len(moving) - 1)
        return total

    def _moves(self, step: int) -> tuple[int, int]:
        """Return the last step until this one, and the first after it, that a shock or a drift
        makes different.
        """
        began = [c.at for c in self._shocks if c.at <= step]
        began += [min(step, d.end) for d in self._drifts if d.start < step]
        comes = [c.at for c in self._shocks if c.at > step]
        comes += [max(step, d.start) + 1 for d in self._drifts if step < d.end]
        return max(began, default=0), min(comes, default=NEVER)

    def _without_seasons(self, step: int) -> FloatArray:
        rates = self._table
        for shock in self._shocks:
            if shock.at <= step:
                rates = shock.apply(rates)
        rows = np.vstack([rates, MATURE_RATES])
        for drift in self._drifts:
            if drift.start < step:
                source, target = (
                    get_args(Destination).index(name) for name in (drift.source, drift.target)
                )
                rows[source] += drift.share(step) * (rows[target] - rows[source])
        return rows[: len(rates)]
