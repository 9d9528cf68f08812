"""Draw the controls of one axis: a list of values, or a range with additional values."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bandits.base.params import Params
from bandits.sweeps.axis import JOINT, Axis
from bandits.sweeps.figures import grid
from bandits.sweeps.parameters import choices as options_of
from bandits.sweeps.parameters import is_integer, log_axis, suggest_axis

AxisData = dict[str, Any]


def axis_form(
    path: str,
    owner: type[Params],
    key: str,
    previous: AxisData,
    setting: Any,
    number: int,
    *,
    counted: bool = True,
) -> AxisData:
    """Draw the values of an axis.

    Parameters
    ----------
    path, owner
        The parameter, and the class that declares it.
    key : str
    previous : dict
        The axis of the sweep that was put into the controls; empty for a suggestion.
    setting : value
        The parameter in the sidebar, which the suggestion includes.
    number : int
        Number of values that is suggested.
    counted : bool
        The range has a number of values and additional values; Optuna searches the range alone.
    """
    name = path.rpartition(".")[2]
    suggested = {} if JOINT in name else suggest_axis(owner, name, number)
    if "values" in suggested or previous.get("values"):
        selected = list(previous.get("values") or suggested["values"])
        others = () if JOINT in name else options_of(owner, name) or ()
        options = list(dict.fromkeys([*suggested.get("values", ()), *selected, *others]))
        values = st.multiselect("Values", options, selected, key=key, format_func=grid.format_value)
        return {"path": path, "values": values}
    axis = {**suggested, **(previous and {"extra": (), **previous})}
    integer, low, high, *more = is_integer(owner, name), *st.columns([1, 1, 1.3] if counted else 2)
    common: dict[str, Any] = {"format": "%d" if integer else "%g"}
    as_number: Any = int if integer else float
    first = low.number_input("From", value=as_number(axis["low"]), key=f"{key}-low", **common)
    last = high.number_input("To", value=as_number(axis["high"]), key=f"{key}-high", **common)
    count = (
        more[0].number_input("Number of values", 2, 64, axis["number"], key=f"{key}-number")
        if counted
        else 9
    )
    log = st.toggle(
        "Log scale", axis["scale"] == "log", key=f"{key}-log", help="Equal ratios between values."
    )
    found: AxisData = {"path": path, "low": first, "high": last, "number": count, "scale": "linear"}
    if log:
        found = log_axis(owner, name, found)
        if found["scale"] == "linear":
            st.caption("The range has no positive numbers: its scale stays linear.")
        elif found["low"] != first:
            st.caption(f"On a log scale, the range begins at {grid.format_value(found['low'])}.")
    suggested_extra = (
        previous.get("extra", ()) if previous else with_setting(found, setting, integer)
    )
    found.pop("extra", None)
    return {**found, "extra": _extra(suggested_extra, f"{key}-{log}")} if counted else found


def with_setting(axis: AxisData, setting: Any, integer: bool) -> tuple[float, ...]:
    """Return the additional values of an axis, with the present setting unless the range has that
    value.
    """
    extra = set(axis.get("extra", ()))
    valid = axis["low"] < axis["high"]
    if valid and isinstance(setting, (int, float)) and not isinstance(setting, bool):
        values = Axis.model_validate(axis).grid_values(integer)
        if float(f"{setting:.6g}") not in values:
            extra.add(float(setting))
    return tuple(sorted(extra))


def _extra(suggested: tuple[float, ...], key: str) -> list[Any]:
    """Draw the additional values as a text.

    What is no number is left for the validation to refuse.
    """
    shown = ", ".join(f"{v:.12g}" for v in suggested)
    text = st.text_input(
        "Additional values",
        shown,
        key=f"{key}-extra-{shown}",
        placeholder="none",
        help=(
            "Values besides those of the range, separated by commas. The suggestion is 0, where "
            "it is allowed, and the setting in the sidebar."
        ),
    )
    return [_number(part.strip()) for part in text.split(",") if part.strip()]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
