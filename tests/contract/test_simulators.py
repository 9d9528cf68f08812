"""The contract of every registered simulator, and of those that the contract of agents adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bandits.base.randomness import Streams
from bandits.experiments.contract import simulators
from bandits.experiments.contract.environments import ENVIRONMENTS, ROWS
from bandits.simulators import REGISTRY
from bandits.simulators.classification import Classification
from bandits.simulators.wheel import Wheel


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("check", simulators.CHECKS, ids=lambda check: check.__name__)
def test_a_simulator_fulfils_the_contract(check: Callable[[str], None], environment: str) -> None:
    check(environment)


@pytest.mark.parametrize("params", [Wheel.Params(), Classification.Params(data="wine", encoding="context")])
def test_arm_features_are_not_declared_where_all_arms_share_one_vector(params: Any) -> None:
    cls = REGISTRY[params.kind]
    assert "arm_features" not in cls.describe(params).capabilities
    simulators.expect_arm_features(cls(params, Streams(7, ROWS)))
