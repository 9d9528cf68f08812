"""Which parameters a sweep can vary, and a first axis over one of them."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from bandits.base.params import Params, declaration, schemas

# ratio of the ends of a positive range from which it is on a log scale
LOG_FROM = 10
# ratio of the ends of a range that begins at 0, on a log scale
DECADES = 1000


def sweepable(owner: type[Params]) -> list[str]:
    """List the parameters that a sweep can vary: numbers and enumerations, not lists, labels or
    kinds.
    """
    names = []
    for name in owner.model_fields:
        enumerated = "enum" in schemas(owner)[name] or owner.choices(name) is not None
        if name not in ("kind", "label") and (
            enumerated or _options(owner, name) & {"number", "integer", "boolean"}
        ):
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


def bounds(owner: type[Params], name: str) -> tuple[float | None, float | None]:
    """Return the smallest and the largest allowed number, or the limits that it must not reach.

    None without any.
    """
    schema = schemas(owner)[name]
    merged = {k: v for option in [*schema.get("anyOf", []), schema] for k, v in option.items()}
    return merged.get("minimum", merged.get("exclusiveMinimum")), merged.get(
        "maximum", merged.get("exclusiveMaximum")
    )


def allows(owner: type[Params], name: str, value: float) -> bool:
    """Whether a parameter may take a number, whatever the others are."""
    model = owner.model_construct()
    try:
        owner.__pydantic_validator__.validate_assignment(model, name, value)
    except ValidationError as error:
        return all(e["loc"] != (name,) for e in error.errors(include_url=False))
    return True


def is_scale(owner: type[Params], name: str) -> bool:
    """Whether a parameter is declared as one whose ratios count, not its differences."""
    field = owner.model_fields[name]
    return bool(declaration(field)["log"] or declaration(field)["sweep"])


def suggest_axis(owner: type[Params], name: str, number: int = 9) -> dict[str, Any]:
    """Suggest an axis over one parameter: the range or the choices it declares, otherwise all of
    its choices.

    Scale parameters, and ranges over more than a factor `LOG_FROM`, are on a log scale, with 0 as
    an additional value where it is allowed.

    Returns
    -------
    dict
        The fields of `Axis`, without its path.
    """
    field = owner.model_fields[name]
    if (options := choices(owner, name)) is not None:
        return {"values": tuple(declaration(field)["sweep"] or options)}
    if not is_numeric(owner, name):
        return {"values": (False, True)}
    default = float(field.default) if isinstance(field.default, (int, float)) else 1.0
    least, most = bounds(owner, name)
    allowed = (
        0.0 if least is None else float(least),
        max(10 * default, 1.0) if most is None else float(most),
    )
    low, high = declaration(field)["sweep"] or declaration(field)["typical"] or allowed
    # limits that it must not reach
    if not allows(owner, name, high):
        high -= (high - low) / DECADES
    if not allows(owner, name, low):
        low = high / DECADES if low == 0 else low + (high - low) / DECADES
    axis = {"low": float(low), "high": float(high), "number": number, "scale": "linear"}
    return (
        log_axis(owner, name, axis)
        if is_scale(owner, name) or (low > 0 and high / low >= LOG_FROM)
        else axis
    )


def choices(owner: type[Params], name: str) -> tuple[Any, ...] | None:
    """Return all options of a choice; None for another parameter."""
    options = schemas(owner)[name].get("enum") or owner.choices(name)
    return None if options is None else tuple(options)


def log_axis(owner: type[Params], name: str, axis: dict[str, Any]) -> dict[str, Any]:
    """Return an axis on a log scale: a range from 0 or below begins above 0, and 0 is an additional
    value if allowed.

    A range without positive numbers stays linear.
    """
    low, high = axis["low"], axis["high"]
    if high <= 0:
        return {**axis, "scale": "linear"}
    extra = set(axis.get("extra", ()))
    if low <= 0:
        declared = declaration(owner.model_fields[name])["sweep"] or (high / DECADES, high)
        low = declared[0] if declared[0] < high else high / DECADES
        low = max(low, 1.0) if is_integer(owner, name) and high > 1 else low
    if allows(owner, name, 0 if is_integer(owner, name) else 0.0):
        extra.add(0.0)
    found = {**axis, "low": float(low), "scale": "log"}
    return {**found, "extra": tuple(sorted(extra))} if extra else found
