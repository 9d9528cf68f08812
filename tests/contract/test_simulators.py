"""The contract of every registered simulator, and of those that the contract of agents adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bandits.base.randomness import Streams
from bandits.contract import simulators
from bandits.contract.environments import ENVIRONMENTS, ROWS, make_simulator
from bandits.simulators import REGISTRY
from bandits.simulators.classification import Classification
from bandits.simulators.wheel import Wheel


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("check", simulators.CHECKS, ids=lambda check: check.__name__)
def test_a_simulator_fulfils_the_contract(check: Callable[[str], None], environment: str) -> None:
    check(environment)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1]], ids=["replications", "one"])
def test_arrays_of_a_round_are_writeable_and_contiguous(
    environment: str, rows: tuple[int, ...]
) -> None:
    """A kernel is compiled anew for arrays that are read-only, as views of one row are, or not
    contiguous.
    """
    simulator = make_simulator(environment, rows)
    for step in (0, 3):
        round = simulator.round_at(step)
        values, columns, _ = round.contexts
        at = round.users, round.items, round.available, round.context, round.segments
        for array in (values, columns, *at, round.features):
            assert isinstance(array, np.ndarray)
            assert array.flags.writeable
            assert array.flags.c_contiguous


@pytest.mark.parametrize(
    "params", [Wheel.Params(), Classification.Params(data="wine", encoding="context")]
)
def test_arm_features_are_not_declared_where_all_arms_share_one_vector(params: Any) -> None:
    cls = REGISTRY[params.kind]
    assert "arm_features" not in cls.describe(params).capabilities
    simulators.expect_arm_features(cls(params, Streams(7, ROWS)))
