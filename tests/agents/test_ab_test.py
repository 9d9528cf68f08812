"""A/B test: what it counts, when it ends, and whom its winners are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.experiments.experiment import read
from bandits.experiments.lockstep import make_lane

M, STEPS = 300, 420


@pytest.mark.parametrize("winner", ["all", "segment"])
@pytest.mark.parametrize("guards", [[], [{"kind": "delay", "steps": 20}]])
def test_it_shows_the_winner_of_the_first_decisions(
    winner: str, guards: list[dict[str, Any]]
) -> None:
    """The winners are counted again from what was shown and clicked.

    Feedback that is late prolongs the test.
    """
    agent = {"kind": "ab_test", "test": M, "winner": winner, "guards": guards}
    shop = {"kind": "petshop", "n_products": 5}
    lane = make_lane(
        read({"simulator": shop, "agents": [agent], "steps": STEPS, "replications": 3}),
        0,
        (0, 1, 2),
    )
    segments = np.array([lane.simulator.round_at(t).segments for t in range(STEPS)])  # (T, R)
    trace = lane.advance(STEPS)
    shown, rewards, known = trace.items[..., 0], trace.rewards, M + 20  # (T, R)
    for row in range(3):
        own = segments[:, row] if winner == "segment" else np.zeros(STEPS, int)
        for group in range(own.max() + 1):
            counted = own[:M] == group
            rates = [rewards[:M, row][counted & (shown[:M, row] == k)].mean() for k in range(5)]
            assert set(shown[known:, row][own[known:] == group]) == {int(np.argmax(rates))}
        tested = np.bincount(shown[: known if guards else M, row], minlength=5)
        # 60 are expected of each
        assert tested.min() > 30


def test_propensities_are_uniform_and_then_those_of_the_winners() -> None:
    agent = {"kind": "ab_test", "test": 50}
    lane = make_lane(
        read({"simulator": {"kind": "petshop"}, "agents": [agent], "steps": 60}), 0, (0,)
    )
    lane.advance(49)
    round = lane.simulator.round_at(49)
    np.testing.assert_allclose(lane.agent.probabilities(round), 1 / 50)
    lane.advance(1)
    rates = lane.agent.rates(round)[0]  # type: ignore[attr-defined]
    winners = rates == rates.max()
    np.testing.assert_allclose(lane.agent.probabilities(round)[0], winners / winners.sum())


def test_only_decisions_with_feedback_count() -> None:
    """In a replay of a log, where a choice counts if it equals the logged one."""
    agent = {"kind": "ab_test", "test": 40}
    setup = {
        "simulator": {"kind": "logged", "parts": 2},
        "agents": [agent],
        "steps": 2000,
        "replications": 2,
    }
    lane = make_lane(read(setup), 0)
    trace = lane.advance(600)
    assert trace.counted is not None
    counted = trace.counted.sum(axis=0)
    assert 0 < counted.max() < 40
    assert lane.agent.tested.tolist() == counted.tolist()  # type: ignore[attr-defined]
    assert lane.agent.testing.all()  # type: ignore[attr-defined]
