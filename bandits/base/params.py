"""Parameters are data: forms, links, the command line, messages, docs and the hash are all made from them."""

from __future__ import annotations

import importlib
from copy import copy
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Params(BaseModel):
    """Frozen, strict parameters of a simulator or an agent: no unknown names, no bool for a number, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def mode(self) -> str:
        """Names the code path that numeric parameters choose, where they do: it is structural too."""
        return ""

    @classmethod
    def choices(cls, name: str) -> dict[str, str] | None:  # noqa: ARG003
        """What a text field can be at present, and how each is called: for options that come and go (files, say).

        None for all other fields; those of a ``Literal`` are in its type.
        """
        return None


def param(
    default: Any,
    *,
    title: str,
    help: str,
    symbol: str = "",
    unit: str = "",
    structural: bool = False,
    basic: bool = False,
    log: bool = False,
    typical: tuple[float, float] | None = None,
    empty: str = "",
    later: bool = False,
    slates: bool = False,
    **bounds: Any,
) -> Any:
    """Declare one parameter.

    Parameters
    ----------
    default : value
    title, help : str
        A short name and one plain sentence.
    symbol : str
        LaTeX.
    unit : str
        What the number counts.
    structural : bool
        Rows with different values cannot share a block (shapes or code paths differ).
    basic : bool
        Shown at first; the rest is one click away.
    log : bool
        A logarithmic scale suits it.
    typical : tuple of float
        Range worth dragging through, where the allowed one is far wider.
    empty : str
        What it means to leave it out, in a word or two.
    later : bool
        It came to a kind that was out already: at its default it stays out of the hash (`hash_content`).
    slates : bool
        It means something only in worlds that show more than one item at once.
    bounds
        pydantic's ``ge, gt, le, lt, min_length, max_length, pattern, strict``.
    """
    extra: dict[str, Any] = {"symbol": symbol, "unit": unit, "structural": structural, "basic": basic, "log": log}
    extra["empty"], extra["later"], extra["slates"] = empty, later, slates
    extra["typical"] = list(typical) if typical else None
    return Field(default, title=title, description=help, json_schema_extra=extra, **bounds)


def override_default(params: type[Params], name: str, default: Any) -> Any:
    """A field of another class once more, with a default of its own."""
    field = copy(params.model_fields[name])
    field.default = default
    return field


@cache
def schemas(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """The JSON schema of each field of a class, made once, for pydantic takes milliseconds; not to be changed."""
    found: dict[str, dict[str, Any]] = model.model_json_schema()["properties"]
    return found


def metadata(field: Any, name: str) -> Any:
    """One of the facts that `spec` attached to a pydantic field; None for fields declared otherwise."""
    facts = field.json_schema_extra
    return facts.get(name) if isinstance(facts, dict) else None


def structural_key(params: Params) -> str:
    """Text that is equal for parameter sets whose rows can share a block."""
    fixed = {n for n, f in type(params).model_fields.items() if metadata(f, "structural") or n == "kind"}
    return params.model_dump_json(include=fixed) + params.mode()


def hash_content(params: Params) -> dict[str, Any]:
    """What a hash is made of: every field, but those that came later only where they are not as usual.

    So experiments from before they came keep their hashes: their numbers are the same.
    """
    fields = type(params).model_fields.items()
    usual = {n for n, f in fields if metadata(f, "later") and getattr(params, n) == f.default}
    return params.model_dump(mode="json", exclude=usual)


def registry(package: str, *lines: str) -> dict[str, Any]:
    """Classes by kind from lines like ``"linucb.LinUCB"``: module of ``package``, and the class in it."""
    found: dict[str, Any] = {}
    for line in lines:
        module, _, name = line.rpartition(".")
        cls = getattr(importlib.import_module(f"{package}.{module}"), name)
        found[str(cls.Params.model_fields["kind"].default)] = cls
    return found
