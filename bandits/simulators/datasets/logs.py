"""Logs of decisions that were chosen uniformly at random: shipped with the package, or kept by
users.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.types import FloatArray, IntArray

from . import kept_logs
from .scaling import Scale, prepared

PREFIX = "open_bandit/random/"
COLUMNS = ("user_feature_0", "user_feature_1", "user_feature_2", "user_feature_3", "position")
SIZES = {"all": (10_000, 27, 80), "men": (10_000, 28, 34), "women": (10_000, 26, 46)}
"""Rows, features and items of each campaign, known without loading."""
SHIPPED = tuple(PREFIX + campaign for campaign in SIZES)
ATTRIBUTION = (
    "Open Bandit Dataset, ZOZO, Inc. (Saito, Aihara, Matsutani, Narita, 2021), CC BY 4.0; a sample"
)


class Events(NamedTuple):
    """The events of a log in their order.

    Attributes
    ----------
    items : int64 (n,)
        What was shown, from 0, chosen uniformly at random.
    rewards : float64 (n,)
    columns : int64 (n, N)
        Columns of the features that are not 0.
    values : float64 (n, N), optional
        Their values; 1 by default.
    names : tuple of str (K,)
        Of the items; empty where they have numbers only.
    feature_names : tuple of str (d,)
        Where there are ``values``.
    """

    items: IntArray
    rewards: FloatArray
    columns: IntArray
    values: FloatArray | None = None
    names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()


def sizes(name: str) -> tuple[int, int, int]:
    """Return the rows, features and items of a log, without loading it.

    Raises
    ------
    UserError
        The log is neither shipped nor kept.
    """
    if is_shipped(name):
        return SIZES[name.removeprefix(PREFIX)]
    if info := kept_logs.find(name):
        return info.events, info.features, info.items
    known = ", ".join([*SHIPPED, *(info.id for info in kept_logs.listing())])
    raise UserError(
        f"log '{short(name)}' is not kept here: upload it again {kept_logs.WHERE}; known are "
        f"{known}"
    )


def is_shipped(name: str) -> bool:
    """Return whether a log is part of the package."""
    return name in SHIPPED


def is_binary(name: str) -> bool:
    """Return whether the rewards of a log are 0 or 1, so that all agents can learn from it."""
    info = None if is_shipped(name) else kept_logs.find(name)
    return info is None or info.binary


def width(name: str) -> int:
    """Return N, the number of features of an event that may differ from 0."""
    return len(COLUMNS) if is_shipped(name) else sizes(name)[1]


@lru_cache(maxsize=3)
def load(name: str, scale: Scale = "none", *, constant: bool = False) -> Events:
    """Load a shipped log, ``open_bandit/random/CAMPAIGN``, in the order of time, or one that a user
    has kept.

    Features of the shipped ones are indicators of the four user features and of the position on the
    page, in alphabetical order; they are not scaled. A constant feature comes last.

    References
    ----------
    Saito, Aihara, Matsutani, Narita (2021), Open Bandit Dataset and Pipeline.
    """
    if not is_shipped(name):
        log = kept_logs.load(name)
        features = prepared(log.features, scale, constant=constant)
        columns = np.broadcast_to(np.arange(features.shape[1]), features.shape)
        return Events(log.items, log.rewards, columns, features, log.names, log.feature_names)
    import pandas as pd

    campaign = name.removeprefix(PREFIX)
    path = files("bandits.simulators.datasets") / f"open_bandit_random_{campaign}.parquet"
    frame = pd.read_parquet(str(path), columns=["item_id", "click", *COLUMNS])
    columns, offset = np.empty((len(frame), len(COLUMNS) + constant), np.int64), 0
    for i, column in enumerate(COLUMNS):
        codes, values = pd.factorize(frame[column], sort=True)
        columns[:, i] = offset + codes
        offset += len(values)
    columns[:, len(COLUMNS) :] = offset
    return Events(frame["item_id"].to_numpy(np.int64), frame["click"].to_numpy(np.float64), columns)
