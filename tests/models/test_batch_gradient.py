"""The compiled gradient of a batch, compared with torch's automatic differentiation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bandits.base.randomness import Streams
from bandits.models.neural.batch_gradient import loss_gradient
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP


def problem(
    widths: tuple[int, ...], rows: int, batch: int, *, linear_last: bool = False
) -> tuple[BatchedMLP, Any]:
    rng = np.random.default_rng(4)
    first = initial_weights(Streams(2, range(rows)), widths, part=1)
    net = BatchedMLP(
        first + 0.1 * rng.standard_normal(first.shape), widths, linear_last=linear_last
    )
    x = rng.standard_normal((rows, batch, widths[0])).astype(np.float32)
    rewards = (rng.random((rows, batch)) < 0.4).astype(np.float32)
    return net, (x, rewards, rng.random((rows, batch)).astype(np.float32))


def autograd(
    net: BatchedMLP, x: Any, rewards: Any, share: Any, *, log_odds: bool
) -> list[torch.Tensor]:
    """Return the last layer's input and both derivatives, by torch."""
    flat, inputs = net.flat.clone().requires_grad_(), torch.tensor(x, requires_grad=True)
    layers, h, phi = net.views(flat), inputs, inputs
    for i, (weight, bias) in enumerate(layers):
        phi, h = h, h @ weight.transpose(1, 2) + bias[:, None]
        h = h.relu() if i < net.n_relu else h
    loss = (
        torch.nn.functional.binary_cross_entropy_with_logits
        if log_odds
        else torch.nn.functional.mse_loss
    )
    losses = loss(h[..., 0], torch.tensor(rewards), reduction="none")
    (losses * torch.tensor(share)).sum().backward()
    assert flat.grad is not None
    assert inputs.grad is not None
    return [phi.detach(), flat.grad, inputs.grad]


@given(
    hidden=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    d=st.integers(1, 7),
    rows=st.integers(1, 3),
    batch=st.integers(1, 12),
    linear_last=st.booleans(),
    log_odds=st.booleans(),
)
def test_the_derivatives_equal_those_of_autograd(
    hidden: list[int], d: int, rows: int, batch: int, linear_last: bool, log_odds: bool
) -> None:
    net, given_ = problem((d, *hidden, 1), rows, batch, linear_last=linear_last)
    found = loss_gradient(net, *given_, log_odds=log_odds)
    for ours, theirs in zip(found, autograd(net, *given_, log_odds=log_odds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_row_has_the_same_bits_with_and_without_others() -> None:
    """Rows are multiplied one at a time."""
    net, (x, rewards, share) = problem((12, 8, 4, 1), 3, 16)
    together = [part.copy() for part in loss_gradient(net, x, rewards, share, log_odds=True)]
    alone = BatchedMLP(net.flat[1:2].double().numpy(), net.widths)
    one = loss_gradient(alone, x[1:2], rewards[1:2], share[1:2], log_odds=True)
    for whole, own in zip(together, one, strict=True):
        np.testing.assert_array_equal(whole[1:2], own)


@pytest.mark.parametrize("log_odds", [False, True])
def test_a_diverged_row_stays_nan_and_leaves_the_others(log_odds: bool) -> None:
    net, given_ = problem((5, 6, 4, 1), 2, 8)
    expected = [part[1].copy() for part in loss_gradient(net, *given_, log_odds=log_odds)]
    net.flat[0] = float("nan")
    for part, before in zip(loss_gradient(net, *given_, log_odds=log_odds), expected, strict=True):
        assert np.isnan(part[0]).any()
        np.testing.assert_array_equal(part[1], before)
