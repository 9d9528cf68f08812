"""Initial weights have the documented distributions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from bandits.base.randomness import Streams
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP
from bandits.models.neural.offline_training import _initial

STREAMS, WIDTHS = Streams(3, range(40)), (5, 24, 16, 1)


def layers(symmetric: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    net = BatchedMLP(
        initial_weights(STREAMS, WIDTHS, part=1, symmetric=symmetric), WIDTHS, double=True
    )
    return [(weight.numpy(), bias.numpy()) for weight, bias in net.layers]


def test_standard_weights_are_uniform_within_the_root_of_the_inputs() -> None:
    for (weight, bias), (a, _) in zip(
        layers(symmetric=False), itertools.pairwise(WIDTHS), strict=True
    ):
        for values in (weight, bias):
            bound = 1 / np.sqrt(a)
            assert bound * 0.8 < np.abs(values).max() <= bound
            assert abs(values.mean()) < 5 * bound / np.sqrt(3 * values.size)


def test_weights_of_the_paper_have_its_variances_and_two_halves() -> None:
    """N(0, 4/m) in hidden layers and N(0, 2/m) in the last: variances within five standard
    errors.
    """
    (first, _), (second, _), (last, _) = found = layers(symmetric=True)
    assert all(not bias.any() for _, bias in found)
    for values, variance in (
        (first[:, :12], 4 / 24),
        (second[:, :8, :12], 4 / 16),
        (last[:, :, :8], 2 / 16),
    ):
        assert values.var() == pytest.approx(variance, rel=5 * np.sqrt(2 / values.size))
    np.testing.assert_array_equal(first[:, :12], first[:, 12:])
    np.testing.assert_array_equal(second[:, :8, :12], second[:, 8:, 12:])
    assert not second[:, :8, 12:].any()
    assert not second[:, 8:, :12].any()
    np.testing.assert_array_equal(last[..., :8], -last[..., 8:])


def test_a_click_model_starts_as_torch_does_by_default() -> None:
    tensors = _initial(torch, torch.Generator().manual_seed(1), [100, 4, 900, 1], 50, 60, 50)
    for i, inputs in enumerate((100, 4, 900)):
        for name in (f"w{i}", f"b{i}"):
            assert float(tensors[name].abs().max()) <= inputs**-0.5
        assert float(tensors[f"w{i}"].abs().max()) > 0.9 * inputs**-0.5
    assert tensors["user"].shape == (50, 50)
    assert float(tensors["item"].std()) == pytest.approx(1, rel=0.1)
