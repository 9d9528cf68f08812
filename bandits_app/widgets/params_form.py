"""Draw forms made from Params: every field becomes the widget that suits its type, bounds and
scale.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pandas as pd
import streamlit as st
from pydantic import ValidationError

from bandits.base.params import Params, declaration, entry_kinds, schemas
from bandits.experiments.validation import refusal

from . import usual_range
from .text import escape_markdown, plain_symbol


def fields(model: type[Params], *, basic: bool, slates: bool = True) -> list[str]:
    """Return the names of the fields that are shown at first (basic), or of the others.

    Parameters
    ----------
    slates : bool
        Include the fields that are meaningful only where more than one item is shown at once.
    """
    shown = {n: f for n, f in model.model_fields.items() if n not in ("kind", "label")}
    names = [
        n
        for n, f in shown.items()
        if bool(declaration(f)["basic"]) == basic and (slates or not declaration(f)["slates"])
    ]
    # inherited fields come last
    return sorted(names, key=lambda name: name not in model.__annotations__)


def form(
    model: type[Params],
    names: list[str],
    values: dict[str, Any],
    key: str,
    suggested: Callable[[Any], dict[str, Any]] | None = None,
    *,
    bounded: bool = True,
) -> dict[str, Any]:
    """Draw widgets for the named fields; returns their values as plain data.

    A text or table that the field does not accept is refused in one sentence below its widget; the
    field keeps the value that it had.

    Parameters
    ----------
    suggested : callable, optional
        Returns the values that an added entry begins with, from its class, for fields that hold
        lists of entries.
    bounded : bool
        Give boxes of numbers their bounds. A browser then keeps to itself what is out of them, and
        the former value is used. Without bounds the caller must check the values, and name what is
        wrong.
    """
    entered = {
        name: _entry_list(model, name, values, f"{key}-{name}", suggested)
        if suggested is not None and entry_kinds(model, name)
        else _widget(model, name, values, f"{key}-{name}", bounded=bounded)
        for name in names
    }
    usual_range.shade(_usual_ranges(model, {name: values.get(name) for name in names}, key))
    return entered


def _usual_ranges(
    model: type[Params], values: dict[str, Any], key: str
) -> dict[str, usual_range.Range]:
    """Locate the usual ranges on the sliders of a form, by their keys."""
    found = {}
    for name, value in values.items():
        field, own = model.model_fields[name], f"{key}-{name}"
        if not (usual := declaration(field)["usual"]):
            continue
        given = float(field.default if value is None else value)
        options, bounds = slider_values(model, name, given, own), _bounds(schemas(model)[name])
        # a box of numbers has no track
        if not options and declaration(field)["typical"] is None and None in bounds:
            continue
        first, last = (options[0], options[-1]) if options else _ends(given, bounds, field)
        if (share := usual_range.share(usual, first, last, options)) is not None:
            found[own] = share
    return found


def _ends(value: float, bounds: tuple[Any, Any], field: Any) -> tuple[float, float]:
    """Return the ends of an evenly spaced slider: the typical range, extended to hold the present
    value.
    """
    first, last = declaration(field)["typical"] or bounds
    return min(first, value), max(last, value)


def _entry_list(
    model: type[Params],
    name: str,
    values: dict[str, Any],
    key: str,
    suggested: Callable[[Any], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Draw a list of parameter sets, each with its own form, and what adds and removes them."""
    kinds, field = entry_kinds(model, name), model.model_fields[name]
    entries = [dict(entry) for entry in values.get(name) or ()]
    # new widgets after an entry was removed
    number = st.session_state.setdefault(f"{key}-round", 0)
    change = st.session_state.pop(f"{key}-change", None)
    if isinstance(change, int):
        del entries[change : change + 1]
    elif change in kinds:
        entries.append(suggested(kinds[change]))
    found = []
    for i, entry in enumerate(entries):
        cls, own = kinds[entry["kind"]], f"{key}-{number}-{i}"
        aliases = {n: f.alias or n for n, f in cls.model_fields.items()}
        given = {
            n: entry.get(alias, entry.get(n, cls.model_fields[n].default))
            for n, alias in aliases.items()
        }
        with st.container(border=True):
            title = st.container(
                horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
            )
            title.markdown(
                f"**{getattr(cls, 'title', entry['kind'])}**",
                help=(cls.__doc__ or "").split("\n\n")[0],
            )
            title.button(
                ":material/delete:",
                key=f"{own}-remove",
                type="tertiary",
                help="Remove",
                on_click=_remove_entry,
                args=(key, i),
            )
            options = [
                n for n, f in cls.model_fields.items() if get_origin(f.annotation) is Literal
            ]
            chosen = {
                n: st.session_state[f"{own}-{n}"]
                for n in options
                if f"{own}-{n}" in st.session_state
            }
            # an option may make other fields appear
            given = cls.closest({**given, **chosen})
            shown = [n for n in fields(cls, basic=False) if n not in cls.idle(given)]
            entered = given | form(cls, shown, given, own)
        found.append({aliases[n]: value for n, value in cls.closest(entered).items()})
    st.selectbox(
        f"Add to {str(field.title).lower()}",
        list(kinds),
        index=None,
        key=f"{key}-{number}-{len(entries)}-add",
        help=str(field.description),
        placeholder="none" if not entries else "another",
        format_func=lambda kind: getattr(kinds[kind], "title", kind),
        on_change=_add_entry,
        args=(key, f"{key}-{number}-{len(entries)}-add"),
    )
    return found


def _remove_entry(key: str, position: int) -> None:
    st.session_state[f"{key}-change"] = position
    st.session_state[f"{key}-round"] += 1


def _add_entry(key: str, chosen: str) -> None:
    st.session_state[f"{key}-change"] = st.session_state[chosen]


def _widget(
    model: type[Params], name: str, values: dict[str, Any], key: str, *, bounded: bool
) -> Any:
    field = model.model_fields[name]
    value = values.get(name, field.default)
    kind, optional = _unwrapped(field.annotation)
    empty = model.when_empty(name, values) or "none"
    common: dict[str, Any] = {"label": label(field), "help": _help(field, kind), "key": key}
    if (choices := model.choices(name)) is not None:
        # a link may name a deleted file
        labels = {**choices, value: choices.get(value, f"{value} (not found)")}
        return _select(common, list(labels), value, labels.__getitem__)
    if get_origin(kind) is Literal:
        options = [*([None] if optional else []), *get_args(kind)]
        return _select(
            common, options, value, lambda option: empty if option is None else _spoken(option)
        )
    if kind is bool and optional:
        labels = {None: empty, True: "yes", False: "no"}
        return _select(common, list(labels), value, labels.__getitem__)
    if kind is bool:
        return st.toggle(**common, value=value)
    if kind in (int, float):
        placeholder = model.when_empty(name, values) or None
        bounds = _bounds(schemas(model)[name])
        return _number(common, value, kind, optional, bounds, field, placeholder, bounded=bounded)
    if table := declaration(field)["table"]:
        entered: Any = _table(common, value, table, schemas(model)[name])
    elif kind is str:
        text = st.text_input(**common, value=value or "", placeholder=empty if optional else None)
        entered = None if optional and not text else text
    elif (entries := _entries(kind)) is not None:
        shown = "" if value is None else ", ".join(map(_spelled, value))
        text = st.text_input(**common, value=shown, placeholder=empty if optional else None)
        entered = (
            None if optional and not text.strip() else _parsed(text, numbers=str not in entries)
        )
    else:
        entered = _from_json(st.text_area(**common, value=json.dumps(value)))
    return _accepted(model, name, entered, value, key)


def _unwrapped(annotation: Any) -> tuple[Any, bool]:
    """Return a type without ``Annotated`` and ``| None``, and whether it was optional."""
    if get_origin(annotation) is Annotated:
        return _unwrapped(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        options = [option for option in get_args(annotation) if option is not types.NoneType]
        kind, inner = _unwrapped(options[0]) if len(options) == 1 else (annotation, False)
        return kind, inner or len(options) < len(get_args(annotation))
    return annotation, False


def _entries(kind: Any) -> set[Any] | None:
    """Return the types of the entries of a list of numbers or texts; None for every other type."""
    if get_origin(kind) not in (tuple, list):
        return None
    entries = {_unwrapped(entry)[0] for entry in get_args(kind) if entry is not Ellipsis}
    return entries if entries and entries <= {int, float, str} else None


def label(field: Any) -> str:
    """Return the label of a field's widget: title, symbol and unit."""
    symbol, unit = declaration(field)["symbol"], declaration(field)["unit"]
    return f"{field.title}{f' {plain_symbol(str(symbol))}' if symbol else ''}{f' ({unit})' if unit else ''}"  # noqa: E501


def _help(field: Any, kind: Any) -> str:
    text = str(field.description)
    for option in get_args(kind) if get_origin(kind) is Literal else ():
        text = text.replace(f"{option}:", f"{_spoken(option)}:")
    return f"{text} Shaded: the usual range." if declaration(field)["usual"] else text


def _bounds(schema: dict[str, Any]) -> tuple[Any, Any]:
    merged = {k: v for option in (*schema.get("anyOf", []), schema) for k, v in option.items()}
    return merged.get("minimum"), merged.get("maximum")


def _select(common: dict[str, Any], options: list[Any], value: Any, format_func: Any) -> Any:
    return st.selectbox(
        **common, options=options, index=options.index(value), format_func=format_func
    )


def _number(
    common: dict[str, Any],
    value: Any,
    kind: type,
    optional: bool,
    bounds: tuple[Any, Any],
    field: Any,
    placeholder: str | None,
    *,
    bounded: bool,
) -> Any:
    low, high = (None if bound is None else kind(bound) for bound in bounds)
    typical, log = declaration(field)["typical"], bool(declaration(field)["log"])
    sliding = log or typical or (low is not None and high is not None)
    if kind is float and sliding and not optional:
        return _slider(common, float(value), low, high, field, bounded=bounded)
    # a box whose default is a number cannot be emptied: the present value comes from the session
    if optional:
        if common["key"] not in st.session_state:
            st.session_state[common["key"]] = value
        value = None
    step, shown = (1, None) if kind is int else (None, "%.10g")
    common |= {"min_value": low, "max_value": high} if bounded else {}
    return st.number_input(**common, value=value, step=step, format=shown, placeholder=placeholder)


def slider_values(model: type[Params], name: str, value: float, key: str) -> list[float] | None:
    """List the values of the logarithmic slider with this key.

    None for a field whose slider is evenly spaced.
    """
    field = model.model_fields[name]
    low, high = _bounds(schemas(model)[name])
    return (
        _decades(value, key, low, high, declaration(field)["typical"])
        if declaration(field)["log"]
        else None
    )


def _decades(
    value: float, key: str, low: float | None, high: float | None, typical: Any
) -> list[float]:
    """Return the values of a logarithmic slider; the one that it began with stays among them."""
    began = st.session_state.setdefault(f"{key}-began", value)
    decades = [m * 10.0**e for e in range(-6, 5) for m in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8)]
    first, last = typical or (low if low is not None else 1e-6, high if high is not None else 1e4)
    zero = {0.0} if first <= 0 else set()
    first = first if first > 0 else last * 1e-4
    return sorted({round(d, 12) for d in decades if first <= d <= last} | zero | {began, value})


def _slider(
    common: dict[str, Any], value: float, low: Any, high: Any, field: Any, *, bounded: bool
) -> float:
    """Draw a slider over the typical range, extended to hold the present value."""
    if declaration(field)["log"]:
        options = _decades(value, common["key"], low, high, declaration(field)["typical"])
        return float(
            st.select_slider(**common, options=options, value=value, format_func=lambda v: f"{v:g}")
        )
    first, last = _ends(value, (low, high), field)
    if last - first > 100:
        common |= {"min_value": low, "max_value": high} if bounded else {}
        return float(st.number_input(**common, value=value, format="%.10g"))
    step = 1e-4 if last - first <= 0.02 else 0.01 if last - first <= 2 else 0.05
    shown = "%.4f" if step < 0.01 else "%.2f"
    low, high = float(first), float(last)
    return float(
        st.slider(**common, min_value=low, max_value=high, value=value, step=step, format=shown)
    )


def _table(
    common: dict[str, Any], value: Any, names: dict[str, list[str]], schema: dict[str, Any]
) -> list[list[float]]:
    """Draw a table of numbers with the ``rows`` and ``columns`` that the field names."""
    cell = schema
    while inner := cell.get("items") or next(iter(cell.get("prefixItems", [])), None):
        cell = inner
    low, high = _bounds(cell)
    shown = "%.2f" if high is not None and high <= 1 else None
    column = st.column_config.NumberColumn(
        min_value=low, max_value=high, format=shown, required=True
    )
    st.caption(f"{common['label']}: {common['help']}")
    frame = pd.DataFrame(
        [list(row) for row in value], index=names["rows"], columns=names["columns"], dtype=float
    )
    config = dict.fromkeys(names["columns"], column)
    edited = st.data_editor(frame, column_config=config, key=common["key"], height="content")
    return [[float(cell) for cell in row] for row in edited.to_numpy()]


def _accepted(model: type[Params], name: str, entered: Any, value: Any, key: str) -> Any:
    """Return what was entered if the field accepts it.

    Else explain below the widget and return the last value.
    """
    last = f"{key}-accepted"
    try:
        model.model_validate({name: entered})
    except ValidationError as error:
        # otherwise several fields are at odds: refused when it is run
        if error.errors(include_url=False)[0]["loc"]:
            value = st.session_state.get(last, value)
            kept = escape_markdown(_present(value))
            st.markdown(
                f":small[:red[{escape_markdown(refusal(error, model))}.] The value stays {kept}.]"
            )
            return value
    st.session_state[last] = entered
    return entered


def _present(value: Any) -> str:
    if value is None or isinstance(value, str):
        return f"'{value}'" if value else "empty"
    flat = isinstance(value, (tuple, list)) and all(
        isinstance(entry, (int, float, str)) for entry in value
    )
    return ", ".join(map(_spelled, value)) if flat else "as it was"


def _parsed(text: str, *, numbers: bool) -> list[Any]:
    """Split '64, 32' into entries; what is not a number is left for the validation to refuse."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [_as_number(part) for part in parts] if numbers else list(parts)


def _as_number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _from_json(text: str) -> Any:
    """Read JSON; what is not JSON is left as text for the validation to refuse."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _spelled(entry: Any) -> str:
    return f"{entry:g}" if isinstance(entry, float) and float(f"{entry:g}") == entry else str(entry)


def shown_value(value: Any) -> str:
    """Return a value as its widget shows it, short enough for one line."""
    return (
        f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else _spoken(_spelled(value))
    )


def _spoken(option: Any) -> str:
    return str(option).replace("_", " ")
