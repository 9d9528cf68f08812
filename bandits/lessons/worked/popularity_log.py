"""Count clicks for a popularity list, rightly and with a line of code that circulates."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.formatting import count
from bandits.base.params import Params, param
from bandits.base.types import IntArray

from .base import Table, Values, WorkedExample

ITEMS = ("A", "B", "C")
# places of the items that were clicked, one a round
CLICKED = (2, 0, 2, 1, 2, 2, 0, 2, 1, 0)


class PopularityLogParams(Params):
    """How many of the ten rounds are counted."""

    rounds: int = param(
        10,
        title="Rounds",
        symbol="n",
        ge=1,
        le=10,
        basic=True,
        help="Number of clicks that are counted. Larger values show more rounds of the table.",
    )


class PopularityLog(WorkedExample):
    """Ten clicks: a count per item, and a count that is set to zero unless its item was clicked
    just now.
    """

    Params = PopularityLogParams
    title = "Ten clicks"
    known = ("rounds", "items")

    @classmethod
    def counts(cls, *, reset: bool) -> IntArray:
        """Return the counts after each round, int64 (rounds, items).

        With ``reset`` as in the circulating line.
        """
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
    def values(cls, params: Any) -> Values:
        """Return what is remembered after the last round, and in how many rounds the two lists lead
        differently.
        """
        right, wrong = (cls.counts(reset=reset)[: params.rounds] for reset in (False, True))
        differs = right.argmax(axis=1) != wrong.argmax(axis=1)
        return {
            "rounds": float(params.rounds),
            "items": float(len(ITEMS)),
            "remembered": float(wrong[-1].sum()),
            "clicks": float(right[-1].sum()),
            "most": float(right[-1].max()),
            "different": float(differs.sum()),
            "differs_now": float(differs[-1]),
        }

    @classmethod
    def tables(cls, params: Any) -> list[Table]:
        """Show both counts round by round."""
        right, wrong = (cls.counts(reset=reset)[: params.rounds] for reset in (False, True))
        columns = ("", "click", *(f"{i} right" for i in ITEMS), *(f"{i} reset" for i in ITEMS))
        rows = tuple(
            (count(n + 1), ITEMS[arm], *map(count, right[n]), *map(count, wrong[n]))
            for n, arm in enumerate(CLICKED[: params.rounds])
        )
        return [
            Table(
                "Clicks counted, round by round", columns, rows, tuple(range(2, 2 + 2 * len(ITEMS)))
            )
        ]
