"""A slider of one parameter of an agent, for notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.params import Params, declaration, schemas


def slider(params: Params, name: str, draw: Callable[[Any], Any]) -> Any:
    """Make a slider of a parameter, with what ``draw`` returns for a value below it; see `Preview.interact`."""
    field, value = type(params).model_fields.get(name), getattr(params, name, None)
    if field is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{short(name)} is not a number that the agent has")
    try:
        import ipywidgets
        from IPython.display import display
    except ImportError:
        raise UserError("interact needs the package ipywidgets: pip install ipywidgets") from None

    def show(value: Any) -> None:
        display(draw(value))  # type: ignore[no-untyped-call]

    low, high = declaration(field)["sweep"] or declaration(field)["typical"] or _limits(type(params), name, value)
    common: dict[str, Any] = {"value": value, "description": name, "continuous_update": True}
    if declaration(field)["log"] and min(low, value) > 0:
        ends = {"min": math.log10(min(low, value)), "max": math.log10(max(high, value))}
        slider = ipywidgets.FloatLogSlider(**common, **ends, step=0.02)
    else:
        whole = isinstance(value, int)
        kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
        step = 1 if whole else (high - low) / 200
        slider = kind(**common, min=min(low, value), max=max(high, value), step=step)
    return ipywidgets.interactive(show, value=slider)


def _limits(model: type[Params], name: str, value: float) -> tuple[float, float]:
    """Return the bounds of a number; four times its value where it has none."""
    schema = schemas(model)[name]
    return schema.get("minimum", 0), schema.get("maximum", 4 * value or 1)
