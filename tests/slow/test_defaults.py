"""Agents with their default settings on the pet shop: context pays, or the agent's help states why
it does not.
"""

from __future__ import annotations

from functools import cache

import pytest

from bandits import Experiment, Result, read, run
from bandits.agents import REGISTRY
from bandits.results.comparison.paired_tests import compare
from tests.support import thinned

# their visits are those of another simulator
PLANNING = {"q_learning", "dqn"}
CONTEXT_FREE = [
    kind
    for kind, cls in REGISTRY.items()
    if cls.representation(cls.Params()) is None and cls.learns and kind not in PLANNING
]
# fitted by scikit-learn again and again: minutes at this size
TREES = {"tree_ts", "oracle_based"}
CONTEXTUAL = [
    kind
    for kind, cls in REGISTRY.items()
    if cls.representation(cls.Params()) is not None and kind not in TREES | PLANNING
]


def experiment(*kinds: str) -> Experiment:
    """Return an experiment of agents with today's defaults on the pet shop."""
    return read({"agents": [{"kind": kind} for kind in kinds], "steps": 5000, "replications": 8})


@cache
def baselines() -> Result:
    """Run the agents without context, once."""
    return run(experiment(*CONTEXT_FREE, "random"))


def test_the_registry_has_both_groups() -> None:
    assert set(CONTEXT_FREE) == {
        *("ucb1", "beta_ts", "popularity", "ab_test", "softmax", "epsilon_greedy_averages"),
        *("kl_ucb", "gaussian_ts", "gradient_bandit", "exp3"),
    }
    assert set(CONTEXTUAL) == set(REGISTRY) - {
        *CONTEXT_FREE,
        *TREES,
        *PLANNING,
        "random",
        "oracle",
        "default",
    }


@pytest.mark.parametrize(
    "kind", thinned([(kind,) for kind in CONTEXTUAL], lambda _: False, lambda n: n % 4 == 0)
)
def test_defaults_beat_every_agent_without_context(kind: str) -> None:
    (own,) = run(experiment(kind)).histories.values()
    against = [compare(own, other) for other in baselines().histories.values()]
    assert all(found.rows == 8 for found in against)
    clear = all(found.difference.low > 0 for found in against)
    assert clear, f"{kind}: {[round(found.difference.low) for found in against]} clicks"
