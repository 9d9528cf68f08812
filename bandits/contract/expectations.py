"""Expectations of the contract: each states in one sentence what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np


class ContractError(AssertionError):
    """An agent or a simulator does not fulfil the contract; the message is one sentence."""


def expect(condition: Any, message: str) -> None:
    """Raise `ContractError` unless a condition holds, or holds for all entries of an array."""
    if not np.all(condition):
        raise ContractError(message)


def expect_array(array: Any, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    """Raise `ContractError` unless an array has this type and shape."""
    if not isinstance(array, np.ndarray):
        raise ContractError(f"{name} must be an array; got {type(array).__name__}")
    if (array.dtype, array.shape) != (np.dtype(dtype), shape):
        raise ContractError(f"{name} must be {dtype} {shape}; got {array.dtype} {array.shape}")


def expect_equal(actual: Any, expected: Any, message: str) -> None:
    """Raise `ContractError` unless two arrays are equal to the bit, NaN included."""
    expect(np.array_equal(actual, expected, equal_nan=np.asarray(actual).dtype.kind == "f"), message)
