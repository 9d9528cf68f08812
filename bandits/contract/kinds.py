"""The contract of registered classes and their parameters."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from bandits.base.docstrings import description
from bandits.base.params import Params

from .expectations import expect


def class_is_described(cls: type[Any]) -> None:
    """A registered class has a title, a description and, if it is an agent, a formula."""
    expect(cls.title, f"{cls.__name__} needs a title")
    expect(description(cls).endswith("."), f"the docstring of {cls.__name__} must begin with a sentence")
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
                (field.description or "").endswith("."), f"the parameter {name} needs help: a sentence with a full stop"
            )
    try:
        default = params()
        again = params.model_validate_json(default.model_dump_json())  # which validates the defaults too
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "Params"
        expect(False, f"all parameters need valid defaults: {where}: {error.errors()[0]['msg']}")
    expect(again == default, "Params must survive JSON")
    try:
        default.kind = "other"  # type: ignore[attr-defined]
    except ValidationError:
        return
    expect(False, "Params must be frozen")
