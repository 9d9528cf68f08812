"""Expectations of the contract, each one sentence about what is wrong.

And those of every registered class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import ValidationError

from bandits.base.formatting import description
from bandits.base.params import Params


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
    expect(
        np.array_equal(actual, expected, equal_nan=np.asarray(actual).dtype.kind == "f"), message
    )


def class_is_described(cls: type[Any]) -> None:
    """A registered class has a title, a description and, if it is an agent, a formula."""
    expect(cls.title, f"{cls.__name__} needs a title")
    expect(
        description(cls).endswith("."),
        f"the docstring of {cls.__name__} must begin with a sentence",
    )
    if hasattr(cls, "scores"):
        expect(getattr(cls, "formula", ""), f"{cls.__name__} needs a formula: its score in LaTeX")


def parameters_are_frozen_and_explained(params: type[Params]) -> None:
    """Parameters have defaults and help, cannot be changed and survive JSON."""
    expect(params.model_config.get("frozen"), "Params must be frozen")
    expect(params.model_config.get("extra") == "forbid", "Params must forbid unknown fields")
    for name, field in params.model_fields.items():
        if name != "kind":
            expect(field.title, f"the parameter {name} needs a title")
            expect(
                (field.description or "").endswith("."),
                f"the parameter {name} needs help: a sentence with a full stop",
            )
    try:
        default = params()
        # which validates the defaults too
        again = params.model_validate_json(default.model_dump_json())
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "Params"
        expect(False, f"all parameters need valid defaults: {where}: {error.errors()[0]['msg']}")
    expect(again == default, "Params must survive JSON")
    try:
        default.kind = "other"  # type: ignore[attr-defined]
    except ValidationError:
        return
    expect(False, "Params must be frozen")
