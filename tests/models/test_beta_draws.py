"""Beta draws in compiled loops: the bits of NumPy's generator at every place of a stream."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.base.randomness import Streams
from bandits.models.beta_draws import STRIDE, BetaStreams
from bandits.simulators.petshop import PetShop
from tests.contract.worlds import make

ROWS = (0, 5, 4095)


@pytest.mark.parametrize("step", [0, 1, 2, 1023, 123_456, 10_000_000])
@pytest.mark.parametrize("scale", [0.01, 0.5, 1.0, 30.0, 1e6])
def test_draws_have_the_bits_of_numpy(step: int, scale: float) -> None:
    random = np.random.default_rng(step)
    a, b = scale * np.exp(random.normal(size=(2, len(ROWS), 300)))
    # the uniform prior has an algorithm of its own
    a[:, :60], b[:, 30:90] = 1.0, 1.0
    streams = Streams(42, ROWS)
    drawn = BetaStreams([streams.generator("agent", row=row) for row in ROWS]).draw(step, a, b)
    for r, row in enumerate(ROWS):
        generator = streams.generator("agent", row=row)
        assert isinstance(generator.bit_generator, np.random.PCG64)
        generator.bit_generator.advance(step << STRIDE)
        np.testing.assert_array_equal(drawn[r], generator.beta(a[r], b[r]))


@pytest.mark.parametrize("position", ["examined", "ignored", "aware"])
def test_the_compiled_loop_has_the_bits_of_single_steps(position: str) -> None:
    lanes = [
        make("beta_ts", PetShop, options={"n_products": 6}, position=position, prior_misses=3.0)
        for _ in "ab"
    ]
    lanes[1].use_compiled = False
    for n in (1, 250, 1500):
        one, other = (lane.advance(n) for lane in lanes)
        np.testing.assert_array_equal(one.items, other.items)
        np.testing.assert_array_equal(one.rewards, other.rewards)
    for name, value in lanes[0].agent.state_dict().items():
        np.testing.assert_array_equal(value, lanes[1].agent.state_dict()[name])
