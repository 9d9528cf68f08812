"""Count clicks for a popularity list, rightly and with a line of code that circulates."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.formatting import count
from bandits.base.types import IntArray

from .base import Table, Values, WorkedExample

ITEMS = ("A", "B", "C")
CLICKED = (2, 0, 2, 1, 2, 2, 0, 2, 1, 0)  # places of the items that were clicked, one a round


class PopularityLog(WorkedExample):
    """Ten clicks: a count per item, and a count that is set to zero unless its item was clicked just now."""

    title = "Ten clicks"
    known = ("rounds", "items")

    @classmethod
    def counts(cls, *, reset: bool) -> IntArray:
        """Return the counts after each round, int64 (rounds, items); with ``reset`` as in the circulating line."""
        clicks, after = dict.fromkeys(range(len(ITEMS)), 0), []
        for arm in CLICKED:
            for a in clicks:
                if reset:
                    clicks[a] = clicks[a] + 1 if arm == a else 0
                else:
                    clicks[a] = clicks[a] + (1 if arm == a else 0)
            after.append(list(clicks.values()))
        return np.array(after)

    @classmethod
    def values(cls, params: Any) -> Values:  # noqa: ARG003 - it has none
        """Return what is remembered after the last round, and in how many rounds the two lists lead differently."""
        right, wrong = cls.counts(reset=False), cls.counts(reset=True)
        return {
            "rounds": float(len(CLICKED)), "items": float(len(ITEMS)),
            "remembered": float(wrong[-1].sum()), "clicks": float(right[-1].sum()), "most": float(right[-1].max()),
            "different": float((right.argmax(axis=1) != wrong.argmax(axis=1)).sum()),
        }  # fmt: skip

    @classmethod
    def tables(cls, params: Any) -> list[Table]:  # noqa: ARG003
        """Show both counts round by round."""
        right, wrong = cls.counts(reset=False), cls.counts(reset=True)
        columns = ("round", "clicked", *(f"{i}, right" for i in ITEMS), *(f"{i}, reset" for i in ITEMS))
        rows = tuple(
            (count(n + 1), ITEMS[arm], *map(count, right[n]), *map(count, wrong[n])) for n, arm in enumerate(CLICKED)
        )
        return [Table("Clicks counted, round by round", columns, rows)]
