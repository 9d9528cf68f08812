"""The Open Bandit sample: logs of a real fashion shop (CC BY 4.0), and the policy that chose in it,
a target.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import product

import numpy as np
from scipy.special import betainc, betaln, expit

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.types import FloatArray

from .log import DecisionLog
from .targets import Matrix
from .user_table import from_frame

PREFIX = "open_bandit/"
POLICIES, CAMPAIGNS = ("bts", "random"), ("all", "men", "women")
NAMES = tuple(f"{PREFIX}{policy}/{campaign}" for policy, campaign in product(POLICIES, CAMPAIGNS))
ATTRIBUTION = (
    "Open Bandit Dataset, ZOZO, Inc. (Saito, Aihara, Matsutani, Narita, 2021), CC BY 4.0; a sample."
)


def load(name: str) -> DecisionLog:
    """Load one of the six logs, ``open_bandit/POLICY/CAMPAIGN``, 10,000 rows.

    Policies ``bts`` (Bernoulli Thompson sampling) and ``random``; campaigns ``all`` (K = 80),
    ``men`` (K = 34) and ``women`` (K = 46); positions 1 to 3; the reward is a click. Features are
    indicators of the user features.

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
    items = pd.read_parquet(
        str(folder / f"open_bandit_{policy}_{campaign}_items.parquet"), columns=["item_id"]
    )
    features = [column for column in frame.columns if column.startswith("user_feature")]
    mapping = {
        "action": "item_id",
        "reward": "click",
        "propensity": "propensity_score",
        "position": "position",
        "time": "timestamp",
        "features": "|".join(features),
    }
    log = from_frame(frame[[*mapping.values()][:5] + features], mapping)
    # also items that the sample never shows
    names = tuple(map(str, sorted(items["item_id"])))
    return replace(
        log,
        actions=frame["item_id"].to_numpy("int64"),
        names=names,
        propensities=log.propensities,
        reward_range=(0.0, 1.0),
    )


# items that the shop shows at once
SLOTS = 3
NODES = 4000


class Production(Matrix):
    """Show the items with the three largest draws from the Beta distributions that the shop began
    with.

    Parameters
    ----------
    campaign : {"all", "men", "women"}

    Raises
    ------
    UserError
        There is no such campaign.

    References
    ----------
    Saito, Aihara, Matsutani, Narita (2021), Open Bandit Dataset and Pipeline; parameters from the
    package obp (Apache-2.0)."""

    def __init__(self, campaign: str) -> None:
        if campaign not in CAMPAIGNS:
            raise UserError(
                f"target bts:{short(campaign)}: the campaign must be one of {', '.join(CAMPAIGNS)}"
            )
        self.campaign = campaign
        super().__init__(_probabilities(campaign), f"bts:{campaign}")

    def check(self, log: DecisionLog) -> None:
        if log.n_actions != len(self.matrix) or log.positions is None:
            raise UserError(
                f"target {self.name}: is for logs of the Open Bandit campaign {self.campaign}, "
                f"with {len(self.matrix)} items in three positions"
            )
        super().check(log)


@cache
def _probabilities(campaign: str) -> FloatArray:
    text = (files("bandits.simulators.datasets") / "open_bandit_prior.json").read_text(
        encoding="utf-8"
    )
    prior = json.loads(text)[campaign]
    return slot_probabilities(np.array(prior["alpha"]), np.array(prior["beta"]), SLOTS)


def slot_probabilities(a: FloatArray, b: FloatArray, slots: int) -> FloatArray:
    """Compute the probability that each of K independent Beta variables is the largest, the second
    largest, and so on.

    P(k is the s-th largest) = integral of f_k(x) P(s - 1 of the others exceed x) dx, by the
    trapezoidal rule over the log-odds of x; the number of others that exceed x is a sum of
    independent indicators.

    Parameters
    ----------
    a, b : float64 (K,)
        Positive.
    slots : int
        S.

    Returns
    -------
    float64 (K, S)
        Each column sums to 1.
    """
    mode, scale = np.log(a / b), np.sqrt(1 / a + 1 / b)
    y = np.linspace((mode - 12 * scale).min(), (mode + 12 * scale).max(), NODES)
    a, b, x = a[:, None], b[:, None], expit(y)
    # of the log-odds
    density = np.exp(a * np.log(x) + b * np.log(expit(-y)) - betaln(a, b))
    exceeds = betainc(b, a, expit(-y))  # (K, nodes)
    K = len(exceeds)
    # P(m others exceed x), m = 0 to S - 1, for each variable
    counts = np.zeros((slots, K, len(y)))
    counts[0] = 1
    for j in range(K):
        others = np.arange(K) != j
        p, before = exceeds[j], counts[:, others]
        counts[:, others] = before * (1 - p)
        counts[1:, others] += before[:-1] * p
    found: FloatArray = np.trapezoid(counts * density, y, axis=2).T
    found /= found.sum(axis=0)
    return found
