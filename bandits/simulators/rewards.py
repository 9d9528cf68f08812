"""A table with one reward column per arm: full information about every decision."""

from __future__ import annotations

from typing import Literal

from .classification import TableSimulator, data_param


class Rewards(TableSimulator):
    """One example per step as context; every arm has a column with what it would have earned there.

    The rewards of all arms are known, so that comparisons are paired and regret is exact on real
    data: nothing is drawn, and nothing is missing."""

    class Params(TableSimulator.Params):
        of_classes = False
        kind: Literal["rewards"] = "rewards"
        data: str = data_param(
            "wine",
            "CSV files with one column of rewards per arm, uploaded on the page Data. The data "
            "sets that are shipped have reward 1 for the right class and 0 otherwise.",
        )

    title = "Real data (rewards)"
    preset = "rewards"
    reward_noun = "points"
    rate_title = "Reward per step"
    item_noun = "arm"
