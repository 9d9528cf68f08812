"""Which parameters a sweep can vary, and a first axis over one of them."""

from __future__ import annotations

from typing import Any

from bandits.base.params import Params, metadata, schemas


def sweepable(owner: type[Params]) -> list[str]:
    """List the parameters that a sweep can vary: numbers and enumerations, not lists, labels or kinds."""
    names = []
    for name in owner.model_fields:
        enumerated = "enum" in schemas(owner)[name] or owner.choices(name) is not None
        if name not in ("kind", "label") and (enumerated or _options(owner, name) & {"number", "integer", "boolean"}):
            names.append(name)
    return names


def _options(owner: type[Params], name: str) -> set[str]:
    schema = schemas(owner)[name]
    return {str(option.get("type")) for option in [schema, *schema.get("anyOf", [])]}


def is_numeric(owner: type[Params], name: str) -> bool:
    """Whether a parameter takes numbers."""
    return bool(_options(owner, name) & {"number", "integer"})


def is_integer(owner: type[Params], name: str) -> bool:
    """Whether a parameter takes integers only."""
    return "number" not in _options(owner, name)


def suggest_axis(owner: type[Params], name: str, number: int = 9) -> dict[str, Any]:
    """Suggest an axis over one parameter: its typical or allowed range, or all of its choices.

    Returns
    -------
    dict
        The fields of `Axis`, without its path.
    """
    field, schema = owner.model_fields[name], schemas(owner)[name]
    if "enum" in schema or owner.choices(name) is not None:
        return {"values": tuple(schema.get("enum") or owner.choices(name) or ())}
    if not is_numeric(owner, name):
        return {"values": (False, True)}
    merged = {k: v for option in [*schema.get("anyOf", []), schema] for k, v in option.items()}
    default = float(field.default) if isinstance(field.default, (int, float)) else 1.0
    least = float(merged.get("minimum", merged.get("exclusiveMinimum", 0)))
    most = float(merged.get("maximum", merged.get("exclusiveMaximum", max(10 * default, 1))))
    low, high = metadata(field, "typical") or (least, most)
    log = bool(metadata(field, "log")) or (low > 0 and high / low >= 100)
    if log and low <= 0:
        low = min(default, high) / 100 or high / 1e4
    return {"low": float(low), "high": float(high), "number": number, "scale": "log" if log else "linear"}
