"""Features of the pet shop: persona, category, both, and a hint of quality.

And the shop of the published notebook.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from bandits.base.types import Contexts, FloatArray, IntArray

from .petshop_rates import CATEGORIES, PERSONAS

Encoding = Literal["additive", "interaction", "both"]
_P, _C = len(PERSONAS), len(CATEGORIES)
_WIDTH = {
    "additive": (_P + _C, 2),
    "interaction": (_P * _C, 1),
    "both": (_P + _C + _P * _C, 3),
}  # D, N


def feature_width(encoding: Encoding, *, hinted: bool) -> tuple[int, int]:
    """Return the number of features D and the number of stored ones N.

    A hint is one column, and where persona x category are features, also its product with each of
    these."""
    n_features, n_stored = _WIDTH[encoding]
    if not hinted:
        return n_features, n_stored
    return (
        (n_features + 1, n_stored + 1)
        if encoding == "additive"
        else (n_features + 1 + _P * _C, n_stored + 2)
    )


def make_contexts(
    encoding: Encoding, categories: IntArray, hints: FloatArray | None, width: tuple[int, int]
) -> Contexts:
    """Return one context per layout and persona, in that order.

    Parameters
    ----------
    categories : int64 (L, K)
    hints : float64 (L, K), optional
    width : tuple of int
        D and N.
    """
    K = categories.shape[1]
    persona, category = np.arange(_P)[None, :, None], categories[:, None, :]
    persona, category = (a.reshape(-1, K) for a in np.broadcast_arrays(persona, category))
    columns = {
        "additive": [persona, _P + category],
        "interaction": [persona * _C + category],
        "both": [persona, _P + category, _P + _C + persona * _C + category],
    }[encoding]
    values = np.ones((*persona.shape, width[1]))
    if hints is not None:
        shown = np.broadcast_to(hints[:, None], (len(hints), _P, K)).reshape(-1, K)
        values[..., len(columns) :] = shown[..., None]
        first = _WIDTH[encoding][0]
        columns.append(np.full(persona.shape, first))
        if len(columns) < width[1]:
            columns.append(first + 1 + persona * _C + category)
    stacked = np.ascontiguousarray(np.stack(columns, axis=-1).astype(np.int64))
    return Contexts(values, stacked, width[0])


def distinct(contexts: Contexts, chosen: slice) -> FloatArray:
    """Return the distinct feature vectors of some items, float64 (n, D)."""
    values, columns, n_features = contexts
    stored = np.concatenate([values[:, chosen], columns[:, chosen]], axis=2)
    rows = np.unique(stored.reshape(-1, stored.shape[2]), axis=0)
    N, dense = columns.shape[2], np.zeros((len(rows), n_features))
    np.put_along_axis(dense, rows[:, N:].astype(np.int64), rows[:, :N], axis=1)
    return dense


SEED = 42
# in the order of that program
_CATEGORIES = ("Fish", "Cat Food", "Dog Food", "Dog Toy", "Cat Toy")
_PERSONAS = ("new_puppy_parent", "cat_connoisseur", "budget_shopper", "fish_hobbyist")


def notebook_shop(n_users: int, n_products: int) -> tuple[IntArray, IntArray]:
    """Draw the notebook's shop from its own generator.

    With 1,000 users and 50 products it is the published one: shares of the personas .255, .237,
    .258 and .250.

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
