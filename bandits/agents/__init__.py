"""The registry of agents: one line each, in the order in which they are offered."""

from __future__ import annotations

from bandits.base.params import registry

from .base import Agent
from .params import AgentParams

REGISTRY: dict[str, type[Agent]] = registry(
    __name__,
    "linear.linucb.LinUCB",
    "linear.lints.LinTS",
    "linear.epsilon_greedy.EpsilonGreedy",
    "linear.squarecb.SquareCB",
    "linear.bag.Bag",
    "logistic.logistic_ucb.LogisticUCB",
    "logistic.logistic_ts.LogisticTS",
    "logistic.sgd_ts.SGDTS",
    "logistic.logistic_squarecb.LogisticSquareCB",
    "trees.tree_ts.TreeTS",
    "trees.oracle_based.OracleBased",
    "neural.neural_greedy.NeuralGreedy",
    "neural.neural_ucb.NeuralUCB",
    "neural.neural_ts.NeuralTS",
    "neural.neural_linucb.NeuralLinUCB",
    "neural.neural_linear_ts.NeuralLinearTS",
    "neural.neural_click_ts.NeuralClickTS",
    "neural.ensemble.Ensemble",
    "neural.mc_dropout.MCDropout",
    "neural.static_mlp.StaticMLP",
    "planning.q_learning.QLearning",
    "planning.dqn.DQN",
    "context_free.ucb1.UCB1",
    "context_free.beta_ts.BetaTS",
    "context_free.kl_ucb.KLUCB",
    "context_free.gaussian_ts.GaussianTS",
    "context_free.epsilon_greedy.EpsilonGreedyAverages",
    "context_free.softmax.Softmax",
    "context_free.gradient_bandit.GradientBandit",
    "context_free.exp3.EXP3",
    "context_free.popularity.Popularity",
    "context_free.baselines.Default",
    "context_free.ab_test.ABTest",
    "context_free.baselines.Random",
    "context_free.baselines.Oracle",
)


def agent_class(params: AgentParams) -> type[Agent]:
    """Return the registered class that these parameters belong to."""
    return REGISTRY[params.kind]


__all__ = ["REGISTRY", "Agent", "AgentParams", "agent_class"]
