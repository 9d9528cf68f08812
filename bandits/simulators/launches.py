"""Items that are launched and withdrawn during a run: which of them can be shown at a step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from bandits.base.params import param
from bandits.base.types import BoolArray, FloatArray, IntArray

from .changes import LAST, NEVER, Change, step_param

# first part of the layout's stream from which launches and withdrawals draw their items
DRAWS = 2


class Launch(Change):
    """At one step, new items become available; until then they cannot be shown."""

    kind: Literal["launch"] = "launch"
    at: int = step_param("Step", "First step at which they can be shown.")
    items: int = param(
        10,
        title="Items",
        ge=1,
        le=LAST,
        help=(
            "Number of new items, drawn at random. Larger values spread the visitors over more "
            "of them."
        ),
    )
    quality: float = param(
        1.0,
        title="Quality",
        symbol="q",
        ge=0,
        le=10,
        typical=(0, 2),
        help=(
            "Factor of their click probabilities (at most 0.95). Larger values make them better: "
            "1.5 is a hit, 0.5 a flop."
        ),
    )

    title = "Launch"

    @property
    def group(self) -> int | None:
        """The category that they are drawn from; None: any."""
        return None

    @classmethod
    def suggested(cls, steps: int) -> dict[str, Any]:
        return {**super().suggested(steps), "items": 5}

    def sentence(self) -> str:
        quality = "" if self.quality == 1 else f", quality {self.quality:g}"
        return f"{self.title} of {_counted(self.items)}{quality}"

    def contradicts(self, other: Change) -> str:  # noqa: ARG002
        return ""


class Withdraw(Change):
    """At one step, items are taken out of the catalogue; they never return."""

    kind: Literal["withdraw"] = "withdraw"
    at: int = step_param("Step", "First step at which they cannot be shown any more.")
    items: int = param(
        5,
        title="Items",
        ge=1,
        le=LAST,
        help=(
            "Number of items that go, drawn at random from those available. Larger values leave "
            "fewer."
        ),
    )

    title = "Withdrawal"

    @property
    def group(self) -> int | None:
        """The category that they are drawn from; None: any."""
        return None

    def sentence(self) -> str:
        return f"{self.title} of {_counted(self.items)}"

    def contradicts(self, other: Change) -> str:  # noqa: ARG002
        return ""


def _counted(n: int) -> str:
    return f"{n:,} item{'' if n == 1 else 's'}"


def check_stock(changes: Mapping[str, Change], sizes: Sequence[int], least: int = 1) -> None:
    """Raise ValueError, in one sentence, where more items are launched or withdrawn than there are.

    Items without a category may come from any, so the numbers hold whatever is drawn.

    Parameters
    ----------
    changes : mapping of str to Change
        By the name of the field.
    sizes : sequence of int
        Items of each category.
    least : int
        Items that must be available at every step.
    """
    launches = {name: c for name, c in changes.items() if isinstance(c, Launch)}
    withdrawals = {name: c for name, c in changes.items() if isinstance(c, Withdraw)}
    # of each category, certainly; of all
    left, total = list(sizes), sum(sizes)
    for name, launch in sorted(launches.items(), key=lambda entry: entry[1].group is None):
        most = _most(launch, left, total - least)
        if launch.items > most:
            raise ValueError(f"{name}.items is {launch.items:,}; {_allowed(most, 'launched')}")
        total -= launch.items
        left = [n - launch.items * (launch.group in (None, g)) for g, n in enumerate(left)]
    events: list[tuple[str, Launch | Withdraw]] = [*launches.items(), *withdrawals.items()]
    for name, event in sorted(events, key=lambda entry: _order(entry[1])):
        if isinstance(event, Launch):
            total += event.items
            left = [n + event.items * (event.group == g) for g, n in enumerate(left)]
            continue
        most = _most(event, left, total - least)
        if event.items > most:
            raise ValueError(
                f"{name}.items is {event.items:,}; {_allowed(most, 'withdrawn')} at this step"
            )
        total -= event.items
        left = [n - event.items * (event.group in (None, g)) for g, n in enumerate(left)]


def _most(change: Launch | Withdraw, left: Sequence[int], total: int) -> int:
    return total if change.group is None else min(left[change.group], total)


def _allowed(most: int, done: str) -> str:
    if most <= 0:
        return f"no item can be {done}"
    return f"at most {_counted(most)} can be {done}"


def _order(change: Launch | Withdraw) -> tuple[int, bool]:
    return change.at, isinstance(change, Withdraw)


class Stock:
    """The items that can be shown at every step, and the quality of those that were launched.

    Each change draws its items from a stream of its own, so that another change does not exchange
    them.

    Parameters
    ----------
    changes : sequence of Change
    groups : int64 (L, K)
        Category of each item, in each of L layouts.
    generator : callable
        ``(layout, part)`` returns a generator.

    Attributes
    ----------
    quality : float64 (L, K) or None
        Factors of the click probabilities; None if all are 1.
    cohorts : dict of int to list of int64
        Items of each launch, by its place among the changes: those of each layout, ascending.
    """

    def __init__(
        self,
        changes: Sequence[Change],
        groups: IntArray,
        generator: Callable[[int, int], np.random.Generator],
    ) -> None:
        events: dict[int, Launch | Withdraw] = {}
        events |= {i: c for i, c in enumerate(changes) if isinstance(c, Launch | Withdraw)}
        launches = sorted(
            (i for i, c in events.items() if isinstance(c, Launch)),
            key=lambda i: events[i].group is None,
        )
        old = np.ones(groups.shape, np.bool_)
        self.quality: FloatArray | None = None
        new: dict[int, list[IntArray]] = {}
        for i in launches:
            launch = events[i]
            assert isinstance(launch, Launch)
            new[i] = self._drawn(i, launch, old, groups, generator)
            self._mark(old, new[i], False)
            if launch.quality != 1:
                self.quality = np.ones(groups.shape) if self.quality is None else self.quality
                self._mark(self.quality, new[i], launch.quality)
        self._starts, self._versions = [0], [old]
        for i in sorted(events, key=lambda i: _order(events[i])):
            now = self._versions[-1].copy()
            if i in new:
                self._mark(now, new[i], True)
            else:
                self._mark(now, self._drawn(i, events[i], now, groups, generator), False)
            if events[i].at == self._starts[-1]:
                self._versions[-1] = now
            else:
                self._starts.append(events[i].at)
                self._versions.append(now)
        self.cohorts = new

    @staticmethod
    def _mark(array: Any, items: list[IntArray], value: Any) -> None:
        for layout, chosen in enumerate(items):
            array[layout, chosen] = value

    @staticmethod
    def _drawn(
        i: int,
        change: Launch | Withdraw,
        among: BoolArray,
        groups: IntArray,
        generator: Callable[[int, int], np.random.Generator],
    ) -> list[IntArray]:
        """Draw the items of a change among those that are true, for each layout."""
        found = []
        for layout, candidates in enumerate(among):
            fits = (
                candidates
                if change.group is None
                else candidates & (groups[layout] == change.group)
            )
            order = generator(layout, DRAWS + i).permutation(np.flatnonzero(fits))
            found.append(np.sort(order[: change.items]))
        return found

    @property
    def constant(self) -> bool:
        """Whether every item is available throughout."""
        return len(self._starts) == 1

    def at(self, step: int) -> BoolArray:
        """Return the items that can be shown at a step, bool (L, K): the same array while nothing
        changes.
        """
        return self._versions[bisect_right(self._starts, step) - 1]

    def complete(self, step: int) -> bool:
        """Return whether every item can be shown at a step."""
        return self.constant or bool(self.at(step).all())

    def interval(self, step: int) -> tuple[int, int]:
        """Return the first step with the items of this one, and the first after it with others."""
        i = bisect_right(self._starts, step)
        return self._starts[i - 1], self._starts[i] if i < len(self._starts) else NEVER
