"""The registry of agents: one line each, in the order in which they are offered."""

from __future__ import annotations

from ..params import registry
from .base import Agent, AgentParams

REGISTRY: dict[str, type[Agent]] = registry(
    __name__,
    "linucb.LinUCB",
    "lints.LinTS",
    "epsilon_greedy.EpsilonGreedy",
    "logistic_ucb.LogisticUCB",
    "logistic_ts.LogisticTS",
    "sgd_ts.SGDTS",
    "neural_greedy.NeuralGreedy",
    "neural_ucb.NeuralUCB",
    "neural_ts.NeuralTS",
    "neural_linucb.NeuralLinUCB",
    "neural_linear_ts.NeuralLinearTS",
    "neural_click_ts.NeuralClickTS",
    "ensemble.Ensemble",
    "mc_dropout.MCDropout",
    "static_mlp.StaticMLP",
    "ucb1.UCB1",
    "beta_ts.BetaTS",
    "popularity.Popularity",
    "random.Random",
    "oracle.Oracle",
)

__all__ = ["REGISTRY", "Agent", "AgentParams"]
