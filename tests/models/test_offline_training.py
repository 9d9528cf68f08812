"""Offline training without autograd equals plain torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from bandits.base.types import LoggedData
from bandits.models.neural import offline_training
from bandits.models.neural.offline_training import click_logits, fit_click_model


def log(n: int = 2000, n_users: int = 7, n_items: int = 5, n_features: int = 6) -> LoggedData:
    rng = np.random.default_rng(0)
    columns = np.argsort(rng.random((n, n_features)), axis=1)[:, :3]
    rewards = (rng.random(n) < 0.3).astype(np.float64)
    return LoggedData(
        rng.integers(0, n_users, n),
        rng.integers(0, n_items, n),
        rng.standard_normal((n, 3)),
        columns,
        rewards,
    )


def plain_torch(
    data: LoggedData, start: dict[str, Any], embedded: bool, batches: list[Any], n_features: int
) -> dict[str, Any]:
    """Train the same network as torch.nn modules with autograd and torch's Adam."""
    weights = {name: torch.nn.Parameter(value.clone()) for name, value in start.items()}
    optimiser = torch.optim.Adam(list(weights.values()), lr=1e-2)
    dense = torch.zeros((len(data.rewards), n_features))
    dense.scatter_(
        1, torch.from_numpy(data.columns), torch.from_numpy(data.values.astype(np.float32))
    )
    for index in batches:
        users, items = torch.from_numpy(data.users)[index], torch.from_numpy(data.items)[index]
        x = (
            torch.cat([weights["user"][users], weights["item"][items]], 1)
            if embedded
            else dense[index]
        )
        x = torch.relu(torch.nn.functional.linear(x, weights["w0"].T, weights["b0"]))
        x = torch.relu(torch.nn.functional.linear(x, weights["w1"].T, weights["b1"]))
        x = torch.nn.functional.linear(x, weights["w2"].T, weights["b2"])
        rewards = torch.from_numpy(data.rewards.astype(np.float32))[index, None]
        optimiser.zero_grad()
        torch.nn.BCEWithLogitsLoss()(x, rewards).backward()
        optimiser.step()
    return {name: w.detach().numpy() for name, w in weights.items()}


@pytest.mark.parametrize("embedded", [True, False])
def test_the_fit_equals_plain_torch(embedded: bool) -> None:
    data, users, n_features = log(), 7 if embedded else 0, 6
    actual = fit_click_model(
        data,
        n_features=n_features,
        n_users=users,
        n_items=5,
        embedding=4,
        hidden=(8, 6),
        learning_rate=1e-2,
        batch=100,
        epochs=10,
        seed=3,
    )
    generator = torch.Generator().manual_seed(3)
    start = offline_training._initial(
        torch, generator, [8 if embedded else 6, 8, 6, 1], users, 5, 4
    )
    batches = [b for _ in range(10) for b in torch.randperm(1800, generator=generator).split(100)]
    expected = plain_torch(data, start, embedded, batches, n_features)
    assert actual.weights.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(actual.weights[name], value, atol=1e-4)


def test_validation_loss_and_logits_equal_those_of_the_network() -> None:
    data = log()
    weights, loss, train_curve, validation_curve = fit_click_model(
        data,
        n_features=6,
        n_users=7,
        n_items=5,
        embedding=4,
        hidden=(8,),
        learning_rate=1e-2,
        batch=50,
        epochs=3,
        seed=1,
    )
    x = np.concatenate([weights["user"][data.users], weights["item"][data.items]], axis=1)[1800:]
    chance = 1 / (1 + np.exp(-click_logits(weights, x).astype(np.float64)))
    held_out = data.rewards[1800:]
    assert (len(train_curve), validation_curve[-1]) == (3, loss)
    assert loss == pytest.approx(
        -np.mean(held_out * np.log(chance) + (1 - held_out) * np.log(1 - chance)), rel=1e-5
    )


@pytest.fixture
def threads() -> Iterator[None]:
    """Restore torch's number of threads: later tests would wait for spinning threads on a machine
    with two cores.
    """
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
def test_results_depend_on_the_seed_and_not_on_global_torch_settings() -> None:
    def fit(threads: int) -> dict[str, Any]:
        torch.set_num_threads(threads)
        torch.manual_seed(threads)
        return fit_click_model(
            log(),
            n_features=6,
            n_users=7,
            n_items=5,
            embedding=4,
            hidden=(8,),
            learning_rate=1e-2,
            batch=50,
            epochs=2,
            seed=1,
        ).weights

    one, two = fit(1), fit(2)
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name])
