"""Networks with a row axis, compared with autograd and plain torch.nn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from bandits.agents.neural.base import NeuralAgent
from bandits.base.randomness import Streams
from bandits.experiments.lockstep import make_lane
from bandits.models.neural import full_batch, mlp
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP, count_weights, dropout_masks
from bandits.models.neural.optimisers import make_optimiser
from tests.support import experiment

WIDTHS = (5, 8, 6, 1)


def make(
    rows: Sequence[int] = (0,), widths: Sequence[int] = WIDTHS, *, double: bool = True
) -> BatchedMLP:
    return BatchedMLP(initial_weights(Streams(3, rows), widths, part=1), widths, double=double)


def plain(net: BatchedMLP, row: int) -> torch.nn.Sequential:
    """Return the same network as torch.nn modules."""
    layers: list[torch.nn.Module] = []
    for (weight, bias), (a, b) in zip(net.layers, itertools.pairwise(net.widths), strict=True):
        linear = torch.nn.Linear(a, b, dtype=net.flat.dtype)
        with torch.no_grad():
            linear.weight.copy_(weight[row])
            linear.bias.copy_(bias[row])
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def flat(module: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-10), (False, 1e-5)])
@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_training_one_row_equals_plain_torch(name: str, double: bool, tolerance: float) -> None:
    net = make(double=double)
    module = plain(net, 0)
    ours = make_optimiser(name, net.flat, np.array([1e-3]))
    theirs = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[name](module.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((250, 32, 5)), dtype=net.flat.dtype)
    y = x.sum(2).sin()
    for i in range(250):
        forward_pass = net.forward(x[None, i])
        ours.step(net.backward(forward_pass, 2 * (forward_pass.out - y[None, i, :, None]) / 32))
        theirs.zero_grad()
        torch.nn.functional.mse_loss(module(x[i])[:, 0], y[i]).backward()
        theirs.step()
    np.testing.assert_allclose(net.flat[0], flat(module), atol=tolerance, rtol=tolerance)


def test_rmsprop_equals_torch_from_the_same_average() -> None:
    """TensorFlow's average of squares begins at 1 and its epsilon is below the root: it counts at a
    gradient of 0.
    """
    rng, rates = np.random.default_rng(2), np.array([0.1, 0.01])
    flat, start = (
        torch.zeros((2, 7), dtype=torch.float64),
        torch.tensor(rng.standard_normal((2, 7))),
    )
    flat.copy_(start)
    ours = make_optimiser("rmsprop", flat, rates)
    rows = [torch.nn.Parameter(row.clone()) for row in start]
    theirs = [
        torch.optim.RMSprop([row], lr=rate, alpha=0.9, eps=1e-10)
        for row, rate in zip(rows, rates, strict=True)
    ]
    for optimiser, row in zip(theirs, rows, strict=True):
        optimiser.state[row] = {"step": torch.tensor(0.0), "square_avg": torch.ones_like(row)}
    for _ in range(60):
        gradient = torch.tensor(rng.standard_normal((2, 7)))
        ours.step(gradient)
        for optimiser, row, own in zip(theirs, rows, gradient, strict=True):
            row.grad = own
            optimiser.step()
    np.testing.assert_allclose(flat, torch.stack(rows).detach(), atol=1e-6)
    ours.load_state_dict({"second": np.zeros((2, 7))})
    before = flat.clone()
    ours.step(torch.full((2, 7), 1e-5, dtype=torch.float64))
    np.testing.assert_allclose(
        (before - flat)[:, 0], rates * 1e-5 / np.sqrt(1e-11 + 1e-10), rtol=1e-6
    )


def test_rows_train_independently() -> None:
    rows, rates = (0, 1, 2, 3, 4), np.array([1e-3, 1e-2, 3e-3, 1e-3, 1e-2])

    def train(chosen: list[int]) -> torch.Tensor:
        net = make([rows[r] for r in chosen], double=False)
        adam = make_optimiser("adam", net.flat, rates[chosen])
        rng = np.random.default_rng(1)
        for _ in range(200):
            x = torch.tensor(rng.standard_normal((5, 16, 5))[chosen], dtype=torch.float32)
            forward_pass = net.forward(x)
            adam.step(net.backward(forward_pass, (forward_pass.out - x.sum(2, keepdim=True)) / 16))
        return net.flat

    together = train([0, 1, 2, 3, 4])
    for r in range(5):
        np.testing.assert_allclose(train([r])[0], together[r], atol=1e-6)


@pytest.mark.parametrize(("double", "tolerance"), [(True, 1e-12), (False, 1e-5)])
def test_factors_equal_the_gradients_of_an_autograd_loop(double: bool, tolerance: float) -> None:
    net = make((0, 1, 2), double=double)
    x = torch.tensor(np.random.default_rng(2).standard_normal((3, 4, 5)), dtype=net.flat.dtype)
    factors = net.factors(net.forward(x))
    dense = factors.dense()
    assert dense.shape == (3, 4, count_weights(WIDTHS))
    for r, k in itertools.product(range(3), range(4)):
        module = plain(net, r)
        module(x[r, k]).backward()
        expected = torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])
        np.testing.assert_allclose(dense[r, k], expected, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(
        factors.inner_products(factors), dense @ dense.transpose(1, 2), rtol=1e-5, atol=tolerance
    )
    np.testing.assert_allclose(
        factors.squared_norms(), dense.square().sum(2), rtol=1e-5, atol=tolerance
    )


def test_factors_equal_the_vectorised_jacobian() -> None:
    net = make()
    x = torch.tensor(np.random.default_rng(4).standard_normal((1, 7, 5)))
    module = plain(net, 0)
    weights = dict(module.named_parameters())

    def one(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, weights, (x,))[0]

    actual = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0))(weights, x[0])
    jacobian = torch.cat([g.detach().flatten(1) for g in actual.values()], dim=1)
    np.testing.assert_allclose(net.factors(net.forward(x)).dense()[0], jacobian, atol=1e-12)


def test_dropout_gradients_equal_those_of_autograd() -> None:
    net = make((0, 1))
    rng = np.random.default_rng(5)
    x = torch.tensor(rng.standard_normal((2, 6, 5)))
    keep = torch.full((2, 1, 1), 0.7, dtype=torch.float64)
    m = dropout_masks(torch.tensor(rng.random((2, 6, 14))), WIDTHS, keep)
    assert sorted({round(float(v), 6) for v in m[0].unique()}) == [0.0, round(1 / 0.7, 6)]
    forward_pass = net.forward(x, m)
    gradient = net.backward(forward_pass, torch.ones_like(forward_pass.out), m).clone()
    weights = net.flat.clone().requires_grad_()
    h = x
    for i, (weight, bias) in enumerate(net.views(weights)):
        h = h @ weight.transpose(1, 2) + bias[:, None]
        h = h.relu() * m[i] if i < 2 else h
    h.sum().backward()
    assert weights.grad is not None
    np.testing.assert_allclose(gradient, weights.grad, atol=1e-12)


def test_training_embeddings_equals_torch_modules() -> None:
    """Train two tables of two rows with Adam, with repeated entries in a batch."""
    tables, e, widths = (4, 3), 2, (3 + 4, 6, 1)
    first = initial_weights(Streams(8, (0, 1)), widths, part=1, embedding_weights=e * sum(tables))
    net = BatchedMLP(first, widths, tables=tables, embedding=e, double=True)
    adam = make_optimiser("adam", net.flat, np.array([0.02, 0.05]))
    rng = np.random.default_rng(9)
    parts = []
    for r, rate in ((0, 0.02), (1, 0.05)):
        body = plain(net, r)
        lookups = [
            torch.nn.Embedding.from_pretrained(t[r].clone(), freeze=False)
            for t in net.embedding_tables(net.flat)
        ]
        weights = [*body.parameters(), *(p for lookup in lookups for p in lookup.parameters())]
        parts.append((body, lookups, torch.optim.Adam(weights, lr=rate)))
    for _ in range(50):
        ids = np.stack([rng.integers(0, n, (2, 8)) for n in tables], axis=2)
        features, y = (
            torch.tensor(rng.standard_normal((2, 8, 3))),
            torch.tensor(rng.standard_normal((2, 8))),
        )
        forward_pass = net.forward(torch.cat([features, torch.tensor(ids).double()], dim=2))
        adam.step(net.backward(forward_pass, 2 * (forward_pass.out - y[..., None]) / 8))
        for r, (body, lookups, other) in enumerate(parts):
            entries = [lookup(torch.tensor(ids[r, :, i])) for i, lookup in enumerate(lookups)]
            other.zero_grad()
            torch.nn.functional.mse_loss(
                body(torch.cat([features[r], *entries], dim=1))[:, 0], y[r]
            ).backward()
            other.step()
    for r, (body, lookups, _) in enumerate(parts):
        expected = torch.cat([flat(body), *(lookup.weight.flatten() for lookup in lookups)])
        np.testing.assert_allclose(net.flat[r], expected.detach(), atol=1e-10)


def test_the_initialisation_of_the_paper_is_symmetric_with_zero_output() -> None:
    widths = (7, 64, 32, 1)
    first = initial_weights(Streams(3, (0, 1)), widths, part=1, symmetric=True)
    net = BatchedMLP(first, widths, double=True)
    x = torch.tensor(np.random.default_rng(6).standard_normal((2, 9, 7)))
    np.testing.assert_allclose(net.forward(x).out, 0, atol=1e-12)
    # variances 4/m of the first layer, 2/m of the last; the sampling deviation of n squared normals
    # is sqrt(2/n)
    w, last = net.layers[0][0][:, :32].numpy(), net.layers[-1][0][:, :, :16].numpy()
    assert abs(w.var() * 64 / 4 - 1) < 5 * np.sqrt(2 / w.size)
    assert abs(last.var() * 32 / 2 - 1) < 5 * np.sqrt(2 / last.size)
    assert not np.array_equal(first[0], first[1])


def test_the_device_is_that_of_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITS_DEVICE", "cpu")
    assert mlp.device() == "cpu"
    monkeypatch.setenv("BANDITS_DEVICE", "abacus")
    with pytest.raises(ValueError, match=r"one of auto, cpu, cuda; got 'abacus'"):
        mlp.device()


@pytest.mark.parametrize(
    ("agent", "rows", "taken"),
    [
        ({"kind": "neural_greedy"}, 16, "cpu"),
        ({"kind": "neural_ucb"}, 16, "cpu"),
        ({"kind": "neural_greedy"}, 256, "cuda"),
        ({"kind": "neural_ucb"}, 256, "cuda"),
        ({"kind": "neural_greedy", "hidden": [512, 512]}, 64, "cuda"),
    ],
)
def test_auto_takes_cuda_where_it_was_measured_to_help(
    agent: dict[str, Any], rows: int, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BANDITS_DEVICE", raising=False)
    lane = make_lane(experiment(agent, steps=10, replications=1), 0)
    assert isinstance(lane.agent, NeuralAgent)
    assert "CUDA" not in lane.agent.note()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert mlp.device(rows * lane.agent.step_work()) == taken
    assert lane.agent.note().endswith("networks computed on the processor")
    lane.agent.device = "cuda"
    assert lane.agent.note().endswith("networks computed on CUDA")


@pytest.mark.parametrize("log_odds", [False, True])
def test_the_compiled_full_batch_gradient_is_that_of_the_weighted_mean_loss(log_odds: bool) -> None:
    generator, widths = np.random.default_rng(4), (5, 7, 1)
    net = BatchedMLP(initial_weights(Streams(2, [0]), widths, part=1), widths, double=True)
    x, weight = (
        generator.standard_normal((40, 5)).astype(np.float32),
        generator.random(40).astype(np.float32),
    )
    # features that are 0 for all observations of an item are left out
    x[:20, 3:] = 0
    items, rewards = np.repeat([4, 1], 20), generator.integers(0, 2, 40).astype(np.float32)
    actual = np.zeros(net.flat.shape[1], np.float32)
    grouped = full_batch.group_by_item(x, items, rewards, weight)
    full_batch.gradient(net.flat[0].float().numpy(), 5, 7, *grouped, 1.5, log_odds, actual)
    forward_pass = net.forward(torch.tensor(x[None], dtype=torch.float64))
    out = 1.5 * forward_pass.out[..., 0]
    slope = (out.sigmoid() if log_odds else 2 * out) - torch.tensor(rewards) * (
        1 if log_odds else 2
    )
    delta = 1.5 * slope * torch.tensor(weight / weight.sum())
    np.testing.assert_allclose(
        actual, net.backward(forward_pass, delta[..., None])[0], rtol=1e-4, atol=1e-6
    )
