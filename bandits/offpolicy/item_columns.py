"""Place values of the candidates of a round in columns of all items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandits.base.types import Round


def by_item(round: Round, values: NDArray[Any], n_items: int) -> NDArray[Any]:
    """Return values of the candidates (R, K) at the places of their items, (R, n_items); 0 elsewhere."""
    return at_items(round.items, values, n_items)


def at_items(items: NDArray[np.int64] | None, values: NDArray[Any], n_items: int) -> NDArray[Any]:
    """Return values (..., K) at the places of their items (..., n_items); without items they are there already."""
    if items is None:
        return values
    found = np.zeros((*values.shape[:-1], n_items), values.dtype)
    np.put_along_axis(found, np.broadcast_to(items, values.shape), values, axis=-1)
    return found
