"""Private ridge models: the noise is what the theorem needs, and nothing but noisy sums is used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bandits import UserError, read, run
from bandits.agents import REGISTRY
from bandits.base.randomness import Streams
from bandits.base.types import Contexts, Feedback, Round
from bandits.experiments.lockstep import make_lane
from bandits.models.linear.private_ridge import (
    DELTA,
    EVERY,
    LEVELS,
    PrivateRidge,
    blocks,
    noise_deviation,
)
from bandits.models.linear.ridge import Ridge
from bandits.results import metrics


def model(rows: int = 1, D: int = 2, items: int = 1, **options: Any) -> PrivateRidge:
    given: dict[str, Any] = {"epsilon": 1.0, "norm": 2.0, "slate": 1, **options}
    return PrivateRidge(
        np.ones(rows), D, items, "per_arm", streams=Streams(3, range(rows)), **given
    )


def experiment(agent: dict[str, Any], **options: Any) -> Any:
    simulator = {"kind": "petshop", "n_products": 10, "features": "interaction"}
    return read(
        {"simulator": simulator, "agents": [agent], "steps": 300, "replications": 3, **options}
    )


@pytest.mark.parametrize("release", [5, 8])
def test_the_noise_of_a_release_has_the_covariance_of_its_blocks(release: int) -> None:
    """20,000 draws: entries are independent, with the variance of one block times their number."""
    noise = model(rows=1000, items=20).noise(release).reshape(20_000, 3, 3)
    assert np.array_equal(noise, noise.swapaxes(1, 2))
    x = noise[:, *np.triu_indices(3)] / (model().sigma * math.sqrt(len(blocks(release))))
    covariance = x.T @ x / len(x)
    # of a product of standard normals: 1; of a square: sqrt(2)
    deviation = np.sqrt((1 + np.eye(6)) / len(x))
    assert np.abs((covariance - np.eye(6)) / deviation).max() < 5.4
    assert np.abs(x.mean(axis=0) * math.sqrt(len(x))).max() < 5.4


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_deviation_is_the_smallest_that_keeps_the_budget(epsilon: float) -> None:
    """The leak by numerical integration: the integral of max(0, p - e^epsilon q) over two shifted
    normals.
    """
    sigma = noise_deviation(epsilon, 3.0)

    def leak(s: float) -> float:
        x = np.linspace(-12 * s, 12 * s + 3, 2_000_001)
        p, q = (
            np.exp(-(((x - shift) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))
            for shift in (3.0, 0.0)
        )
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]))

    assert leak(sigma) == pytest.approx(DELTA, rel=1e-3)
    assert leak(0.99 * sigma) > DELTA
    assert model(epsilon=epsilon, slate=2).sigma == pytest.approx(
        noise_deviation(epsilon, math.sqrt(2 * LEVELS) * 2 * 2.0**2)
    )


def test_a_release_is_a_partition_into_blocks_of_which_each_level_holds_a_batch_once() -> None:
    held: dict[int, set[int]] = {}
    for release in range(1, 200):
        batches: list[int] = []
        for level, block in blocks(release):
            own = range((block - 1) * 2**level, block * 2**level)
            batches += own
            for batch in own:
                # the same block in all releases
                assert held.setdefault(level * 1000 + batch, {block}) == {block}
        assert sorted(batches) == list(range(release))


def test_blocks_keep_their_noise_from_release_to_release() -> None:
    """Release 6 is block 3 of level 1 beside block 1 of level 2, which is all of release 4."""
    made = model(rows=2)
    (alone,) = (made.noise(4),)
    generator = made.streams.generator("agent", row=1, part=1001, block=3)
    added = (made.noise(6) - alone)[1, 0][np.triu_indices(3)]
    np.testing.assert_allclose(added, made.sigma * generator.standard_normal((1, 6))[0], rtol=1e-12)


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_without_noise_a_release_is_the_ridge_of_all_observations(
    sharing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bandits.models.linear.private_ridge.noise_deviation", lambda *_: 0.0)
    lane = make_lane(experiment({"kind": "linucb", "sharing": sharing, "private": 1.0}), 0)
    trace = lane.advance(EVERY - 1)
    found = lane.agent.model  # type: ignore[attr-defined]
    assert not found.theta.any()
    rows = [trace.items[:, :, 0]]
    trace = lane.advance(1)
    rows = np.concatenate([*rows, trace.items[:, :, 0]])
    plain = Ridge(np.ones(3), 20, 10, sharing)  # type: ignore[arg-type]
    for step in range(EVERY):
        round = lane.simulator.round_at(step)
        feedback, _ = lane.simulator.respond(
            round, rows[step][:, None], lane.simulator.uniforms.at(step)
        )
        plain.update(round, rows[step][:, None], feedback)
    for name in ("A", "b", "theta", "inverse", "count"):
        np.testing.assert_allclose(getattr(found, name), getattr(plain, name), atol=1e-10)


def test_observations_are_shortened_to_the_norm() -> None:
    lane = make_lane(
        experiment({"kind": "linucb", "sharing": "shared", "private": 1.0, "private_norm": 0.5}), 0
    )
    lane.advance(50)
    gram = lane.agent.model.gram[:, 0]  # type: ignore[attr-defined]
    assert np.trace(gram, axis1=1, axis2=2).max() <= 50 * 0.5**2 + 1e-12


@pytest.mark.parametrize(("x", "reward"), [(1.0, 3.0), (3.0, 1.0), (0.5, 1.0)])
def test_an_observation_is_shortened_with_its_reward(x: float, reward: float) -> None:
    """Its length is that of (x, r): a large reward beside short features is shortened too."""
    made, one = model(D=1), np.ones((1, 1))
    index = np.zeros(1, np.int64)
    contexts = Contexts(np.full((1, 1, 1), x), np.zeros((1, 1, 1), np.int64), 1)
    round = Round(0, index, index[:, None], contexts, index, one.astype(bool), index)
    made.update(round, index[:, None], Feedback(one * reward, one.astype(bool)))
    share = min(1.0, 2.0 / math.hypot(x, reward))
    assert made.gram.item() == pytest.approx((share * x) ** 2)
    assert made.moment.item() == pytest.approx(share**2 * x * reward)


def test_what_is_used_is_the_sums_with_the_noise_of_the_budget() -> None:
    lane = make_lane(
        experiment({"kind": "lints", "sharing": "shared", "private": 0.5, "private_norm": 1.5}), 0
    )
    lane.advance(3 * EVERY)
    found = lane.agent.model  # type: ignore[attr-defined]
    noise = found.noise(3)
    assert found.sigma == noise_deviation(0.5, math.sqrt(2 * LEVELS) * 1.5**2)
    np.testing.assert_allclose(found.b - found.moment, noise[..., :20, 20])
    # a multiple of I, but for raised eigenvalues
    shift = found.A - found.gram - noise[..., :20, :20]
    assert np.trace(shift[0, 0]) / 20 >= 1 + 2 * found.sigma * math.sqrt(2 * 20) - 1e-9
    assert np.linalg.eigvalsh(found.A).min() >= 1 - 1e-9
    np.testing.assert_allclose(found.factor @ found.factor.swapaxes(2, 3), found.A, rtol=1e-9)


def test_nothing_is_private_by_default_and_the_default_is_the_plain_model() -> None:
    for kind in ("linucb", "lints"):
        lane = make_lane(experiment({"kind": kind}), 0)
        assert type(lane.agent.model) is Ridge  # type: ignore[attr-defined]
        stated = experiment({"kind": kind, "private": None, "private_norm": 2.0})
        assert stated.hash == experiment({"kind": kind}).hash
    assert "private" not in REGISTRY["epsilon_greedy"].Params.model_fields


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"private": 0},
            "agents.0.private (LinUCB) is 0; it must be a number from 0.1 to 10 or null",
        ),
        (
            {"private": 1.0, "sharing": "hybrid"},
            "private needs sharing per_arm or shared, not hybrid",
        ),
        ({"private": 1.0, "gamma": 0.99}, "private needs gamma 1 and no window"),
        ({"private": 1.0, "prior": "category"}, "private needs prior zero, not category"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        experiment({"kind": "linucb", **options})
    assert sentence in str(refused.value)


@pytest.mark.slow
def test_a_smaller_budget_costs_clicks() -> None:
    found = {}
    for budget in (0.1, 10.0):
        agent = {"kind": "linucb", "sharing": "shared", "alpha": 0.4, "private": budget}
        (history,) = run(
            experiment(agent, steps=6000, replications=8), workers=0
        ).histories.values()
        found[budget] = metrics.estimate(metrics.click_rate(history))
    assert found[0.1].high < found[10.0].low
