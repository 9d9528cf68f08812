"""The predicted time left, on series whose cost per step is constant, grows, or is noisy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bandits.runtime.time_left import MAX_SAMPLES, AgentClock, RunClock

STEPS = 10_000
COSTS: dict[str, Callable[[float], float]] = {  # seconds until a step
    "constant": lambda t: 0.001 * t,
    "linear": lambda t: 1e-3 * t + 1e-6 * t**2,  # a replay buffer that is read as a whole
    "quadratic": lambda t: 1e-3 * t + 1e-9 * t**3,  # a triangular solve with all observations
}


def clock_at(step: int, elapsed: Callable[[float], float], chunk: int = 50) -> AgentClock:
    clock = AgentClock()
    for reached in range(chunk, step + 1, chunk):
        clock.add(reached, elapsed(reached))
    return clock


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.95])
def test_a_growing_cost_is_extrapolated(cost: str, share: float) -> None:
    elapsed, step = COSTS[cost], int(share * STEPS)
    left = clock_at(step, elapsed).seconds_left(STEPS)
    assert left == pytest.approx(elapsed(STEPS) - elapsed(step), rel=0.02)


def test_the_average_so_far_would_be_far_too_short() -> None:
    """At a third of the steps, the average cost so far would give a quarter of the time that a growing cost takes."""
    elapsed, step = COSTS["quadratic"], 3300
    left = clock_at(step, elapsed).seconds_left(STEPS)
    assert left is not None
    assert left > 4 * elapsed(step) * (STEPS - step) / step


def test_a_slow_start_is_forgotten() -> None:
    """Half a minute of compilation before the first step says nothing about later ones."""
    left = clock_at(4000, lambda t: 30.0 + 0.001 * t).seconds_left(STEPS)
    assert left == pytest.approx(6.0, rel=0.01)


def test_noise_of_the_steps_is_averaged() -> None:
    """Chunks take 30 % more or less at random: half of the predictions err by less than a third."""
    rng = np.random.default_rng(5)
    for share in (0.2, 0.5, 0.8):
        errors = []
        for _ in range(20):
            elapsed, step = np.cumsum(0.05 * rng.lognormal(sigma=0.3, size=STEPS // 50)), int(share * STEPS)
            clock = AgentClock()
            for i, seconds in enumerate(elapsed[: step // 50], 1):
                clock.add(50 * i, float(seconds))
            left = clock.seconds_left(STEPS)
            assert left is not None
            errors.append(left / (elapsed[-1] - elapsed[step // 50 - 1]) - 1)
        assert np.median(np.abs(errors)) < 1 / 3


def test_few_samples_give_no_prediction_and_many_are_thinned() -> None:
    assert clock_at(200, COSTS["constant"]).seconds_left(STEPS) is None
    assert AgentClock().seconds_left(STEPS) is None
    clock = clock_at(STEPS, COSTS["linear"], chunk=1)
    assert len(clock.steps) <= MAX_SAMPLES
    assert clock.seconds_left(STEPS) == pytest.approx(0.0, abs=1e-6)
    clock.add(10, 0.1)  # the run was repeated
    assert clock.steps == [10]


@pytest.mark.parametrize(("workers", "left"), [(1, 18.0), (2, 9.0), (3, 6.0)])
def test_agents_that_are_computed_side_by_side_share_the_time(workers: int, left: float) -> None:
    run = RunClock()
    for step in range(100, 4001, 100):
        run.record({name: (step, 0.001 * step) for name in "abc"}, 3 * 0.001 * step / workers)
    assert run.seconds_left(STEPS) == pytest.approx(left, rel=0.02)


def test_the_slowest_agent_decides_and_one_that_has_not_begun_is_waited_for() -> None:
    run = RunClock()
    for step in range(100, 4001, 100):
        run.record({"fast": (step, 1e-5 * step), "slow": (step, 0.001 * step)}, 0.001 * step)
    assert run.seconds_left(STEPS) == pytest.approx(6.0, rel=0.05)
    run.record({"fast": (4000, 0.04), "slow": (4000, 4.0), "late": (0, 0.0)}, 4.0)
    assert run.seconds_left(STEPS) is None
