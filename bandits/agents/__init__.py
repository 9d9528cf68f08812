"""The registry of agents: one line each."""

from __future__ import annotations

from .base import Agent, AgentParams
from .beta_ts import BetaTS
from .epsilon_greedy import EpsilonGreedy
from .lints import LinTS
from .linucb import LinUCB
from .oracle import Oracle
from .popularity import Popularity
from .random import Random
from .static_mlp import StaticMLP
from .ucb1 import UCB1

_CLASSES: tuple[type[Agent], ...] = (
    LinUCB,
    LinTS,
    EpsilonGreedy,
    StaticMLP,
    UCB1,
    BetaTS,
    Popularity,
    Random,
    Oracle,
)

REGISTRY: dict[str, type[Agent]] = {str(c.Params.model_fields["kind"].default): c for c in _CLASSES}

__all__ = ["REGISTRY", "Agent", "AgentParams"]
