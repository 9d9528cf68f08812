"""Quantiles of Student's t in compiled loops: bounds by a few products, and SciPy's own function.

References
----------
Wallace (1959), Bounds on normal approximations to Student's and the chi-square distributions: the
normal quantile z of t > 0 is from sqrt((n - 1/2) ln(1 + t^2 / n)) to sqrt(n ln(1 + t^2 / n))."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import get_cython_function_address, intrinsic

from bandits.base.types import FloatArray

CELLS = 4096


@cache
def normal_quantiles() -> FloatArray:
    """Return the quantiles of the standard normal distribution from 1/2 to 1, (CELLS + 1,)."""
    from scipy.special import ndtri

    return np.asarray(ndtri(0.5 + np.arange(CELLS + 1) / (2 * CELLS)))


@cache
def stdtrit_address() -> int | None:
    """Return the address of `scipy.special.stdtrit`; None where its name is another one."""
    # SciPy 1.14 has the second name
    for name in ("__pyx_fuse_0stdtrit", "stdtrit"):
        with suppress(ValueError):
            return int(get_cython_function_address("scipy.special.cython_special", name))
    return None


def quantiles(freedom: FloatArray, uniforms: FloatArray) -> FloatArray:
    """Compute the quantiles of ``uniforms``, of the shape of both."""
    from scipy.special import stdtrit

    # the sign of SciPy's is wrong where it is infinite, at few degrees of freedom
    return np.asarray(np.copysign(stdtrit(freedom, uniforms), uniforms - 0.5))


@njit(cache=True, nogil=True)
def quantile_bounds(freedom: float, uniform: float, table: FloatArray) -> Any:
    """Bound `quantile` from below and above, by `normal_quantiles`."""
    share = abs(uniform - 0.5) * (2 * CELLS)
    cell = min(int(share), CELLS - 1)
    z = table[cell]
    # exp(y) - 1 is above y + y^2 / 2 + y^3 / 6, and below y / (1 - y / 2)
    y = z * z / freedom
    low, high = z * np.sqrt(1 + y / 2 + y * y / 6), np.inf
    z = table[cell + 1]
    left = freedom - 0.5 - z * z / 2
    # the last cell ends at infinity
    if left > 0:
        high = z * np.sqrt(freedom / left)
    return (low, high) if uniform >= 0.5 else (-high, -low)


@intrinsic
def _call_address(_context: Any, function: Any, freedom: Any, uniform: Any) -> Any:  # noqa: ARG001
    """Call a C function (double, double, int) -> double by its address."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number, flag = ir.DoubleType(), ir.IntType(32)
        kind = ir.FunctionType(number, [number, number, flag])
        function, freedom, uniform = arguments
        called = builder.inttoptr(function, kind.as_pointer())
        return builder.call(called, [freedom, uniform, flag(0)])

    return types.float64(types.int64, types.float64, types.float64), generate


_call: Any = _call_address


@njit(cache=True, nogil=True)
def quantile(function: int, freedom: float, uniform: float) -> float:
    """Compute one of the `quantiles`, by `stdtrit_address`."""
    return float(np.copysign(_call(function, freedom, uniform), uniform - 0.5))
