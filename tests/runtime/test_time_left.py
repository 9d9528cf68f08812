"""The predicted time left, on series whose cost per step is constant, grows, or is noisy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bandits.base.types import FloatArray
from bandits.runtime import time_left
from bandits.runtime.time_left import MAX_SAMPLES, AgentClock, RunClock

STEPS = 10_000
# seconds until a step
COSTS: dict[str, Callable[[float], float]] = {
    "constant": lambda t: 0.001 * t,
    # a replay buffer that is read as a whole
    "linear": lambda t: 1e-3 * t + 1e-6 * t**2,
    # a triangular solve with all observations
    "quadratic": lambda t: 1e-3 * t + 1e-9 * t**3,
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
    """At a third of the steps, the average cost so far would give a quarter of the time that a
    growing cost takes.
    """
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
            elapsed, step = (
                np.cumsum(0.05 * rng.lognormal(sigma=0.3, size=STEPS // 50)),
                int(share * STEPS),
            )
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
    # the run was repeated
    clock.add(10, 0.1)
    assert clock.steps == [10]


@pytest.mark.parametrize(("workers", "left"), [(1, 18.0), (2, 9.0), (3, 6.0)])
def test_agents_that_are_computed_side_by_side_share_the_time(workers: int, left: float) -> None:
    run = RunClock(STEPS)
    for step in range(100, 4001, 100):
        run.record({name: (step, 0.001 * step) for name in "abc"}, 3 * 0.001 * step / workers)
    assert run.predict() == pytest.approx(left, rel=0.02)


def test_the_slowest_agent_decides_and_one_that_has_not_begun_is_waited_for() -> None:
    run = RunClock(STEPS)
    for step in range(100, 4001, 100):
        run.record({"fast": (step, 1e-5 * step), "slow": (step, 0.001 * step)}, 0.001 * step)
    assert run.predict() == pytest.approx(6.0, rel=0.05)
    run.record({"fast": (4000, 0.04), "slow": (4000, 4.0), "late": (0, 0.0)}, 5.0)
    assert run.predict() is None
    assert run.seconds_left is None


def test_a_time_is_stated_when_predictions_agree() -> None:
    """The first steps are slow and erratic: their growth, extrapolated to all steps, would be
    hours.
    """
    run = RunClock(STEPS)
    # seconds until steps 20, 40, ...
    early = [0.5, 1.0, 1.5, 2.2, 3.0, 4.5, 6.5, 9.0]
    for i, seconds in enumerate(early, 1):
        run.record({"a": (20 * i, seconds)}, seconds)
    wild = run.predict()
    assert wild is not None
    assert wild > 3600
    assert run.seconds_left is None
    stated = []
    for i in range(1, 200):
        run.record({"a": (160 + 49 * i, 9.0 + 0.5 * i)}, 9.0 + 0.5 * i)
        stated.append(run.seconds_left)
    first = next(i for i, seconds in enumerate(stated, 1) if seconds is not None)
    assert first < 40
    for i, seconds in enumerate(stated[first - 1 :], first):
        assert seconds is not None
        assert seconds == pytest.approx((STEPS - 160 - 49 * i) / 98, rel=0.5, abs=2.0)


def test_the_costs_are_fitted_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions are made under the lock of the pool, at every message of every worker."""
    fit, fits = time_left._nonnegative_fit, list[int]()

    def counted(terms: FloatArray, values: FloatArray) -> FloatArray:
        fits.append(len(values))
        return fit(terms, values)

    monkeypatch.setattr(time_left, "_nonnegative_fit", counted)
    run = RunClock(STEPS)
    for i in range(1, 1001):
        run.record({name: (5 * i, 0.01 * i) for name in "abc"}, 0.01 * i)  # ten seconds
        assert run.agents["a"].seconds_left(STEPS) == (
            None if i < 5 else pytest.approx(0.01 * (2000 - i), rel=0.02)
        )
    assert 8 <= len(fits) / 3 <= 12
