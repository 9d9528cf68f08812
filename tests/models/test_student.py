"""Quantiles of Student's t in compiled loops: SciPy's own, between their bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from bandits.models import student
from bandits.models.student import (
    normal_quantiles,
    quantile,
    quantile_bounds,
    quantiles,
    stdtrit_address,
)


@pytest.mark.parametrize("freedom", [0.02, 0.6, 2.0, 12.0, 13.5, 400.0, 1e6])
def test_a_quantile_is_that_of_scipy_between_its_bounds(freedom: float) -> None:
    generator, address = np.random.default_rng(int(10 * freedom)), stdtrit_address()
    assert address is not None
    tails = 10.0 ** generator.uniform(-16, np.log10(0.5), 300)
    for uniform in (0.5, *generator.random(300), *tails, *(1 - tails[tails > 2.0**-53])):
        expected = float(stdtrit(freedom, uniform))
        assert quantile(address, freedom, uniform) == expected
        low, high = quantile_bounds(freedom, uniform, normal_quantiles())
        slack = 1e-12 * abs(expected)
        assert low - slack <= expected <= high + slack


def test_the_bounds_of_an_arm_that_was_shown_often_are_close() -> None:
    low, high = quantile_bounds(1000.0, 0.9, normal_quantiles())
    assert high - low < 0.005


@pytest.mark.parametrize("uniform", [0.000411, 1 - 0.000411, 0.5])
def test_a_quantile_has_the_sign_of_its_side(uniform: float) -> None:
    """SciPy's is +inf on both sides."""
    address, side = stdtrit_address(), np.sign(uniform - 0.5)
    assert address is not None
    assert np.sign(quantiles(np.array(0.02), np.array(uniform))) == side
    assert np.sign(quantile(address, 0.02, uniform)) == side


def test_the_quantile_is_found_by_either_name(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"stdtrit": 7}

    def address(_module: str, name: str) -> int:
        if name not in known:
            raise ValueError(f"no function {name}")
        return known[name]

    monkeypatch.setattr(student, "get_cython_function_address", address)
    assert stdtrit_address.__wrapped__() == 7
    known.clear()
    assert stdtrit_address.__wrapped__() is None
