"""Simulators as environments of Gymnasium: its own check, the numbers of the laboratory, masks."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from bandits.base.errors import UserError
from bandits.base.randomness import Streams
from bandits.gym import make_env
from bandits.simulators import REGISTRY

KINDS = sorted(set(REGISTRY) - {"logged"})


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_simulator_passes_the_check_of_gymnasium(kind: str) -> None:
    env = make_env({"kind": kind}, steps=50)
    with warnings.catch_warnings():
        # most simulators know no bounds of features; there is nothing to render
        warnings.filterwarnings("ignore", message=".*(infinity|render|spec).*")
        check_env(env)
    env.reset(seed=1)
    for _ in range(100):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()


@pytest.mark.parametrize(
    "simulator",
    [
        *({"kind": "sessions", "features": name} for name in ("additive", "interaction", "both")),
        *({"kind": "petshop", "features": name} for name in ("additive", "interaction", "both")),
        {"kind": "petshop", "layout": "notebook"},
        {"kind": "petshop", "changes": [{"kind": "launch", "at": 20, "items": 3}]},
        {"kind": "levers", "reward": "gaussian"},
    ],
)
def test_observations_stay_within_their_bounds(simulator: dict[str, object]) -> None:
    env = make_env(simulator, steps=50)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.is_bounded()  # type: ignore[attr-defined]
    ended = False
    while not ended:
        assert observation in env.observation_space
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        ended = terminated or truncated


def test_hints_and_broken_features_have_no_bounds() -> None:
    broken = {"kind": "features", "at": 20, "column": 0, "how": "scaled", "by": 1000}
    for more in ({"hints": 0.5}, {"changes": [broken]}):
        space = make_env({"kind": "petshop", **more}).observation_space
        assert not space.is_bounded("above")  # type: ignore[attr-defined]


def test_an_episode_is_a_replication_of_an_experiment() -> None:
    env = make_env({"kind": "wheel"}, steps=3)
    for replication in (0, 1):
        observation, _ = env.reset(seed=7) if replication == 0 else env.reset()
        cls = REGISTRY["wheel"]
        simulator = cls(cls.Params(), Streams(7, [replication]))
        for step in range(3):
            round = simulator.round_at(step)
            assert np.array_equal(observation, round.features[0])
            feedback, truth = simulator.respond(round, np.array([[2]]), simulator.uniforms.at(step))
            observation, reward, terminated, truncated, info = env.step(2)
            assert reward == feedback.rewards[0, 0]
            assert info["value"] == truth.value[0]
            assert info["best_value"] == truth.best_value[0]
            assert not terminated
            assert truncated == (step == 2)


def test_an_episode_is_a_visit_and_visits_go_on() -> None:
    env = make_env({"kind": "sessions", "n_products": 10, "observed": "mood", "limit": 5})
    env.reset(seed=3)
    lengths = []
    for _ in range(20):
        steps, terminated = 0, False
        while not terminated:
            following, _, terminated, truncated, info = env.step(0)
            steps += 1
            assert not truncated
            assert info["lost"] >= 0
        lengths.append(steps)
        # the next visitor of the same replication
        assert np.array_equal(env.reset()[0], following)
    assert max(lengths) == 5
    assert min(lengths) < 5


def test_an_unavailable_candidate_shows_nothing() -> None:
    env = make_env({"kind": "artwork", "n_titles": 10, "n_pictures": [2, 20], "intercept": -10})
    _, info = env.reset(seed=1)
    outcomes = []
    for _ in range(20):
        mask = info["action_mask"]
        action = int(mask.argmin())
        assert env.action_space.sample(mask=mask) in np.flatnonzero(mask)
        _, reward, *_, info = env.step(action)
        outcomes.append((bool(mask[action]), reward, info["value"] > 0))
        assert info["best_value"] > 0.9
    # a click is nearly certain where a picture is shown
    assert {o for o in outcomes if not o[0]} == {(False, 0.0, False)}
    assert all(value for there, _, value in outcomes if there)


def test_a_candidate_twice_in_a_slate_shows_nothing() -> None:
    env = make_env({"kind": "ranking"})
    env.reset(seed=1)
    S = env.action_space.shape[0]  # type: ignore[index]
    assert env.step(np.zeros(S, np.int64))[4]["value"] == 0
    assert env.step(np.arange(S))[4]["value"] > 0


def test_what_is_no_action_or_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    env = make_env({"kind": "levers"}, steps=1)
    with pytest.raises(UserError, match="call reset before step"):
        env.step(0)
    env.reset(seed=1)
    with pytest.raises(UserError, match=r"action is 10; it must be in Discrete\(10\)"):
        env.step(10)
    assert env.step(9)[3]
    with pytest.raises(UserError, match="call reset before step"):
        env.step(0)
    with pytest.raises(UserError, match="a replayed log answers only for what it shows"):
        make_env({"kind": "logged"})
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(UserError, match=r'needs Gymnasium.*"bandit-playground\[gym\]"'):
        make_env({"kind": "levers"})
