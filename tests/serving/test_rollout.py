"""The rollout: who gets the challenger, and what the gates decide."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from pydantic import ValidationError

from bandits.serving.rollout import Rollout, RolloutParams
from benchmarks.reproduction import rollout as simulation


def test_users_keep_the_challenger_as_its_share_grows() -> None:
    rollout = Rollout(RolloutParams(steps=(0.05, 0.5)))
    users = [f"user {i}" for i in range(20_000)]
    early = {user for user in users if rollout.assigned(user)}
    # 4 standard errors of a share
    assert len(early) / 20_000 == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 20_000))
    rollout.advance()
    late = {user for user in users if rollout.assigned(user)}
    assert early < late
    assert len(late) / 20_000 == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / 20_000))
    other = Rollout(RolloutParams(steps=(0.05, 0.5), salt="other"))
    assert {user for user in users if other.assigned(user)} != early
    with pytest.raises(IndexError):
        rollout.advance()


def test_the_interval_holds_the_difference_while_shares_and_rates_move() -> None:
    rng = np.random.default_rng(1)
    rollout = Rollout(RolloutParams(steps=(0.2, 0.5), min_decisions=1))
    assert rollout.interval() == (-math.inf, math.inf)
    for rate in (0.6, 0.1):
        # the naive difference of means would favour who served more in the good times
        for _ in range(3_000):
            mine = rng.random() < rollout.share
            reward = float(rng.random() < rate + 0.1 * mine)
            rollout.observe(reward, challenger=mine, share=rollout.share)
        if rollout.step == 0:
            rollout.advance()
    low, high = rollout.interval()
    assert low < 0.1 < high
    assert high - low < 0.15


def fed(rewards: tuple[float, float], n: int = 4_000, **params: object) -> Rollout:
    """A rollout at its first step of one half with constant rewards of champion and challenger."""
    rollout = Rollout(
        RolloutParams.model_validate({"steps": (0.5,), "min_decisions": 1_000} | params)
    )
    for i in range(n):
        rollout.observe(rewards[i % 2], challenger=i % 2 == 1, share=0.5)
    return rollout


@pytest.mark.parametrize(
    ("rewards", "params", "action"),
    [
        ((0.5, 0.9), {}, "promote"),
        ((0.9, 0.5), {}, "roll back"),
        ((0.5, 0.5), {}, "wait"),
        ((0.5, 0.5), {"delta": 0.2}, "promote"),
        ((0.5, 0.9), {"min_decisions": 5_000}, "wait"),
        ((0.5, 0.5), {"steps": (0.5, 0.6)}, "advance"),
        ((-5.0, 5.0), {"low": -10.0, "high": 10.0}, "promote"),
    ],
)
def test_gates(rewards: tuple[float, float], params: dict[str, object], action: str) -> None:
    assert fed(rewards, **params).verdict().action == action


def test_errors_and_latency_roll_back() -> None:
    for seconds, failed, word in ((0.01, True, "failed"), (0.2, False, "took longer than 200 ms")):
        rollout = fed((0.5, 0.9))
        for i in range(300):
            rollout.served(seconds if i % 20 == 0 else 0.01, failed=failed and i % 20 == 0)
        verdict = rollout.verdict()
        assert verdict.action == "roll back"
        assert word in verdict.sentence


def exposed(shares: tuple[float, float], n: int, seed: int = 0) -> Rollout:
    """A rollout in which champion and challenger show a rare item in shares of their decisions."""
    rng = np.random.default_rng(seed)
    rollout = Rollout(RolloutParams(steps=(0.5,), min_decisions=10_000_000, min_exposure=0.05))
    for _ in range(n):
        for challenger, share in enumerate(shares):
            item = "rare" if rng.random() < share else "usual"
            rollout.shown(item, challenger=challenger == 1)
    return rollout


@pytest.mark.parametrize(
    ("shares", "ends"), [((0.1, 0.01), True), ((0.1, 0.0), True), ((0.01, 0.0), False)]
)
def test_a_challenger_that_hides_an_item_is_rolled_back(
    shares: tuple[float, float], ends: bool
) -> None:
    rollout = exposed(shares, 1_000)
    read = Rollout.from_data(rollout.params, json.loads(json.dumps(rollout.to_data())))
    for one in (rollout, read):
        verdict = one.verdict()
        assert (verdict.action == "roll back") == ends
        assert ("item 'rare' got" in verdict.sentence) == ends


def test_an_item_at_the_floor_is_not_called_hidden_at_any_look() -> None:
    # 100 rollouts with 40 looks each: P(more than 12 errors at 5 %) = .0015
    ended = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        rollout = Rollout(RolloutParams(steps=(0.5,), min_decisions=10_000_000, min_exposure=0.05))
        for _ in range(40):
            for challenger, rare in ((False, 5), (True, rng.binomial(50, 0.05))):
                for i in range(50):
                    rollout.shown("rare" if i < rare else "usual", challenger=challenger)
            if rollout.verdict().action == "roll back":
                ended += 1
                break
    assert ended <= 12


def test_settings_that_make_no_rollout_are_refused() -> None:
    for wrong in (
        {"steps": ()},
        {"steps": (0.5, 0.2)},
        {"steps": (0.0, 0.5)},
        {"steps": (1.0,)},
        {"low": 1.0},
    ):
        with pytest.raises(ValidationError):
            RolloutParams.model_validate(wrong)


@pytest.mark.slow
def test_rollouts_err_as_seldom_as_stated() -> None:
    # P(more than 5 errors of 20 at 5 %) = .0003; of 90 % found early, P(fewer than 13 of 20) = .002
    equal = [simulation.simulate(seed, 1.0, 50_000) for seed in range(20)]
    assert sum(outcome.action != "wait" for outcome in equal) <= 5
    worse = [simulation.simulate(seed, 0.8) for seed in range(20)]
    assert all(outcome.action == "roll back" for outcome in worse)
    assert sum(outcome.share < 0.2 for outcome in worse) >= 13


@pytest.mark.slow
def test_rewards_that_come_late_end_no_rollout_of_equal_models() -> None:
    # P(more than 5 errors of 20 at 5 %) = .0003
    late = [(simulation.DELAY, n * simulation.DELAY) for n in (1, 2)]
    for delays in late:
        found = [simulation.simulate(seed, 1.0, 50_000, delays=delays) for seed in range(20)]
        assert sum(outcome.action != "wait" for outcome in found) <= 5
    # and they are observed
    assert simulation.simulate(0, 0.5, delays=late[0]).action == "roll back"
