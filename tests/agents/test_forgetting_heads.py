"""Linear heads on networks weigh their observations as stated, before and after a refit to new
features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import read
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.models.linear.nonstationary import SlidingWindowRidge
from bandits.models.neural.replay_buffer import ReplayBuffer

NETWORK = {"hidden": (8, 6), "updates": 3, "learning_rate": 0.05}
WAYS: list[dict[str, Any]] = [{"gamma": 0.97}, {"window": 45}]
PETSHOP = {"kind": "petshop", "n_products": 6, "n_users": 30}
RANKING = {
    "kind": "ranking",
    "n_items": 8,
    "n_candidates": 8,
    "n_users": 30,
    "slate": 3,
    "features": "concatenation",
}


def lane_of(kind: str, simulator: dict[str, Any], **params: Any) -> Lane:
    agent = {"kind": kind, **params}
    return make_lane(
        read({"simulator": simulator, "agents": [agent], "steps": 400, "replications": 2}), 0
    )


def decay(age: IntArray, gamma: float = 1.0, window: int | None = None) -> FloatArray:
    return np.where(age < (window or np.inf), gamma ** age.astype(float), 0.0)


def check_head(
    lane: Lane, z: FloatArray, y: FloatArray, heads: IntArray, weight: FloatArray, rtol: float
) -> None:
    """Compare mean and variance of the next round with weighted least squares.

    Parameters
    ----------
    z : float64 (R, n, m)
    y, heads, weight : (R, n)
        Reward, head and weight of each observation; the ridge is .5.
    """
    agent: Any = lane.agent
    round = agent.embedded_round(lane.simulator.round_at(lane.step))
    mean, variance = agent.head.predict(round)
    features = round.features
    for r in range(len(z)):
        for k in range(mean.shape[1]):
            own = heads[r] == (round.items[r, k] if agent.per_arm else 0)
            X, w = z[r, own], weight[r, own]
            prior = 0.5 * np.eye(z.shape[2])
            inverse = np.linalg.inv(prior + (w[:, None] * X).T @ X)
            squared = w**2 if agent.params[0].gamma < 1 else w
            middle = prior + (squared[:, None] * X).T @ X
            x = features[r, k]
            scale = float(np.abs(x).max() + 1)
            assert mean[r, k] == pytest.approx(
                x @ inverse @ X.T @ (w * y[r, own]), rel=rtol, abs=rtol * scale
            )
            expected = (
                x @ inverse @ middle @ inverse @ x if agent.params[0].gamma < 1 else x @ inverse @ x
            )
            assert variance[r, k] == pytest.approx(expected, rel=rtol, abs=rtol * scale)


@pytest.mark.parametrize("heads", ["shared", "per_arm"])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_heads_that_keep_their_features_are_weighted_least_squares(
    way: dict[str, Any], heads: str
) -> None:
    """Neural-LinUCB learns each z as it was at the choice; its network is trained meanwhile."""
    lane = lane_of("neural_linucb", PETSHOP, heads=heads, ridge=0.5, every=20, **NETWORK, **way)
    agent: Any = lane.agent
    z, y, shown = [], [], []
    for step in range(130):
        round = lane.simulator.round_at(step)
        features, index = agent.embedded_round(round).features, agent.encode(round).candidate_index
        trace = lane.advance(1)
        items = trace.items[0, :, 0]
        place = items if heads == "per_arm" else index[[0, 1], items]
        z.append(features[[0, 1], place])
        y.append(trace.rewards[0])
        shown.append(items if heads == "per_arm" else np.zeros(2, np.int64))
    weight = np.tile(decay(129 - np.arange(130), **way), (2, 1))
    check_head(
        lane, np.stack(z, axis=1), np.stack(y, axis=1), np.stack(shown, axis=1), weight, 1e-8
    )


@pytest.mark.parametrize(
    ("simulator", "heads", "steps", "buffer"),
    [
        (PETSHOP, "shared", 120, 1000),
        (PETSHOP, "per_arm", 120, 1000),
        (PETSHOP, "shared", 127, 1000),
        (PETSHOP, "per_arm", 180, 100),
        (RANKING, "shared", 67, 1000),
        (RANKING, "per_arm", 60, 100),
    ],
    ids=[
        "refitted",
        "refitted per arm",
        "steps after it",
        "full buffer",
        "slates",
        "full buffer of slates",
    ],
)
@pytest.mark.parametrize("way", [*WAYS, {"gamma": 1.0}], ids=str)
def test_refitted_heads_weigh_by_age(
    way: dict[str, Any], simulator: dict[str, Any], heads: str, steps: int, buffer: int
) -> None:
    """After a training all observations have the features of the new network, with the weights of
    their age.
    """
    params = {"heads": heads, "ridge": 0.5, "every": 60, "buffer": buffer, **NETWORK, **way}
    lane = lane_of("neural_linear_ts", simulator, **params)
    lane.advance(steps)
    agent: Any = lane.agent
    S = lane.simulator.spec.slate
    n = steps * S
    numbers = np.arange(max(0, n - buffer), n)
    slots = numbers % buffer
    x = agent.tensor(agent.replay.x[: agent.replay.size].transpose(1, 0, 2))
    z = agent.net.forward(x).inputs[-1].double().numpy()[:, slots]
    y, items = agent.replay.reward[slots].T.astype(float), agent.replay.item[slots].T
    seen = agent.replay.weight[slots, :, 0].T
    weight = seen * decay((n - 1) // S - numbers // S, **way)
    owner = items if heads == "per_arm" else np.zeros_like(items)
    check_head(lane, z, y, owner, weight, 1e-8 if n % 60 == 0 else 1e-4)


def test_a_covariance_of_log_odds_is_discounted_but_for_its_prior() -> None:
    """At a learning rate this small the network stays as it was."""
    options = {"hidden": (8, 6), "buffer": 20, "batch": 8, "epsilon": 0.5, "learning_rate": 1e-12}
    simulator = {**PETSHOP, "features": "interaction"}
    lane = lane_of("neural_click_ts", simulator, gamma=0.97, **options)
    agent: Any = lane.agent
    x = []
    for step in range(70):
        features = lane.simulator.round_at(step).features
        x.append(features[[0, 1], lane.advance(1).items[0, :, 0]])
    phi = agent.net.forward(agent.tensor(np.stack(x, axis=1))).inputs[-1].double().numpy()[:, :60]
    # the third training was at step 59
    weight = 0.97 ** (59 - np.arange(60.0))
    expected = 0.5 * np.eye(6) + np.einsum("rti,rtj,t->rij", phi, phi, weight)
    np.testing.assert_allclose(agent.S, expected, rtol=1e-5, atol=1e-6)


def test_rows_of_a_buffer_know_the_order_of_their_arrival() -> None:
    buffer, numbers = ReplayBuffer(1, 1, 100), np.arange(260)
    for start in range(0, 260, 2):
        slate = np.array([[start, start + 1]])
        buffer.add(slate[..., None].astype(float), slate, slate.astype(float), np.ones((1, 2, 1)))
        held = buffer.numbers()
        np.testing.assert_array_equal(buffer.item[: buffer.size, 0], held)
    np.testing.assert_array_equal(np.sort(held), numbers[-100:])


def test_a_row_that_has_diverged_takes_nothing_back() -> None:
    lane = lane_of("neural_linear_ts", PETSHOP, window=30, every=20, **NETWORK)
    lane.advance(50)
    agent: Any = lane.agent
    agent.net.flat[0] = float("nan")
    agent.clear_cache()
    agent.rebuild()
    assert isinstance(agent.head, SlidingWindowRidge)
    assert not agent.head.ring_seen[:, 0].any()
    assert agent.head.ring_seen[:, 1].sum() == 30
    lane.advance(40)
    assert not lane.alive[0]
    assert np.isfinite(agent.head.A[1]).all()
    discounted: Any = lane_of("neural_linear_ts", PETSHOP, gamma=0.9, every=20, **NETWORK)
    discounted.advance(50)
    discounted.agent.net.flat[0] = float("nan")
    discounted.agent.clear_cache()
    discounted.agent.rebuild()
    discounted.advance(40)
    assert not discounted.alive[0]
    assert np.isfinite(discounted.agent.head.target[1]).all()
