"""Declare one swept parameter, or several that move together: values as a list, or as a range with
more values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import model_validator

from bandits.base.formatting import short
from bandits.base.params import Params, param

Value = float | int | str | bool | None
_NAME = "[a-z0-9_]{1,40}"
_PATH = rf"^(simulator|agents\.0(\.guards\.[0-9])?)\.{_NAME}(\+{_NAME}){{0,3}}$"
# between the names, and the values, of parameters that move together
JOINT = "+"
# the + of 1e+3 belongs to the number
_BETWEEN = re.compile(r"(?<!\d[eE])\+")


class Axis(Params):
    """One swept parameter and its values, given as a list or as a range.

    Parameters of one owner can move together: the path ``agents.0.sharing+prior`` takes the values
    ``per_arm+category`` and ``shared+zero``, and a sweep has points for these pairs only.

    Raises
    ------
    pydantic.ValidationError
        If neither or both of list and range are given, if there are fewer than two values, or if
        the range is invalid.
    """

    path: str = param(
        ...,
        title="Parameter",
        pattern=_PATH,
        help="Path of the parameter in the experiment, such as agents.0.alpha, simulator.noise or "
        "agents.0.guards.0.epsilon; agents.0.sharing+prior for two that move together.",
    )
    values: tuple[Value, ...] | None = param(
        None, title="Values", max_length=64, strict=False, help="The values to try, at least two."
    )
    low: float | None = param(None, title="From", help="Lower end of the range.")
    high: float | None = param(None, title="To", help="Upper end of the range.")
    number: int = param(
        9,
        title="Number of values",
        ge=2,
        le=64,
        help="Number of values in the range; more values give a finer grid and take longer.",
    )
    scale: Literal["linear", "log"] = param(
        "linear",
        title="Scale",
        help=(
            "linear: equally spaced values; log: equal ratios, for positive ranges over several "
            "orders of magnitude."
        ),
    )
    extra: tuple[float, ...] = param(
        (),
        title="Additional values",
        max_length=16,
        strict=False,
        exclude_if=lambda values: not values,
        help="Values besides those of the range, such as 0 on a log scale.",
    )

    @property
    def name(self) -> str:
        """Name of the parameter, without its path; of several, joined by `JOINT`."""
        return self.path.rpartition(".")[2]

    @property
    def names(self) -> list[str]:
        """Names of the parameters: one, or several that move together."""
        return self.name.split(JOINT)

    def path_of(self, name: str) -> str:
        """Return the path of one of its parameters."""
        return f"{self.path.rpartition('.')[0]}.{name}"

    def assigned(self, value: Value) -> dict[str, Value]:
        """Return the value of each parameter at a value of the axis.

        Raises
        ------
        ValueError
            If the value does not have one part for each parameter.
        """
        if len(self.names) == 1:
            return {self.name: value}
        parts = _BETWEEN.split(str(value))
        if len(parts) != len(self.names):
            raise ValueError(
                f"axes: {self.path} takes the value {short(value)}; it must be {len(self.names)} "
                f"values joined by {JOINT}, one for each parameter"
            )
        return dict(zip(self.names, map(plain_value, parts), strict=True))

    @property
    def guard(self) -> int | None:
        """Position of the guard that the parameter belongs to.

        None if it belongs to the agent or the simulator.
        """
        parts = self.path.split(".")
        return int(parts[3]) if len(parts) == 5 else None

    @property
    def spoken(self) -> str:
        """Name of the parameter, with its guard where it belongs to one: guards.0.epsilon."""
        return self.name if self.guard is None else f"guards.{self.guard}.{self.name}"

    @model_validator(mode="after")
    def _check_values(self) -> Axis:
        if (self.values is None) == (self.low is None or self.high is None):
            raise ValueError(f"axes: {self.path} must have either values, or low and high")
        if self.values is not None:
            if len(self.values) < 2:
                raise ValueError(
                    f"axes: {self.path} has {len(self.values)} values; a sweep needs at least 2"
                )
            settings = [
                tuple((isinstance(v, bool), v) for v in self.assigned(value).values())
                for value in self.values
            ]
            if len(set(settings)) < len(settings):
                raise ValueError(f"axes: {self.path} has a value twice")
            if self.extra:
                raise ValueError(
                    f"axes: {self.path} has values and extra; add the extra ones to values"
                )
        elif self.low is not None and self.high is not None:
            if not self.low < self.high:
                raise ValueError(
                    f"axes: {self.path} goes from {self.low:g} to {self.high:g}; low must be below "
                    "high"
                )
            if self.scale == "log" and self.low <= 0:
                raise ValueError(
                    f"axes: {self.path} begins at {self.low:g}; on a log scale it must begin above "
                    "0"
                )
        return self

    def limits(self, integers: bool) -> tuple[Value, ...]:
        """Return all values of a list, or the two ends of a range.

        One value if a range holds a single integer.
        """
        if self.values is not None or self.low is None or self.high is None:
            return self.values or ()
        if not integers:
            return float(f"{self.low:.6g}"), float(f"{self.high:.6g}")
        low, high = math.ceil(self.low), math.floor(self.high)
        return (low, high) if low < high else (low,)

    def grid_values(self, integers: bool) -> tuple[Value, ...]:
        """Return the values of the axis, rounded to six digits, or to distinct integers if
        ``integers``.
        """
        if self.values is not None or self.low is None or self.high is None:
            return self.values or ()
        space = np.geomspace if self.scale == "log" else np.linspace
        numbers = rounded(space(self.low, self.high, self.number).tolist(), integers)
        return (
            tuple(sorted({*numbers, *rounded(self.extra, integers)}))
            if self.extra
            else tuple(numbers)
        )


def plain_value(text: str) -> Value:
    """Parse a JSON number, true, false or null; return any other text unchanged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, (int, float, bool)) or value is None else text


def rounded(numbers: Sequence[float], integers: bool) -> list[float] | list[int]:
    """Round numbers to six digits, or to distinct integers if ``integers``."""
    six_digits = [float(f"{v:.6g}") for v in numbers]
    return list(dict.fromkeys(round(v) for v in six_digits)) if integers else six_digits
