"""Worked examples by name: one small file each."""

from __future__ import annotations

from .articles import Articles
from .base import Table as Table
from .base import Values as Values
from .base import WorkedExample as WorkedExample
from .logbook import Logbook
from .peeking import Peeking
from .popularity_log import PopularityLog
from .rare_feature import RareFeature
from .shop import Shop
from .trial import Trial

REGISTRY: dict[str, type[WorkedExample]] = {
    "articles": Articles,
    "logbook": Logbook,
    "peeking": Peeking,
    "popularity_log": PopularityLog,
    "rare_feature": RareFeature,
    "shop": Shop,
    "trial": Trial,
}
