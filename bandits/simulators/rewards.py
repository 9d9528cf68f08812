"""A table with one reward column per arm: full information about every decision."""

from __future__ import annotations

from typing import Any, Literal

from bandits.base.formatting import number, short

from .classification import TableSimulator, data_param, load
from .datasets import uploads

# standard deviation of rewards from which a bonus in the default unit is small beside them
LARGE = 3.0


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
    oracle_knows = ", which knows what every arm would earn in every row"

    @classmethod
    def notes(cls, params: Any) -> list[str]:
        spread = float(load(params.data).rewards.std())
        note = (
            f"Rewards have a standard deviation of {number(spread)}. Exploration parameters are in "
            "the unit of the rewards: values that suit rewards of 0 and 1 hardly explore here."
        )
        return [*super().notes(params), *[note] * (spread > LARGE)]

    @classmethod
    def yardstick(cls, params: Any) -> str:
        if not uploads.find(params.data) or params.changes:
            return ""
        data = load(params.data)
        means = data.rewards.mean(axis=0)
        best = int(means.argmax())
        return f"always choosing {short(data.classes[best])} earns {number(float(means[best]))}"
