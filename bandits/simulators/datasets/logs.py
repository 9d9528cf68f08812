"""Logs of decisions that are shipped with the package and were chosen uniformly at random."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray, IntArray

PREFIX = "open_bandit/random/"
COLUMNS = ("user_feature_0", "user_feature_1", "user_feature_2", "user_feature_3", "position")
SIZES = {"all": (10_000, 27, 80), "men": (10_000, 28, 34), "women": (10_000, 26, 46)}
"""Rows, features and items of each campaign, known without loading."""
ATTRIBUTION = "Open Bandit Dataset, ZOZO, Inc. (Saito, Aihara, Matsutani, Narita, 2021), CC BY 4.0; a sample"


class Events(NamedTuple):
    """The events of a log in their order.

    Attributes
    ----------
    items : int64 (n,)
        What was shown, from 0, chosen uniformly at random.
    rewards : float64 (n,)
    columns : int64 (n, N)
        Columns of the indicators that are 1.
    """

    items: IntArray
    rewards: FloatArray
    columns: IntArray


def sizes(name: str) -> tuple[int, int, int]:
    """Return the rows, features and items of a log, without loading it."""
    return SIZES[name.removeprefix(PREFIX)]


@lru_cache(maxsize=3)
def load(name: str) -> Events:
    """Load a log, ``open_bandit/random/CAMPAIGN``, in the order of time.

    Features are indicators of the four user features and of the position on the page, in alphabetical order.

    References
    ----------
    Saito, Aihara, Matsutani, Narita (2021), Open Bandit Dataset and Pipeline.
    """
    import pandas as pd

    campaign = name.removeprefix(PREFIX)
    path = files("bandits.simulators.datasets") / f"open_bandit_random_{campaign}.parquet"
    frame = pd.read_parquet(str(path), columns=["item_id", "click", *COLUMNS])
    columns, offset = np.empty((len(frame), len(COLUMNS)), np.int64), 0
    for i, column in enumerate(COLUMNS):
        codes, values = pd.factorize(frame[column], sort=True)
        columns[:, i] = offset + codes
        offset += len(values)
    return Events(frame["item_id"].to_numpy(np.int64), frame["click"].to_numpy(np.float64), columns)
