"""Turn contexts as users have them (dictionaries, arrays, rows of a data frame) into features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import listed, short
from bandits.base.types import FloatArray

# columns of a category whose values are not stated
VALUES = 16
# standard deviations beyond which a scaled number is cut off
LIMIT = 5.0
# largest size of a number; the square of a larger one may be no number
LARGEST = 1e100
# columns of a schema
MAX_COLUMNS = 10_000
# characters of a category's value
MAX_VALUE = 200


class Schema:
    """Columns of a context, and how they become features.

    Numbers are scaled by the mean and standard deviation of the contexts seen so far, and cut off
    at 5. A category becomes one indicator per value, and one for all values that are not known. A
    missing number (None or NaN) counts as the mean, a missing category sets no indicator.

    Parameters
    ----------
    columns : mapping of str to "number", "category" or a list of values; or int
        An int is the length of an array. A category without a list of values has room for 16: they
        are learned in the order in which they come.
    scale, constant : bool
        Scale the numbers; add a last feature that is always 1.

    Raises
    ------
    UserError
        A column is stated in another way.
    """

    def __init__(
        self,
        columns: Mapping[str, str | Sequence[Any]] | int,
        *,
        scale: bool = True,
        constant: bool = True,
    ) -> None:
        self.scale, self.constant = scale, constant
        self.is_array = isinstance(columns, int) and not isinstance(columns, bool)
        stated = dict.fromkeys(map(str, range(columns)), "number") if self.is_array else columns  # type: ignore[arg-type]
        if not isinstance(stated, Mapping):
            raise UserError(
                f"features is {short(columns)}; it must be a dictionary of columns or a number of "
                "features"
            )
        self.numbers: list[str] = []
        self.values: dict[str, list[str]] = {}
        self.open: set[str] = set()
        for name, kind in stated.items():
            self._add(name, kind)
        if not self.n_features:
            raise UserError("features states no column; it needs at least one, or the constant")
        if self.n_features > MAX_COLUMNS:
            raise UserError(
                f"the contexts have {self.n_features:,} features; at most {MAX_COLUMNS:,} are "
                "allowed"
            )
        # numbers seen, their means, and sums of squared distances (Welford)
        n = len(self.numbers)
        self.count, self.mean, self.squares = np.zeros(n), np.zeros(n), np.zeros(n)

    def _add(self, name: Any, kind: Any) -> None:
        if not isinstance(name, str):
            raise UserError(f"features.{short(name)}: the name of a column must be a text")
        if kind == "number":
            self.numbers.append(name)
        elif kind == "category":
            self.values[name] = []
            self.open.add(name)
        elif isinstance(kind, list | tuple) and kind and len(set(map(str, kind))) == len(kind):
            self.values[name] = list(map(str, kind))
        else:
            raise UserError(
                f"features.{short(name)} is {short(kind)}; it must be 'number', 'category' or a "
                "list of different values"
            )

    @classmethod
    def of(cls, context: Any, **options: bool) -> Schema:
        """Infer the columns from a context: texts are categories, everything else numbers."""
        if (named := as_mapping(context)) is None:
            return cls(as_array(context).shape[-1], **options)
        kinds: dict[str, str] = {}
        for name, value in named.items():
            if is_missing(value):
                raise UserError(
                    f"the first context leaves '{short(name)}' empty, so that its type is unknown; "
                    "state features"
                )
            kinds[name] = "category" if isinstance(value, str) else "number"
        return cls(kinds, **options)

    @property
    def names(self) -> list[str]:
        """Names of the columns, numbers first."""
        return [*self.numbers, *self.values]

    @property
    def widths(self) -> dict[str, int]:
        """Indicators of each category, the one for unknown values included."""
        return {
            name: (VALUES if name in self.open else len(values)) + 1
            for name, values in self.values.items()
        }

    @property
    def columns(self) -> Any:
        """The columns as they were stated."""
        if self.is_array:
            return len(self.numbers)
        kinds = {name: "category" if name in self.open else v for name, v in self.values.items()}
        return {**dict.fromkeys(self.numbers, "number"), **kinds}

    @property
    def n_features(self) -> int:
        """Features of a context."""
        return len(self.numbers) + sum(self.widths.values()) + self.constant

    def features(self, context: Any, *, observe: bool = True) -> FloatArray:
        """Return the features of a context, float64 (D,), or (K, D) of an array with one row per
        candidate.

        Parameters
        ----------
        context : mapping, array, or row of a data frame
        observe : bool
            Add the context to the statistics, and its new values to open categories, first.

        Raises
        ------
        UserError
            The columns are not those of the schema, or a value has the wrong type.
        """
        if self.is_array:
            rows = as_array(context)
            if rows.shape[-1] != len(self.numbers):
                raise UserError(
                    f"the context has {rows.shape[-1]} numbers; this policy has "
                    f"{len(self.numbers)} (features)"
                )
            found = self._scaled(rows, observe=observe) if self.scale else np.nan_to_num(rows)
            ones = np.ones((*found.shape[:-1], 1))
            return np.concatenate([found, ones], axis=-1) if self.constant else found
        named = self._checked(context)
        numbers = np.array([_number(name, named[name]) for name in self.numbers], np.float64)
        if self.scale:
            numbers = self._scaled(numbers, observe=observe)
        parts = [np.nan_to_num(numbers, nan=0.0)]
        for name, width in self.widths.items():
            parts.append(self._indicators(name, named[name], width, observe=observe))
        return np.concatenate([*parts, np.ones(int(self.constant))])

    def _checked(self, context: Any) -> Mapping[str, Any]:
        named = as_mapping({} if context is None else context)
        if named is None:
            raise UserError(
                f"the context is {short(context)}; this policy expects the columns "
                f"{listed(self.names)}"
            )
        if more := sorted(set(named) - set(self.names)):
            raise UserError(
                f"the context has the column '{short(more[0])}', which is not one of this "
                f"policy's: {short(listed(self.names), 200)}"
            )
        if less := [name for name in self.names if name not in named]:
            raise UserError(
                f"the context lacks the column '{short(less[0])}'; give None where it is unknown"
            )
        return named

    def _scaled(self, numbers: FloatArray, *, observe: bool) -> FloatArray:
        """Scale numbers (..., n); those that are missing become 0."""
        if observe:
            for row in np.atleast_2d(numbers):
                known = np.isfinite(row)
                self.count += known
                distance = np.where(known, row - self.mean, 0.0)
                self.mean += distance / np.maximum(self.count, 1)
                self.squares += distance * np.where(known, row - self.mean, 0.0)
        deviation = np.sqrt(self.squares / np.maximum(self.count, 1))
        # the mean of equal numbers can differ from them by rounding
        flat = deviation <= 1e-9 * np.maximum(np.abs(self.mean), 1e-300)
        found = (numbers - self.mean) / np.where(flat, 1.0, deviation)
        found = np.clip(np.where(flat, 0.0, found), -LIMIT, LIMIT)
        return np.where(np.isnan(numbers), 0.0, found)

    def _indicators(self, name: str, value: Any, width: int, *, observe: bool) -> FloatArray:
        out, values = np.zeros(width), self.values[name]
        if is_missing(value):
            return out
        if isinstance(value, Mapping | list | tuple | np.ndarray) or len(str(value)) > MAX_VALUE:
            raise UserError(
                f"the column '{short(name)}' is {short(value)}; it must be one text or number of "
                f"at most {MAX_VALUE} characters"
            )
        text = str(value)
        if observe and name in self.open and text not in values and len(values) < VALUES:
            values.append(text)
        out[values.index(text) if text in values else width - 1] = 1.0
        return out

    # saving

    def to_data(self) -> dict[str, Any]:
        """Return the schema with its statistics as plain data."""
        statistics = {n: getattr(self, n).tolist() for n in ("count", "mean", "squares")}
        learned = {name: self.values[name] for name in sorted(self.open)}
        options = {"scale": self.scale, "constant": self.constant}
        return {"columns": self.columns, **options, "learned": learned, **statistics}

    def fresh(self) -> Schema:
        """Return the same columns without what was seen in them."""
        return Schema(self.columns, scale=self.scale, constant=self.constant)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Schema:
        """Return the schema that `to_data` described."""
        found = cls(data["columns"], scale=data["scale"], constant=data["constant"])
        found.values |= {name: list(values) for name, values in data["learned"].items()}
        for name in ("count", "mean", "squares"):
            getattr(found, name)[...] = data[name]
        return found


def as_mapping(context: Any) -> Mapping[str, Any] | None:
    """Return a dictionary, a row of a data frame (``iterrows`` or ``itertuples``) as a mapping;
    None for anything else.
    """
    if isinstance(context, Mapping):
        return context
    # pandas.Series, without importing pandas
    if hasattr(context, "to_dict") and hasattr(context, "index"):
        return {str(name): value for name, value in context.to_dict().items()}
    if hasattr(context, "_asdict"):
        return {name: value for name, value in context._asdict().items() if name != "Index"}
    return None


def as_array(context: Any) -> FloatArray:
    """Return numbers as float64 (D,) or (K, D).

    Raises
    ------
    UserError
        They are no numbers, not finite, or of another shape.
    """
    try:
        found = np.asarray(context, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"the context is {short(context)}; it must be a dictionary or an array of numbers"
        ) from None
    if found.ndim not in (1, 2) or not found.size:
        raise UserError(
            f"the context is an array of the shape {found.shape}; it must be (features,), or "
            "(candidates, features)"
        )
    if (np.abs(found) > LARGEST).any():
        raise UserError(
            f"the context has a number above {LARGEST:g} in size; give NaN where it is unknown"
        )
    return found


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _number(name: str, value: Any) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, bool | int | float | np.bool_ | np.number):
        # an int may be larger than any float
        with suppress(OverflowError):
            if abs(found := float(value)) <= LARGEST:
                return found
    raise UserError(
        f"the column '{short(name)}' is {short(value)}; it must be a finite number of at most "
        f"{LARGEST:g} in size, or None where it is unknown"
    )
