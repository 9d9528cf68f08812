"""Declare parameters as data: forms, links, the command line, messages, documents and hashes are
made from them.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Any, ClassVar, TypedDict, cast, get_args

from pydantic import BaseModel, ConfigDict, Field


class Params(BaseModel):
    """Frozen, strict parameters of a simulator or an agent: no unknown names, no bool for a number,
    no NaN.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        # an alias is a reserved name: "from"
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )
    source_digest: ClassVar[str] = ""
    """Digest of the source file of a plug-in, which is part of hashes.

    Empty for the kinds of this package.
    """

    def mode(self) -> str:
        """Return the name of the code path that numeric parameters select; it is structural too."""
        return ""

    @classmethod
    def choices(cls, name: str) -> dict[str, str] | None:  # noqa: ARG003
        """Return the current values of a text field with their labels, or None for every other
        field.

        For options that come and go, such as files; those of a ``Literal`` are in its type.
        """
        return None

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the closest values that are valid together, where each of ``values`` is valid
        alone.

        Override it together with a validator of several fields: it is what the app offers as a
        repair."""
        return values

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:  # noqa: ARG003
        """Return the fields that mean nothing together with the others: forms do not show them."""
        return frozenset()

    @classmethod
    def when_empty(cls, name: str, values: dict[str, Any]) -> str:  # noqa: ARG003
        """Return what an empty value of a field means beside the other values, in a word or two.

        Empty if nothing.
        """
        return str(declaration(cls.model_fields[name])["empty"] or "")


class Declaration(TypedDict):
    """What `param` declares of a field beside its title, help, default and bounds; see there."""

    symbol: str
    unit: str
    structural: bool
    basic: bool
    log: bool
    empty: str
    later: bool
    slates: bool
    typical: list[float] | None
    usual: list[float] | None
    sweep: list[Any] | None
    table: dict[str, list[str]] | None


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
    usual: tuple[float, float] | None = None,
    sweep: tuple[float, float] | tuple[str, ...] | None = None,
    empty: str = "",
    later: bool = False,
    slates: bool = False,
    table: tuple[Sequence[str], Sequence[str]] | None = None,
    **bounds: Any,
) -> Any:
    """Declare one parameter.

    Parameters
    ----------
    default : value
    title : str
        A noun phrase of at most three words.
    help : str
        One sentence that defines, one on what a larger value does, with the usual range.
    symbol : str
        LaTeX.
    unit : str
        Unit of the number.
    structural : bool
        Rows with different values cannot share a block (shapes or code paths differ).
    basic : bool
        Shown at first; the other parameters are one click away.
    log : bool
        Offered on a logarithmic scale.
    typical : tuple of float
        Range of the slider, where the allowed range is far wider.
    usual : tuple of float
        Part of the slider in which good values usually lie, which is shaded; the help states it
        too.
    sweep : tuple of float or str
        Positive range of a sweep on a logarithmic scale, for a scale parameter whose slider begins
        at 0; of a choice, the options that run in every simulator.
    empty : str
        What an empty value (None) means, in a word or two.
    later : bool
        Added after the first release of its class: at its default it stays out of the hash
        (`hash_content`).
    slates : bool
        Meaningful only where more than one item is shown at once.
    table : tuple of two sequences of str
        Names of the rows and of the columns of a nested tuple of numbers.
    bounds
        pydantic's ``ge, gt, le, lt, min_length, max_length, pattern, strict``.
    """
    if isinstance(default, tuple):
        # JSON knows lists only
        bounds.setdefault("strict", False)
    extra: Declaration = {
        "symbol": symbol,
        "unit": unit,
        "structural": structural,
        "basic": basic,
        "log": log,
        "empty": empty,
        "later": later,
        "slates": slates,
        "typical": list(typical) if typical else None,
        "usual": list(usual) if usual else None,
        "sweep": list(sweep) if sweep else None,
        "table": {"rows": list(table[0]), "columns": list(table[1])} if table else None,
    }
    return Field(
        default,
        title=title,
        description=help,
        json_schema_extra=cast("dict[str, Any]", extra),
        **bounds,
    )


_NOTHING: Declaration = param(None, title="", help="").json_schema_extra


def override_default(params: type[Params], name: str, default: Any) -> Any:
    """Return a field of another class with a default of its own."""
    field = copy(params.model_fields[name])
    field.default = default
    return field


@cache
def schemas(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each field of a class: cached, because pydantic takes milliseconds;
    read-only.
    """
    properties: dict[str, dict[str, Any]] = model.model_json_schema(by_alias=False)["properties"]
    return properties


def declaration(field: Any) -> Declaration:
    """Return what `param` declared of a pydantic field; nothing for fields declared otherwise."""
    entries = field.json_schema_extra
    return (
        cast("Declaration", entries)
        if isinstance(entries, dict) and "symbol" in entries
        else _NOTHING
    )


def entry_kinds(model: type[Params], name: str) -> dict[str, type[Params]]:
    """Return the classes by kind of a field that holds a list of parameter sets.

    Empty for every other field.
    """
    found: dict[str, type[Params]] = {}
    waiting = [model.model_fields[name].annotation]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, type) and issubclass(part, Params) and "kind" in part.model_fields:
            found[str(part.model_fields["kind"].default)] = part
        waiting = [*get_args(part), *waiting]
    return found


def structural_key(params: Params) -> str:
    """Return a text that is equal for parameter sets whose rows can share a block."""
    fixed = {
        n
        for n, f in type(params).model_fields.items()
        if declaration(f)["structural"] or n == "kind"
    }
    return params.model_dump_json(include=fixed) + params.mode()


def hash_content(params: Params) -> dict[str, Any]:
    """Return the fields that a hash is made of: all of them, except ``later`` ones at their
    default.

    Experiments older than such a field keep their hashes: their numbers are the same. The content
    of a plug-in includes its source file: after an edit, its experiments are run again."""
    fields = type(params).model_fields.items()
    at_default = {
        n for n, f in fields if declaration(f)["later"] and getattr(params, n) == f.default
    }
    fields_by_name = params.model_dump(mode="json", exclude=at_default)
    # a key with a space: no parameter can have that name
    return (
        {**fields_by_name, "source digest": params.source_digest}
        if params.source_digest
        else fields_by_name
    )


def registry(package: str, *lines: str) -> dict[str, Any]:
    """Return classes by kind from lines like ``"linucb.LinUCB"``: module of ``package``, and the
    class in it.
    """
    classes: dict[str, Any] = {}
    for line in lines:
        module, _, name = line.rpartition(".")
        cls = getattr(importlib.import_module(f"{package}.{module}"), name)
        classes[str(cls.Params.model_fields["kind"].default)] = cls
    return classes
