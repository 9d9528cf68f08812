"""Read a log from the columns of a user's table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.row_names import ROWS, RowNames
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.tables.raw_table import RawTable

from .log import MAX_CELLS, MAX_ROWS, DecisionLog, TextArray

ROLES = (
    "action",
    "reward",
    "propensity",
    "propensities",
    "position",
    "event_id",
    "segment",
    "time",
    "candidates",
    "weight",
    "features",
)
USUAL_NAMES = {
    "action": ("action", "item_id", "item", "arm", "choice", "product", "variant"),
    "reward": ("reward", "click", "clicked", "clicks", "outcome", "conversion", "y"),
    "propensity": ("propensity", "propensity_score", "pscore", "probability", "prob", "p"),
    "propensities": ("propensities",),
    "position": ("position", "slot", "rank"),
    "event_id": ("event_id", "request_id", "impression_id"),
    "segment": ("segment", "group", "persona"),
    "time": ("time", "timestamp", "datetime", "date"),
    "candidates": ("candidates",),
    "weight": ("row_weight", "sample_weight"),
}
# a column named weight may be that of a parcel
DEFAULT_NAMES = {role: role for role in ROLES} | {"weight": "row_weight"}
FEATURE_NAMES = ("feature", "user_feature", "x_", "context")
MAX_CATEGORIES = 50
MAX_ACTIONS = 10_000


def read_map(text: str) -> dict[str, str]:
    """Parse a mapping of roles to columns, ``action=item_id,reward=click``.

    Several features are separated by ``|``.

    Raises
    ------
    UserError
        A part is not of the form ROLE=COLUMN, or a role is unknown or given twice.
    """
    mapping: dict[str, str] = {}
    for part in text.split(","):
        role, equals, column = part.strip().partition("=")
        if not equals or not column:
            raise UserError(f"map: each part must be ROLE=COLUMN; got '{short(part)}'")
        if role not in ROLES:
            raise UserError(f"map: '{short(role)}' is no role; allowed are {', '.join(ROLES)}")
        if role in mapping:
            raise UserError(f"map: the role {role} appears twice")
        mapping[role] = column
    return mapping


def suggested_map(columns: Sequence[str]) -> dict[str, str]:
    """Guess which columns have which roles, from the names that logs often have.

    Returns
    -------
    dict
        Column by role; columns that nothing is known of have none. Features are separated by ``|``.
    """
    by_name = {name.strip().lower().replace(" ", "_"): name for name in reversed(columns)}
    found = {}
    for role, usual in USUAL_NAMES.items():
        if name := next(
            (by_name[usual_name] for usual_name in usual if usual_name in by_name), None
        ):
            found[role] = name
    features = [
        name
        for name in columns
        if name.lower().startswith(FEATURE_NAMES) and name not in found.values()
    ]
    return found | ({"features": "|".join(features)} if features else {})


def from_frame(frame: Any, mapping: Mapping[str, str] | None = None) -> DecisionLog:
    """Make a log of a pandas data frame, as `from_table` does."""
    import pyarrow as pa

    def array(values: Any) -> pa.Array:
        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # of several types
            return pa.array(
                [None if empty else str(v) for v, empty in zip(values, values.isna(), strict=True)]
            )

    columns = [array(frame.iloc[:, i]) for i in range(frame.shape[1])]
    return from_table(
        RawTable(pa.table(columns, names=list(map(str, frame.columns))), ROWS), mapping
    )


def from_table(table: RawTable, mapping: Mapping[str, str] | None = None) -> DecisionLog:
    """Make a log of a table.

    Columns have the names of their roles (`ROLES`) unless the mapping names others. Actions are
    numbered in the order of their names; whole numbers in numerical order. Without a vector of
    propensities, actions that no row shows or lists as candidates are not known. Texts of features
    become indicators of their 50 most frequent values. A weight is how many decisions a row stands
    for; its column is named ``row_weight`` unless the mapping names another.

    Parameters
    ----------
    table : RawTable
    mapping : mapping of str to str, optional
        Role: name of the column; an empty name: no column has this role.

    Raises
    ------
    UserError
        A column is missing, or a value is not allowed; the sentence names row and column.
    """
    mapping, n, at = dict(mapping or {}), table.data.num_rows, table.rows
    place = _places(table.names, mapping)
    if not 1 <= n <= MAX_ROWS:
        raise UserError(f"a log must have 1 to {MAX_ROWS:,} rows; got {n:,}")

    def numbers(role: str) -> FloatArray | None:
        return table.numbers(place[role]) if role in place else None

    def texts(role: str) -> TextArray | None:
        return table.texts(place[role]) if role in place else None

    vectors = _vectors(table.cells(place["propensities"]), at) if "propensities" in place else None
    listed = (
        [_cell(value) for value in table.cells(place["candidates"])]
        if "candidates" in place
        else None
    )
    names, actions = _actions(table.texts(place["action"]), listed, vectors, at)
    wanted = mapping["features"].split("|") if mapping.get("features") else []
    features, feature_names = _features(table, wanted)
    rest = [name for name in table.names if name not in {*place.values(), *wanted}]
    return DecisionLog(
        actions=actions,
        rewards=table.numbers(place["reward"]),
        names=names,
        propensities=numbers("propensity"),
        distributions=vectors,
        available=None
        if listed is None
        else _available(listed, {name: k for k, name in enumerate(names)}),
        features=features,
        feature_names=feature_names,
        positions=_whole(numbers("position"), at, "position"),
        segments=texts("segment"),
        event_ids=_event_ids(texts("event_id"), at),
        times=texts("time"),
        places=at,
        row_weights=numbers("weight"),
        columns=table.numbers_of(rest),
    )


def _places(names: Sequence[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each role that has one."""
    if twice := next((name for name, times in Counter(names).items() if times > 1), ""):
        raise UserError(f"column '{short(twice)}': appears twice")
    for role, column in mapping.items():
        wanted = column.split("|") if role == "features" and column else [column] if column else []
        if missing := next((name for name in wanted if name not in names), None):
            raise UserError(f"column '{short(missing)}' for {role}: the table has {_listed(names)}")
    wanted_by = DEFAULT_NAMES | dict(mapping)
    place = {role: column for role, column in wanted_by.items() if column in names}
    for role in ("action", "reward"):
        if role not in place:
            raise UserError(
                f"column '{role}' is required; the table has {_listed(names)}; name it by map"
            )
    return place


def _actions(
    shown: TextArray, listed: list[list[str]] | None, vectors: FloatArray | None, at: RowNames
) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the actions, and the index of each that was shown, int64 (n,)."""
    import pandas as pd

    codes, found = pd.factorize(shown)
    if "" in found:
        i = int((shown == "").argmax())
        raise UserError(f"{at[i]}, action: is required; it is missing")
    if vectors is None:
        names = in_order({*found, *(name for row in listed or () for name in row)})
    else:
        names = tuple(map(str, range(vectors.shape[1])))
    if len(names) > MAX_ACTIONS:
        raise UserError(
            f"action: a log must have at most {MAX_ACTIONS:,} different actions; got {len(names):,}"
        )
    index = {name: k for k, name in enumerate(names)}
    actions: IntArray = np.array([index.get(name, -1) for name in found], np.int64)[codes]
    if (actions < 0).any():
        i = int((actions < 0).argmax())
        allowed = f"0 to {len(names) - 1}"
        raise UserError(
            f"{at[i]}, action: must be its place in propensities, {allowed}; got {short(shown[i])}"
        )
    return names, actions


def _features(table: RawTable, wanted: Sequence[str]) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Return numbers unchanged and texts as indicators of their most frequent values but one.

    Returns
    -------
    features : float64 (n, D) or None
    names : tuple of str (D,)
    """
    import pandas as pd

    columns: dict[str, FloatArray] = {}
    numbers = table.numbers_of(wanted)
    for name in wanted:
        if name in numbers:
            columns[name] = numbers[name]
        else:
            text = pd.Series(table.texts(name), dtype=object)
            for value in sorted(text[text != ""].value_counts().index[:MAX_CATEGORIES])[1:]:
                columns[f"{name}={value}"] = (text == value).to_numpy(np.float64)
    return (np.column_stack(list(columns.values())) if columns else None), tuple(columns)


def _event_ids(ids: TextArray | None, at: RowNames) -> TextArray | None:
    """Give each row without an id one of its own."""
    if ids is None:
        return None
    missing = np.flatnonzero(ids == "").tolist()
    ids[missing] = [at[i] for i in missing]
    return ids


def _whole(values: FloatArray | None, at: RowNames, column: str) -> IntArray | None:
    """Return whole numbers."""
    if values is None:
        return None
    wrong = ~(np.isfinite(values) & (values == np.round(values)))
    if wrong.any():
        i = int(wrong.argmax())
        raise UserError(f"{at[i]}, {column}: must be a whole number; got {values[i]}")
    return values.astype(np.int64)


def _text(value: object) -> str:
    return (
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    )


def in_order(names: set[str]) -> tuple[str, ...]:
    """Sort names; whole numbers numerically."""
    whole = all(name.lstrip("-").isdigit() and len(name) < 19 for name in names)
    return tuple(sorted(names, key=lambda name: (int(name), name)) if whole else sorted(names))


def _cell(value: object) -> list[Any]:
    """Return the entries of a cell: a list, a JSON list, or texts separated by ``|``."""
    if isinstance(value, list | tuple | np.ndarray):
        return [_text(entry) for entry in value]
    text = str(value).strip()
    if text.startswith("["):
        try:
            return [_text(entry) for entry in json.loads(text)]
        except (ValueError, TypeError, RecursionError):
            # .5 is no number of JSON
            return [part.strip() for part in text.strip("[]").split(",")]
    return [part.strip() for part in text.split("|")]


def _vectors(cells: Sequence[Any], at: RowNames) -> FloatArray:
    """Return the vectors of propensities, float64 (n, K)."""
    rows = [_cell(value) for value in cells]
    K = len(rows[0])
    for i, row in enumerate(rows):
        if len(row) != K:
            raise UserError(
                f"{at[i]}, propensities: must have {K} entries as the first row has; got {len(row)}"
            )
        try:
            rows[i] = [float(entry) for entry in row]
        except ValueError as error:
            raise UserError(f"{at[i]}, propensities: entries must be numbers; {error}") from error
    return np.array(rows, np.float64)


def _available(listed: list[list[str]], index: Mapping[str, int]) -> BoolArray:
    """Return the candidates as indicators, bool (n, K)."""
    if len(listed) * len(index) > MAX_CELLS:
        raise UserError(
            f"candidates: rows times actions must be at most {MAX_CELLS:,}; "
            f"got {len(listed) * len(index):,}"
        )
    available = np.zeros((len(listed), len(index)), bool)
    for i, row in enumerate(listed):
        available[i, [index[name] for name in row if name in index]] = True
    return available


def _listed(columns: Any) -> str:
    names = [short(str(name), 30) for name in columns]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
