"""The items of a policy, their features, and the features of a user with each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.types import FloatArray, IntArray

from .schema import Schema

Name = str | int
MAX_ITEMS = 10_000


class Items:
    """Items by name, in the order in which they came; withdrawn ones keep their place.

    Parameters
    ----------
    items : sequence of names, or mapping of names to features
    products : bool
        Multiply the features of user and item.
    """

    def __init__(self, items: Sequence[Name] | Mapping[Name, Any], *, products: bool) -> None:
        self.products = products
        self.names: list[Name] = []
        self.withdrawn: set[Name] = set()
        self.schema: Schema | None = None
        self._places: dict[Name, int] = {}
        self._given: list[Any] = []
        self._table: FloatArray | None = None
        self._active: IntArray | None = None
        if isinstance(items, str | bytes) or not isinstance(items, Sequence | Mapping | np.ndarray):
            raise UserError(
                f"items is {short(items)}; it must be a list of names, or a dictionary of their "
                "features"
            )
        for name in items:
            self.add(name, items[name] if isinstance(items, Mapping) else None)

    def add(self, name: Any, features: Any = None) -> None:
        """Add an item at the end."""
        # of an array or a data frame
        name = name.item() if isinstance(name, np.generic) else name
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise UserError(f"the item {short(name)} is no name: a text or an integer")
        if name in self._places:
            raise UserError(f"the item {short(name)} is there already")
        if len(self.names) >= MAX_ITEMS:
            raise UserError(f"there are more than {MAX_ITEMS:,} items")
        if self._given and (features is None) != (self._given[0] is None):
            raise UserError(
                f"the item {short(name)} {'lacks' if features is None else 'has'} features, "
                "unlike the others: give them for all items or for none"
            )
        if features is not None and self._table is not None:
            assert self.schema is not None
            row = self.schema.features(features, observe=False)
            self._table = np.vstack([self._table, row])
        self._given.append(features)
        self._places[name] = len(self.names)
        self.names.append(name)
        self._active = None

    def copy(self) -> Self:
        """Return the same items."""
        return type(self).from_data(self.to_data())

    def withdraw(self, name: Any) -> None:
        """Let an item no longer be a candidate."""
        if name not in self._places or name in self.withdrawn:
            raise UserError(f"the item {short(name)} is not one of this policy's")
        self.withdrawn.add(name)
        self._active = None

    def restore(self, name: Name) -> None:
        """Let a withdrawn item be a candidate again."""
        self.withdrawn.discard(name)
        self._active = None

    def index(self, candidates: Any = None, *, withdrawn: bool = False) -> IntArray:
        """Return the places of candidates, by default of all items that are not withdrawn.

        ``withdrawn``: allow candidates that are.

        Raises
        ------
        UserError
            A candidate is not known, withdrawn, or given twice.
        """
        if candidates is None:
            if self._active is None:
                active = [i for i, name in enumerate(self.names) if name not in self.withdrawn]
                self._active = np.array(active, np.int64)
            return self._active
        if isinstance(candidates, str | bytes) or not hasattr(candidates, "__iter__"):
            raise UserError(f"candidates is {short(candidates)}; it must be a list of items")
        names = list(candidates)
        if len(names) > MAX_ITEMS:
            raise UserError(f"there are {len(names):,} candidates; at most {MAX_ITEMS:,} allowed")
        for name in names:
            known = isinstance(name, str | int | np.generic) and name in self._places
            if not known or (name in self.withdrawn and not withdrawn):
                raise UserError(f"the candidate {short(name)} is not an item of this policy")
        found = np.array([self._places[name] for name in names], np.int64)
        if len(set(found.tolist())) < len(found):
            raise UserError("candidates has an item twice")
        return found

    def freeze(self, d: int) -> None:  # noqa: ARG002
        """Turn the features of the items into numbers, scaled over all of them."""
        if self._table is not None or not self._given or self._given[0] is None:
            return
        # the user's features have the constant
        self.schema = Schema.of(self._given[0], constant=False)
        for features in self._given:
            self.schema.features(features)
        rows = [self.schema.features(features, observe=False) for features in self._given]
        if any(row.ndim != 1 for row in rows):
            raise UserError("the features of an item must be one row of numbers")
        self._table = np.stack(rows)

    def width(self, d: int) -> int:
        """Return the features of a candidate, of which a context has d."""
        if self._table is None:
            return d
        m = int(self._table.shape[1])
        return d + m * d if self.products else d + m

    def features(self, x: FloatArray, index: IntArray) -> FloatArray:
        """Return the features of candidates, float64 (n, D) or (D,) for all.

        The user's, then the item's multiplied by each of the user's, which contain the constant.
        """
        if self._table is None:
            return x
        own, users = self._table[index], np.broadcast_to(x, (len(index), x.shape[-1]))
        if not self.products:
            return np.concatenate([users, own], axis=1)
        crossed = users[:, :, None] * own[:, None, :]
        return np.concatenate([users, crossed.reshape(len(index), -1)], axis=1)

    @property
    def have_features(self) -> bool:
        """Whether items have features."""
        return bool(self._given) and self._given[0] is not None

    def to_data(self) -> dict[str, Any]:
        """Return the items as plain data."""
        return {
            "names": list(self.names),
            "withdrawn": sorted(self.withdrawn, key=self._places.__getitem__),
            "products": self.products,
            "schema": None if self.schema is None else self.schema.to_data(),
            "table": None if self._table is None else self._table.tolist(),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the items that `to_data` described."""
        found = cls([], products=data["products"])
        table = data["table"]
        for i, name in enumerate(data["names"]):
            found.add(name, None if table is None else table[i])
        found.withdrawn = set(data["withdrawn"])
        found._active = None
        if table is not None:
            found._table = np.array(table)
            found.schema = Schema.from_data(data["schema"])
        return found
