"""Read a log from the columns of a user's table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.row_names import ROWS, RowNames
from bandits.base.types import BoolArray, FloatArray, IntArray

from .log import MAX_CELLS, MAX_ROWS, DecisionLog

ROLES = (
    "action", "reward", "propensity", "propensities", "position", "event_id", "segment", "time", "candidates",
    "features",
)  # fmt: skip
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
}
FEATURE_NAMES = ("feature", "user_feature", "x_", "context")
MAX_CATEGORIES = 50
MAX_ACTIONS = 10_000


def read_map(text: str) -> dict[str, str]:
    """Parse a mapping of roles to columns, ``action=item_id,reward=click``; several features are separated by ``|``.

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

    Parameters
    ----------
    columns : sequence of str

    Returns
    -------
    dict
        Column by role; columns that nothing is known of have none. Features are separated by ``|``.
    """
    by_name = {name.strip().lower().replace(" ", "_"): name for name in reversed(columns)}
    found = {}
    for role, usual in USUAL_NAMES.items():
        if name := next((by_name[usual_name] for usual_name in usual if usual_name in by_name), None):
            found[role] = name
    features = [name for name in columns if name.lower().startswith(FEATURE_NAMES) and name not in found.values()]
    return found | ({"features": "|".join(features)} if features else {})


def from_frame(frame: Any, mapping: Mapping[str, str] | None = None, *, places: RowNames = ROWS) -> DecisionLog:
    """Make a log of a pandas data frame.

    Columns have the names of their roles (`ROLES`) unless the mapping names others. Actions are numbered in the order
    of their names; whole numbers in numerical order. Without a vector of propensities, actions that no row shows or
    lists as candidates are not known. Texts of features become indicators of their 50 most frequent values.

    Parameters
    ----------
    frame : pandas.DataFrame
    mapping : mapping of str to str, optional
        Role: name of the column; an empty name: no column has this role.
    places : RowNames
        Names of the rows in their file, for messages.

    Raises
    ------
    UserError
        A column is missing, or a value is not allowed; the sentence names row and column.
    """
    mapping = dict(mapping or {})
    if not frame.columns.is_unique:
        raise UserError(f"column '{short(str(frame.columns[frame.columns.duplicated()][0]))}': appears twice")
    for role, column in mapping.items():
        wanted = column.split("|") if role == "features" and column else [column] if column else []
        if missing := next((name for name in wanted if name not in frame.columns), None):
            raise UserError(f"column '{short(missing)}' for {role}: the table has {_listed(frame.columns)}")
    place = {role: mapping.get(role, role) for role in ROLES if mapping.get(role, role) in frame.columns}
    for role in ("action", "reward"):
        if role not in place:
            raise UserError(f"column '{role}' is required; the table has {_listed(frame.columns)}; name it by map")
    if not 1 <= len(frame) <= MAX_ROWS:
        raise UserError(f"a log must have 1 to {MAX_ROWS:,} rows; got {len(frame):,}")

    def numbers(role: str) -> FloatArray | None:
        return _numbers(frame[place[role]], places, place[role]) if role in place else None

    def texts(role: str) -> Any:
        return frame[place[role]].astype(str).to_numpy(object) if role in place else None

    vectors = _vectors(frame[place["propensities"]], places) if "propensities" in place else None
    shown = _names(frame[place["action"]], places)
    listed = [_cell(value) for value in frame[place["candidates"]]] if "candidates" in place else None
    if vectors is None:
        names = _in_order({*shown, *(name for row in listed or () for name in row)})
    else:
        names = tuple(map(str, range(vectors.shape[1])))
    if len(names) > MAX_ACTIONS:
        raise UserError(f"action: a log must have at most {MAX_ACTIONS:,} different actions; got {len(names):,}")
    index = {name: k for k, name in enumerate(names)}
    outside = next((i for i, name in enumerate(shown) if name not in index), None)
    if outside is not None:
        raise UserError(f"{places[outside]}, action: must be its place in propensities, 0 to {len(names) - 1}; "
                        f"got {short(shown[outside])}")  # fmt: skip
    actions = np.fromiter((index.get(name, -1) for name in shown), np.int64, len(shown))
    wanted = mapping["features"].split("|") if mapping.get("features") else []
    features, feature_names = encode_features(frame, wanted, places)
    rest = [name for name in frame.columns if name not in {*place.values(), *wanted}]
    return DecisionLog(
        actions=actions, rewards=_required(numbers("reward")), names=names, propensities=numbers("propensity"),
        distributions=vectors, available=None if listed is None else _available(listed, index), features=features,
        feature_names=feature_names, positions=_whole(numbers("position"), places, "position"),
        segments=texts("segment"), event_ids=texts("event_id"), times=texts("time"), places=places,
        columns={
            str(name): frame[name].to_numpy(np.float64, na_value=np.nan)
            for name in rest if frame[name].dtype.kind in "iufb"
        },
    )  # fmt: skip


def encode_features(frame: Any, names: list[str], at: RowNames) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Return numbers unchanged and texts as indicators of their most frequent values but one.

    Returns
    -------
    features : float64 (n, D) or None
    names : tuple of str (D,)

    Raises
    ------
    UserError
        A number is missing or not finite.
    """
    columns: dict[str, FloatArray] = {}
    for name in names:
        series = frame[name]
        if series.dtype.kind in "iufb":
            columns[name] = _numbers(series, at, name)
        else:
            text = series.astype(str)
            for value in sorted(text.value_counts().index[:MAX_CATEGORIES])[1:]:
                columns[f"{name}={value}"] = (text == value).to_numpy(np.float64)
    return (np.column_stack(list(columns.values())) if columns else None), tuple(columns)


def _numbers(series: Any, at: RowNames, column: str) -> FloatArray:
    """Return a column of numbers.

    Raises
    ------
    UserError
        A cell holds something else than a number, or nothing where the column is a text.
    """
    import pandas as pd

    if series.dtype.kind in "mM":
        raise UserError(f"{at[0]}, {column}: must be a number; got '{short(str(series.iloc[0]))}'")
    if series.dtype.kind not in "iufb":
        given = pd.to_numeric(series, errors="coerce")
        wrong = given.isna().to_numpy() & series.notna().to_numpy()
        if wrong.any():
            i = int(wrong.argmax())
            raise UserError(f"{at[i]}, {column}: must be a number; got '{short(str(series.iloc[i]))}'")
        series = given
    values: FloatArray = series.to_numpy(np.float64, na_value=np.nan)
    return values


def _whole(values: FloatArray | None, at: RowNames, column: str) -> IntArray | None:
    """Return whole numbers.

    Raises
    ------
    UserError
        A number is missing or has a fraction.
    """
    if values is None:
        return None
    wrong = ~(np.isfinite(values) & (values == np.round(values)))
    if wrong.any():
        i = int(wrong.argmax())
        raise UserError(f"{at[i]}, {column}: must be a whole number; got {values[i]}")
    return values.astype(np.int64)


def _names(series: Any, at: RowNames) -> list[str]:
    """Return the actions as texts, whole numbers without a fraction.

    Raises
    ------
    UserError
        An action is missing.
    """
    missing = series.isna().to_numpy()
    if missing.any():
        raise UserError(f"{at[int(missing.argmax())]}, action: is required; it is missing")
    return [_text(value) for value in series.tolist()]


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _in_order(names: set[str]) -> tuple[str, ...]:
    """Sort names; whole numbers numerically."""
    whole = all(name.lstrip("-").isdigit() and len(name) < 19 for name in names)
    return tuple(sorted(names, key=int) if whole else sorted(names))


def _cell(value: object) -> list[Any]:
    """Return the entries of a cell: a list, a JSON list, or texts separated by ``|``."""
    if isinstance(value, list | tuple | np.ndarray):
        return [_text(entry) for entry in value]
    text = str(value).strip()
    if text.startswith("["):
        try:
            return [_text(entry) for entry in json.loads(text)]
        except (ValueError, TypeError, RecursionError):  # .5 is no number of JSON
            return [part.strip() for part in text.strip("[]").split(",")]
    return [part.strip() for part in text.split("|")]


def _vectors(series: Any, at: RowNames) -> FloatArray:
    """Return the vectors of propensities, float64 (n, K).

    Raises
    ------
    UserError
        A vector has another length than the first, or an entry is not a number.
    """
    rows = [_cell(value) for value in series]
    K = len(rows[0])
    for i, row in enumerate(rows):
        if len(row) != K:
            raise UserError(f"{at[i]}, propensities: must have {K} entries as the first row has; got {len(row)}")
        try:
            rows[i] = [float(entry) for entry in row]
        except ValueError as error:
            raise UserError(f"{at[i]}, propensities: entries must be numbers; {error}") from error
    return np.array(rows, np.float64)


def _available(listed: list[list[str]], index: Mapping[str, int]) -> BoolArray:
    """Return the candidates as indicators, bool (n, K).

    Raises
    ------
    UserError
        The matrix would be too large.
    """
    if len(listed) * len(index) > MAX_CELLS:
        raise UserError(f"candidates: rows times actions must be at most {MAX_CELLS:,}; "
                        f"got {len(listed) * len(index):,}")  # fmt: skip
    available = np.zeros((len(listed), len(index)), bool)
    for i, row in enumerate(listed):
        available[i, [index[name] for name in row if name in index]] = True
    return available


def _required(values: FloatArray | None) -> FloatArray:
    if values is None:
        raise UserError("column 'reward' is required")
    return values


def _listed(columns: Any) -> str:
    names = [short(str(name), 30) for name in columns]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
