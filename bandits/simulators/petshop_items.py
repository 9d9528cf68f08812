"""Products of the pet shop that differ within a category: how good each is, and what agents can see of it."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from bandits.base.params import param
from bandits.base.types import FloatArray, IntArray

from .launches import Launch, Withdraw

Category = Literal["Dog Food", "Dog Toy", "Cat Food", "Cat Toy", "Fish"]
CATEGORIES: tuple[str, ...] = get_args(Category)
MOST = 0.95  # largest click probability of a product that differs from its category


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


def draw_traits(generator: np.random.Generator, n: int, variety: float, hints: float) -> ProductTraits:
    """Draw z, standard normal, for each of n products, and what agents see of it."""
    z, other = generator.standard_normal((2, n))
    return ProductTraits(np.exp(variety * z - variety**2 / 2), hints * z + np.sqrt(1 - hints**2) * other)


def draw_personas(generator: np.random.Generator, n: int, shares: tuple[float, ...]) -> IntArray:
    """Draw the personas of n users, whose numbers have these shares as nearly as whole numbers can (int64)."""
    exact = np.array(shares) * n
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: n - counts.sum()]] += 1  # largest remainders
    return generator.permutation(np.repeat(np.arange(len(shares)), counts))


def scaled(rates: FloatArray, factor: FloatArray) -> FloatArray:
    """Multiply click probabilities (..., K) by the factors of the products, up to `MOST`; 1 changes nothing."""
    return np.where(factor == 1, rates, np.minimum(rates * factor, MOST))
