"""Agents that plan for a visit: updates by hand, targets, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.agents.planning.dqn import DQN
from bandits.agents.planning.q_learning import QLearning
from bandits.base.errors import UserError
from bandits.experiments.experiment import read
from bandits.experiments.lockstep import make_lane

SMALL = {"hidden": (8,), "buffer": 200, "batch": 16, "learning_starts": 20, "decay": 50}


def experiment(agent: dict[str, Any], *, steps: int = 300, **options: Any) -> Any:
    simulator = {"kind": "sessions", "n_products": 20, "observed": "mood", **options}
    return read({"simulator": simulator, "agents": [agent], "steps": steps, "replications": 3})


def test_q_learning_makes_the_updates_of_its_equation() -> None:
    """The table equals one that is updated by the formula, transition by transition."""
    lane = make_lane(experiment({"kind": "q_learning", "epsilon": 0.5, "discount": 0.9}), 0)
    agent = lane.agent
    assert isinstance(agent, QLearning)
    q, count = np.zeros_like(agent.q), np.zeros_like(agent.count)
    steps: list[tuple[Any, ...]] = []
    lane.watch = lambda round: steps.append((round.context.copy(),))
    trace = lane.advance(200)
    assert trace.ended is not None
    for t in range(200):
        for r in range(3):
            # the step before, whose next state is this one
            if t and not trace.ended[t - 1, r]:
                s, a = steps[t - 1][0][r], trace.items[t - 1, r, 0] % 10
                count[r, s, a] += 1
                target = trace.rewards[t - 1, r] + 0.9 * q[r, steps[t][0][r]].max()
                q[r, s, a] += count[r, s, a] ** -0.7 * (target - q[r, s, a])
            if trace.ended[t, r]:
                s, a = steps[t][0][r], trace.items[t, r, 0] % 10
                count[r, s, a] += 1
                q[r, s, a] += count[r, s, a] ** -0.7 * (trace.rewards[t, r] - q[r, s, a])
    np.testing.assert_allclose(agent.q, q, atol=1e-12)


@pytest.mark.parametrize("n_step", [1, 3])
def test_the_targets_of_dqn_are_those_of_its_equation(n_step: int) -> None:
    agent = {"kind": "dqn", **SMALL, "n_step": n_step, "discount": 0.8, "double": False}
    lane = make_lane(experiment(agent), 0)
    trace = lane.advance(250)
    dqn = lane.agent
    assert isinstance(dqn, DQN)
    assert trace.ended is not None
    numbers = dqn.sample()
    assert numbers.min() >= 50
    assert numbers.max() < 250 - n_step + 1
    inputs, target = dqn.transitions(numbers)
    for r, t in ((0, 0), (1, 5), (2, 9)):
        step, expected, weight = int(numbers[r, t]), 0.0, 1.0
        for i in range(n_step):
            expected += weight * trace.rewards[step + i, r]
            weight *= 0.8 * (not trace.ended[step + i, r])
        if weight and step + n_step < 250:
            after = dqn.replay.x[(step + n_step) % 200, r].reshape(1, 10, -1)
            values = dqn.older.select([r]).forward(dqn.tensor(after)).out
            expected += weight * float(values.max())
        assert float(target[r, t]) == pytest.approx(expected, abs=1e-5)
    assert inputs.shape == (3, 16, dqn.spec.n_features)


def test_without_discount_the_target_is_the_reward_itself() -> None:
    lane = make_lane(experiment({"kind": "dqn", **SMALL, "discount": 0}), 0)
    trace = lane.advance(200)
    dqn = lane.agent
    assert isinstance(dqn, DQN)
    numbers = dqn.sample()
    target = dqn.transitions(numbers)[1].numpy()
    rewards = np.take_along_axis(trace.rewards.T, numbers, axis=1)
    np.testing.assert_allclose(target, rewards, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("agent", "simulator", "field"),
    [
        ({"kind": "dqn", "discount": 1}, {"limit": None}, "discount"),
        ({"kind": "dqn", "buffer": 30, "batch": 64}, {}, "buffer"),
        ({"kind": "dqn", "learning_starts": 300}, {}, "learning_starts"),
        ({"kind": "dqn", "n_step": 6}, {}, "n_step"),
        ({"kind": "dqn", **SMALL}, {"kind": "petshop", "observed": None}, "visits of many steps"),
        ({"kind": "q_learning"}, {"observed": "history"}, "states that agents observe"),
    ],
)
def test_what_is_impossible_is_refused(
    agent: dict[str, Any], simulator: dict[str, Any], field: str
) -> None:
    if simulator.get("kind"):
        with pytest.raises(UserError, match=field):
            read({"simulator": {"kind": simulator["kind"]}, "agents": [agent]})
        return
    with pytest.raises(UserError, match=field) as refused:
        experiment(agent, **simulator)
    assert "\n" not in str(refused.value)
