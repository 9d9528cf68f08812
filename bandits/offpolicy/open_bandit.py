"""The Open Bandit sample: logs of a real fashion shop, shipped with the package (CC BY 4.0)."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from itertools import product

from bandits.base.errors import UserError
from bandits.base.formatting import short

from .log import DecisionLog
from .tables import from_frame

PREFIX = "open_bandit/"
POLICIES, CAMPAIGNS = ("bts", "random"), ("all", "men", "women")
NAMES = tuple(f"{PREFIX}{policy}/{campaign}" for policy, campaign in product(POLICIES, CAMPAIGNS))
ATTRIBUTION = "Open Bandit Dataset, ZOZO, Inc. (Saito, Aihara, Matsutani, Narita, 2021), CC BY 4.0; a sample."


def load(name: str) -> DecisionLog:
    """Load one of the six logs, ``open_bandit/POLICY/CAMPAIGN``, 10,000 rows.

    Policies ``bts`` (Bernoulli Thompson sampling) and ``random``; campaigns ``all`` (K = 80), ``men`` (K = 34) and
    ``women`` (K = 46); positions 1 to 3; the reward is a click. Features are indicators of the user features.

    Raises
    ------
    UserError
        There is no log of that name.

    References
    ----------
    Saito, Aihara, Matsutani, Narita (2021), Open Bandit Dataset and Pipeline.
    """
    if name not in NAMES:
        raise UserError(f"'{short(name)}' is no shipped log; known are {', '.join(NAMES)}")
    import pandas as pd

    policy, campaign = name.removeprefix(PREFIX).split("/")
    folder = files("bandits.simulators.datasets")
    frame = pd.read_parquet(str(folder / f"open_bandit_{policy}_{campaign}.parquet"))
    items = pd.read_parquet(str(folder / f"open_bandit_{policy}_{campaign}_items.parquet"), columns=["item_id"])
    features = [column for column in frame.columns if column.startswith("user_feature")]
    mapping = {
        "action": "item_id", "reward": "click", "propensity": "propensity_score", "position": "position",
        "time": "timestamp", "features": "|".join(features),
    }  # fmt: skip
    log = from_frame(frame[[*mapping.values()][:5] + features], mapping)
    names = tuple(map(str, sorted(items["item_id"])))  # also items that the sample never shows
    return replace(log, actions=frame["item_id"].to_numpy("int64"), names=names, propensities=log.propensities)
