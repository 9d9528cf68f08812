"""Draw from Beta distributions in compiled loops, with the bits of `numpy.random.Generator.beta`.

NumPy's own C function draws, called through the interface that NumPy documents for extensions
(``bitgen_t``). Each row and step has its place in the row's PCG64 stream [1]_, which is reached by
one jump instead of a Python call.

References
----------
.. [1] O'Neill (2014), PCG: A family of simple fast space-efficient statistically good algorithms
   for random number generation. Jumps: Brown (1994), Random number generation with arbitrary
   strides.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numpy.typing import NDArray

from bandits.base.selection import best_of
from bandits.base.types import BoolArray, FloatArray, IntArray, KeyArray

# log2 of the numbers of the stream that are reserved for one step
STRIDE = 40
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of PCG64
_MODULUS = 2**128

_ONE, _ZERO = np.uint64(1), np.uint64(0)
_LOW, _32, _11, _58, _64 = (
    np.uint64(2**32 - 1),
    np.uint64(32),
    np.uint64(11),
    np.uint64(58),
    np.uint64(64),
)
_MULTIPLIER_HIGH, _MULTIPLIER_LOW = np.uint64(_MULTIPLIER >> 64), np.uint64(_MULTIPLIER % 2**64)

Words = NDArray[np.uint64]


@njit(inline="always")
def _multiply(a_high: Any, a_low: Any, b_high: Any, b_low: Any) -> Any:
    """Multiply modulo 2^128; numbers are pairs of their high and low 64 bits."""
    a0, a1, b0, b1 = a_low & _LOW, a_low >> _32, b_low & _LOW, b_low >> _32
    middle = a1 * b0 + ((a0 * b0) >> _32)
    cross = a0 * b1 + (middle & _LOW)
    carried = a1 * b1 + (middle >> _32) + (cross >> _32)
    return carried + a_high * b_low + a_low * b_high, a_low * b_low


@njit(inline="always")
def _add(a_high: Any, a_low: Any, b_high: Any, b_low: Any) -> Any:
    """Add modulo 2^128."""
    low = a_low + b_low
    return a_high + b_high + (_ONE if low < a_low else _ZERO), low


@njit(inline="always")
def _next(state: Words) -> Any:
    """Advance a stream by one number: 64 random bits (PCG XSL-RR)."""
    high, low = _multiply(state[0], state[1], _MULTIPLIER_HIGH, _MULTIPLIER_LOW)
    high, low = _add(high, low, state[2], state[3])
    state[0], state[1] = high, low
    mixed, turn = high ^ low, high >> _58
    return (mixed >> turn) | (mixed << ((_64 - turn) & np.uint64(63)))


@cfunc("uint64(voidptr)", cache=True)
def _next_uint64(pointer: Any) -> Any:
    return _next(carray(pointer, (4,), np.uint64))


@cfunc("uint32(voidptr)", cache=True)
def _next_uint32(pointer: Any) -> Any:
    return np.uint32(_next(carray(pointer, (4,), np.uint64)) >> _32)


@cfunc("float64(voidptr)", cache=True)
def _next_double(pointer: Any) -> Any:
    return (_next(carray(pointer, (4,), np.uint64)) >> _11) * (1.0 / 9007199254740992.0)


@intrinsic
def _call_address(_context: Any, function: Any, source: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    """Call a C function (bitgen_t *, double, double) -> double by its address."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number, pointer = ir.DoubleType(), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(number, [pointer, number, number])
        function, source, a, b = arguments
        called = builder.inttoptr(function, kind.as_pointer())
        return builder.call(called, [builder.inttoptr(source, pointer), a, b])

    return types.float64(types.int64, types.int64, types.float64, types.float64), generate


_call: Any = _call_address


@njit(inline="always")
def _seek(state: Words, stream: Words, step: int) -> None:
    """Set ``state`` to the place of a step in a ``stream``: origin, increment, jump of one step
    (factor, addend).
    """
    rest = np.uint64(step)
    times_high, times_low, plus_high, plus_low = _ZERO, _ONE, _ZERO, _ZERO
    factor_high, factor_low, addend_high, addend_low = stream[4], stream[5], stream[6], stream[7]
    while rest > _ZERO:
        if rest & _ONE:
            times_high, times_low = _multiply(times_high, times_low, factor_high, factor_low)
            plus_high, plus_low = _multiply(plus_high, plus_low, factor_high, factor_low)
            plus_high, plus_low = _add(plus_high, plus_low, addend_high, addend_low)
        more_high, more_low = _add(factor_high, factor_low, _ZERO, _ONE)
        addend_high, addend_low = _multiply(more_high, more_low, addend_high, addend_low)
        factor_high, factor_low = _multiply(factor_high, factor_low, factor_high, factor_low)
        rest >>= _ONE
    high, low = _multiply(times_high, times_low, stream[0], stream[1])
    state[0], state[1] = _add(high, low, plus_high, plus_low)
    state[2], state[3] = stream[2], stream[3]


@njit(cache=True, nogil=True)
def _draw(
    function: int,
    source: int,
    state: Words,
    streams: Words,
    step: int,
    a: FloatArray,
    b: FloatArray,
) -> FloatArray:
    R, K = a.shape
    out = np.empty((R, K))
    for r in range(R):
        _seek(state, streams[r], step)
        for k in range(K):
            out[r, k] = _call(function, source, a[r, k], b[r, k])
    return out


@njit(cache=True, nogil=True)
def _play(
    function: int,
    source: int,
    state: Words,
    streams: Words,
    start: int,
    a: FloatArray,
    b: FloatArray,
    shown: FloatArray,
    clicks: FloatArray,
    exposure: float,
    context: IntArray,
    probabilities: FloatArray,
    uniforms: FloatArray,
    alive: BoolArray,
    ties: KeyArray,
) -> IntArray:
    T, R = context.shape
    K = shown.shape[1]
    out = np.full((T, R), -1, np.int64)
    drawn, every = np.empty(K), np.ones(K, np.bool_)
    for t in range(T):
        for r in range(R):
            if not alive[r]:
                continue
            _seek(state, streams[r], start + t)
            for k in range(K):
                misses = max(shown[r, k] - clicks[r, k], 0.0)
                drawn[k] = _call(function, source, a[r] + clicks[r, k], b[r] + misses)
            best = best_of(drawn, every, ties[r], start + t)
            out[t, r] = best
            shown[r, best] += exposure
            if uniforms[t, r] < probabilities[context[t, r], best]:
                clicks[r, best] += 1.0
    return out


class BetaStreams:
    """The Beta draws of R rows: `2**STRIDE` numbers of each row's stream are reserved for a step.

    Parameters
    ----------
    generators : sequence of Generator
        One per row, at the start of its stream (PCG64).
    """

    def __init__(self, generators: Sequence[np.random.Generator]) -> None:
        self._streams = np.array(
            [_words(g.bit_generator.state["state"]) for g in generators], np.uint64
        )
        self._state = np.zeros(4, np.uint64)
        next_numbers = (
            _next_uint64.address,
            _next_uint32.address,
            _next_double.address,
            _next_uint64.address,
        )
        # the struct bitgen_t
        self._source = np.array([self._state.ctypes.data, *next_numbers], np.uintp)
        library = ctypes.CDLL(np.random._generator.__file__)
        function = ctypes.cast(library.random_beta, ctypes.c_void_p).value
        self._place: tuple[Any, ...] = (
            function,
            self._source.ctypes.data,
            self._state,
            self._streams,
        )

    def draw(self, step: int, a: FloatArray, b: FloatArray) -> FloatArray:
        """Draw from Beta(``a``, ``b``), float64 (R, K), at one step."""
        draw: Any = _draw
        return np.asarray(
            draw(*self._place, step, np.ascontiguousarray(a), np.ascontiguousarray(b))
        )

    def play(self, start: int, *arguments: Any) -> IntArray:
        """Thompson sampling over T steps: the arms shown, int64 (T, R).

        -1 in rows that are not alive.
        """
        play: Any = _play
        return np.asarray(play(*self._place, start, *arguments))


def _words(state: dict[str, int]) -> list[int]:
    """Return origin, increment, and factor and addend of the jump by one step, as pairs of
    64 bits.
    """
    n = 2**STRIDE
    factor = pow(_MULTIPLIER, n, _MODULUS)
    # 1 + m + ... + m^(n-1)
    total = (pow(_MULTIPLIER, n, (_MULTIPLIER - 1) * _MODULUS) - 1) // (_MULTIPLIER - 1)
    numbers = state["state"], state["inc"], factor, state["inc"] * total % _MODULUS
    return [word for number in numbers for word in (number >> 64, number % 2**64)]
