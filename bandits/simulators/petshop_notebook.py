"""The pet shop of the published notebook, drawn as its program draws it."""

from __future__ import annotations

import numpy as np

from bandits.base.types import IntArray

from .petshop_rates import CATEGORIES, PERSONAS

SEED = 42
_CATEGORIES = ("Fish", "Cat Food", "Dog Food", "Dog Toy", "Cat Toy")  # in the order of that program
_PERSONAS = ("new_puppy_parent", "cat_connoisseur", "budget_shopper", "fish_hobbyist")


def notebook_shop(n_users: int, n_products: int) -> tuple[IntArray, IntArray]:
    """Draw the notebook's shop from its own generator.

    With 1,000 users and 50 products it is the published one: shares of the personas .255, .237, .258 and .250.

    Returns
    -------
    tuple of int64
        Persona of every user, (n_users,), and category of every product, (n_products,).
    """
    generator, C = np.random.default_rng(SEED), len(_CATEGORIES)
    balanced = np.repeat(np.arange(C), n_products // C)
    rest = generator.choice(C, n_products - len(balanced))
    products = generator.permutation(np.concatenate([balanced, rest]))
    users = generator.integers(0, len(_PERSONAS), size=n_users)
    categories = np.array([CATEGORIES.index(name) for name in _CATEGORIES])
    return np.array([PERSONAS.index(name) for name in _PERSONAS])[users], categories[products]
