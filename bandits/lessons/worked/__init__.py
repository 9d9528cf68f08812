"""Worked examples by name: one small file each."""

from __future__ import annotations

from .articles import Articles
from .base import Shop
from .base import Table as Table
from .base import Values as Values
from .base import WorkedExample as WorkedExample
from .gradient_bonus import GradientBonus
from .logbook import Logbook
from .network_size import NetworkSize
from .peeking import Peeking
from .popularity_log import PopularityLog
from .posteriors import Posteriors
from .rare_feature import RareFeature
from .rollout import Rollout
from .same_score import SameScore
from .stale_head import StaleHead
from .trial import Trial

REGISTRY: dict[str, type[WorkedExample]] = {
    "articles": Articles,
    "gradient_bonus": GradientBonus,
    "logbook": Logbook,
    "network_size": NetworkSize,
    "peeking": Peeking,
    "popularity_log": PopularityLog,
    "posteriors": Posteriors,
    "rare_feature": RareFeature,
    "rollout": Rollout,
    "same_score": SameScore,
    "shop": Shop,
    "stale_head": StaleHead,
    "trial": Trial,
}
