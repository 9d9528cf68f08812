"""Keep what was used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A mapping that forgets the least recently used value beyond a number of values.

    Parameters
    ----------
    most : int
        Number of values that are kept.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> V:
        """Add or replace a value, which is then the one used last."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)
        return value

    def use(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; make it where it is not kept."""
        return self.keep(key, self[key] if key in self else make())
