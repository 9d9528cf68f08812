"""How regret grows: with log T on a fixed instance, with the square root of T at the gap that is
hardest for T, and with T without exploration.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import read
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.lockstep import make_lane

# doublings of the steps
STEPS = np.array([1_000, 2_000, 4_000, 8_000, 16_000])
# the same of an agent that is slower to compute and needs fewer
FEW = STEPS // 8
ROWS = 60
# of a power that has no error, because each replication loses the same at every step
ROUNDING = 1e-6


def regrets(
    agent: dict[str, Any], values: list[float], steps: IntArray, rows: int = ROWS
) -> FloatArray:
    """Return the cumulative regret of each replication at each of the steps, (T, R)."""
    simulator = {"kind": "levers", "means": "fixed", "values": values}
    e = {"simulator": simulator, "agents": [agent], "steps": int(steps[-1]), "replications": rows}
    lane = make_lane(read(e), 0)
    lost = []
    for upto in steps:
        trace = lane.advance(int(upto) - lane.step)
        lost.append((trace.best_value - trace.value).sum(axis=0))
    return np.cumsum(lost, axis=0)


def exponent(amounts: FloatArray, steps: IntArray) -> tuple[float, float]:
    """Fit the power of the steps with which the mean of ``amounts (T, R)`` grows, and its standard
    error by the bootstrap.
    """

    def fit(mean: FloatArray) -> float:
        return float(np.polyfit(np.log(steps), np.log(mean), 1)[0])

    generator = np.random.default_rng(6)
    draws = generator.integers(0, amounts.shape[1], (200, amounts.shape[1]))
    return fit(amounts.mean(axis=1)), float(
        np.std([fit(amounts[:, d].mean(axis=1)) for d in draws])
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "power", "steps"),
    [
        ({"kind": "ucb1", "alpha": 1.0}, 0, STEPS),
        ({"kind": "kl_ucb"}, 0, STEPS),
        ({"kind": "beta_ts"}, 0, STEPS),
        ({"kind": "epsilon_greedy_averages", "epsilon": 0.0}, 1, FEW),
    ],
)
def test_regret_on_a_fixed_instance(agent: dict[str, Any], power: int, steps: IntArray) -> None:
    """What is lost while the steps double is constant if regret grows with log T, and doubles if it
    grows with T.
    """
    lost = np.diff(regrets(agent, [0.7, 0.4], steps), axis=0)
    found, error = exponent(lost, steps[1:])
    assert error < 0.15
    assert abs(found - power) < 4 * error + ROUNDING


@pytest.mark.slow
def test_regret_at_the_hardest_gap_grows_with_the_square_root() -> None:
    """The gap shrinks with the square root of T."""
    at = STEPS[::2]
    final = [
        regrets({"kind": "kl_ucb"}, [0.5 + T**-0.5, 0.5 - T**-0.5], np.array([T]), 2 * ROWS)[0]
        for T in at
    ]
    found, error = exponent(np.array(final), at)
    assert error < 0.05
    assert abs(found - 0.5) < 4 * error
