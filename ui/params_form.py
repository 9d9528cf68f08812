"""Forms made from Params: every field becomes the widget that suits its type, bounds and scale."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import pandas as pd
import streamlit as st

from bandits.base.params import Params, metadata, schemas


def fields(model: type[Params], *, basic: bool, slates: bool = True) -> list[str]:
    """Names of the fields that are shown at first (basic) or one click away; without ``slates``, not those for them."""
    shown = {n: f for n, f in model.model_fields.items() if n not in ("kind", "label")}
    names = [
        n for n, f in shown.items() if bool(metadata(f, "basic")) == basic and (slates or not metadata(f, "slates"))
    ]
    return sorted(names, key=lambda name: name not in model.__annotations__)  # a kind's own come before inherited ones


def form(model: type[Params], names: list[str], values: dict[str, Any], key: str) -> dict[str, Any]:
    """Draw widgets for the named fields; returns their values as plain data."""
    return {name: _widget(model, name, values, f"{key}-{name}") for name in names}


def _widget(model: type[Params], name: str, values: dict[str, Any], key: str) -> Any:
    field = model.model_fields[name]
    value = values.get(name, field.default)
    schema = schemas(model)[name]
    bounds = {k: v for option in (*schema.get("anyOf", []), schema) for k, v in option.items()}
    low, high = bounds.get("minimum"), bounds.get("maximum")
    symbol, unit = metadata(field, "symbol"), metadata(field, "unit")
    label = f"{field.title} ${symbol}$" if symbol else str(field.title)
    label += f" ({unit})" if unit else ""
    kind = field.annotation
    told = str(field.description)
    for option in get_args(kind) if get_origin(kind) is Literal else ():
        told = told.replace(f"{option}:", f"{_spoken(option)}:")
    common: dict[str, Any] = {"label": label, "help": told, "key": key}
    if (choices := model.choices(name)) is not None:
        spoken = {**choices, value: choices.get(value, f"{value} (not here)")}  # a link may name what is gone
        options = list(spoken)
        return st.selectbox(**common, options=options, index=options.index(value), format_func=spoken.__getitem__)
    if get_origin(kind) is Literal:
        options = list(get_args(kind))
        return st.selectbox(**common, options=options, index=options.index(value), format_func=_spoken)
    if kind is bool:
        return st.toggle(**common, value=value)
    if kind is int or int in get_args(kind):
        return st.number_input(
            **common, value=value, min_value=low, max_value=high, step=1, placeholder=metadata(field, "empty")
        )
    if kind is float:
        return _number(common, float(value), low, high, metadata(field, "typical"), bool(metadata(field, "log")))
    if name == "hidden" or (get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis):
        return _widths(st.text_input(**common, value=", ".join(map(str, value))))
    return _table(common, value)


def _number(common: dict[str, Any], value: float, low: float, high: float, typical: Any, log: bool) -> float:
    """A slider over the range worth dragging through, stretched to hold the value it has."""
    if log:
        decades = [m * 10.0**e for e in range(-6, 5) for m in (1, 2, 5)]
        first, last = typical or (low if low is not None else 1e-6, high if high is not None else 1e4)
        options = sorted({round(d, 12) for d in decades if first <= d <= last} | {value})
        return float(st.select_slider(**common, options=options, value=value, format_func=lambda v: f"{v:g}"))
    first, last = typical or (low, high)
    first, last = min(first, value), max(last, value)
    if last - first > 100:
        return float(st.number_input(**common, value=value, min_value=float(low), max_value=float(high)))
    step = 1e-4 if last - first <= 0.02 else 0.01 if last - first <= 2 else 0.05
    shown = "%.4f" if step < 0.01 else "%.2f"
    low, high = float(first), float(last)
    return float(st.slider(**common, min_value=low, max_value=high, value=value, step=step, format=shown))


def _widths(text: str) -> list[Any]:
    """'64, 32' as numbers; what is not a number is left for the validation to refuse."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [int(part) if part.isdecimal() else part for part in parts]


def _table(common: dict[str, Any], value: Any) -> list[list[float]]:
    """The pet shop's click rates: personas by categories."""
    from bandits.simulators.petshop import CATEGORIES, PERSONAS

    st.caption(f"{common['label']}: {common['help']}")
    rows = [persona.replace("_", " ") for persona in PERSONAS]
    frame = pd.DataFrame([list(row) for row in value], index=rows, columns=list(CATEGORIES))
    columns = {c: st.column_config.NumberColumn(min_value=0.0, max_value=1.0, format="%.2f") for c in CATEGORIES}
    edited = st.data_editor(frame, column_config=columns, key=common["key"], height="content")
    return [[float(cell) for cell in row] for row in edited.to_numpy()]


def _spoken(option: str) -> str:
    return str(option).replace("_", " ")
