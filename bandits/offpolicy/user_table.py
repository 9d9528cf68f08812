"""Read a log from the columns of a user's table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.memory import require_memory
from bandits.base.row_names import ROWS, RowNames
from bandits.base.types import BoolArray, FloatArray, IntArray
from bandits.tables.problems import Wrong
from bandits.tables.raw_table import RawTable

from .assembly import assembled
from .log import MAX_CELLS, MAX_ROWS, DecisionLog, TextArray

ROLES = (
    "action",
    "reward",
    "propensity",
    "propensities",
    "position",
    "event_id",
    "visit",
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
    "visit": ("visit",),
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

    Several features are separated by ``|``. A comma belongs to the name of a column unless another
    ROLE= follows.

    Raises
    ------
    UserError
        A part is not of the form ROLE=COLUMN, or a role is unknown or given twice.
    """
    mapping: dict[str, str] = {}
    # a column may have a comma in its name
    for part in re.split(r",(?=\s*\w+=)", text):
        role, equals, column = part.strip().partition("=")
        if not equals or not column:
            raise UserError(f"map: each part must be ROLE=COLUMN; got '{short(part)}'")
        if role not in ROLES:
            raise UserError(f"map: '{short(role)}' is no role; allowed are {', '.join(ROLES)}")
        if role in mapping:
            raise UserError(f"map: the role {role} appears twice")
        mapping[role] = column
    return mapping


def suggested_map(columns: Sequence[str], beginning: RawTable | None = None) -> dict[str, str]:
    """Guess which columns have which roles, from the names that logs often have.

    Parameters
    ----------
    columns : sequence of str
    beginning : RawTable, optional
        First rows of the table: where no name is usual, action and reward are guessed from
        their content.

    Returns
    -------
    dict
        Column by role, each once; columns that nothing is known of have none. Features are
        separated by ``|``.
    """
    by_name = {name.strip().lower().replace(" ", "_"): name for name in reversed(columns)}
    found = {}
    for role, usual in USUAL_NAMES.items():
        if name := next(
            (by_name[usual_name] for usual_name in usual if usual_name in by_name), None
        ):
            found[role] = name
    if beginning is not None:
        found |= _guessed(beginning, found)
    features = [
        name
        for name in columns
        if name.lower().startswith(FEATURE_NAMES)
        and name not in found.values()
        and not ("propensity_kind" in columns and name in OWN)
    ]
    return found | ({"features": "|".join(features)} if features else {})


def _guessed(table: RawTable, found: Mapping[str, str]) -> dict[str, str]:
    """Guess roles without a column from the content of those that have no role.

    An action has few values that repeat, as a text if there is one; a reward is a number that takes
    several values and is no probability.
    """
    free = [name for name in table.names if name not in found.values()]
    numbers = table.numbers_of(free)
    distinct = {name: len(set(table.texts(name).tolist())) for name in free}
    n = table.data.num_rows
    repeated = [name for name in free if 2 <= distinct[name] <= max(2, n // 4)]
    # a policy's own probabilities or another's: only a name states which
    chances = {
        name for name, x in numbers.items() if ((x > 0) & (x <= 1)).all() and (x % 1 > 0).any()
    }
    fits = {
        "action": [name for name in repeated if name not in numbers]
        + [name for name in repeated if name in numbers and (numbers[name] % 1 == 0).all()],
        "reward": [
            name for name in numbers if name not in chances and (1 < distinct[name] < n or n < 8)
        ],
    }
    guessed: dict[str, str] = {}
    for role, able in fits.items():
        if role not in found:
            left = [name for name in able if name not in guessed.values()]
            guessed |= {role: left[0]} if left else {}
    return guessed


def from_frame(
    frame: Any,
    mapping: Mapping[str, str] | None = None,
    *,
    skip: bool = False,
    pending: float | None = None,
) -> DecisionLog:
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
        RawTable(pa.table(columns, names=list(map(str, frame.columns))), ROWS),
        mapping,
        skip=skip,
        pending=pending,
    )


def from_table(
    table: RawTable,
    mapping: Mapping[str, str] | None = None,
    *,
    skip: bool = False,
    pending: float | None = None,
) -> DecisionLog:
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
    skip : bool
        Leave out rows that hold what is not allowed, and state how many in the notes.
    pending : float, optional
        What a missing reward counts as; by default such rows are left out, and the notes state
        how many.

    Raises
    ------
    UserError
        A column is missing.
    RowsError
        Rows hold what is not allowed; each sentence names row and column.
    """
    mapping, n, at = dict(mapping or {}), table.data.num_rows, table.rows
    place = _places(table.names, mapping)
    if not 1 <= n <= MAX_ROWS:
        raise UserError(f"a log must have 1 to {MAX_ROWS:,} rows; got {n:,}")

    found: list[Wrong] = []

    def numbers(role: str) -> FloatArray | None:
        if role not in place:
            return None
        values, wrong = table.parsed(place[role], place[role])
        found.append(wrong)
        return values

    def texts(role: str) -> TextArray | None:
        return table.texts(place[role]) if role in place else None

    listed = (
        [_cell(value) for value in table.cells(place["candidates"])]
        if "candidates" in place
        else None
    )
    vectors = (
        [_cell(value) for value in table.cells(place["propensities"])]
        if "propensities" in place
        else None
    )
    names, actions, offered, distributions = _actions(
        table.texts(place["action"]), listed, vectors, found
    )
    wanted = mapping["features"].split("|") if mapping.get("features") else []
    features, feature_names = _features(table, wanted)
    rest = [name for name in table.names if name not in {*place.values(), *wanted}]
    recorded = _recorded(table, rest)
    if recorded:
        feature_names = tuple(name.removeprefix("feature_") for name in feature_names)
    fields = {
        "actions": actions,
        "rewards": numbers("reward"),
        "propensities": numbers("propensity"),
        "distributions": distributions,
        "available": offered,
        "features": features,
        "positions": _whole(numbers("position"), found),
        "segments": texts("segment"),
        "event_ids": _event_ids(texts("event_id"), at),
        "times": texts("time"),
        "visits": _visits(texts("visit"), found),
        "row_weights": numbers("weight"),
        **recorded,
        "columns": table.numbers_of([name for name in rest if OWN.get(name) not in recorded]),
    }
    return assembled(
        fields,
        found,
        {"names": names, "feature_names": feature_names, "places": at},
        skip=skip,
        pending=pending,
        more=table.wrong,
    )


# columns of logs that this package writes: attributes of the log
OWN = {
    "row": "rows",
    "step": "steps",
    "context": "contexts",
    "propensity_kind": "kinds",
    "version": "versions",
}


def _recorded(table: RawTable, rest: Sequence[str]) -> dict[str, Any]:
    """Return what only logs of this package have, recognised by the kinds of propensities."""
    if "propensity_kind" not in rest:
        return {}
    found: dict[str, Any] = {}
    for name in OWN.keys() & set(rest):
        if name in ("row", "step", "context"):
            values, wrong = table.parsed(name, name)
            if not wrong.rows.any() and (np.isfinite(values) & (values % 1 == 0)).all():
                found[OWN[name]] = values.astype(np.int64)
        else:
            found[OWN[name]] = table.texts(name)
    return found


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
    for role, column in place.items():
        other = next((r for r in place if r != role and place[r] == column), "")
        if other:
            raise UserError(f"column '{short(column)}' cannot be both {role} and {other}")
    for role in ("action", "reward"):
        if role not in place:
            raise UserError(
                f"column '{role}' is required; the table has {_listed(names)}; name it by map"
            )
    return place


def _actions(
    shown: TextArray,
    listed: list[list[str]] | None,
    vectors: list[list[str]] | None,
    found: list[Wrong],
) -> tuple[tuple[str, ...], IntArray, BoolArray | None, FloatArray | None]:
    """Return the names of the actions, the index of each that was shown, int64 (n,), the candidates
    and the vectors of propensities; add to ``found`` the rows in which they are wrong.

    A vector has an entry for each candidate of its row, in their order; in a row without candidates
    for each action, in the order of their names, which are 0, 1, ... where no names are known.
    """
    import pandas as pd

    n = len(shown)
    codes, seen = pd.factorize(shown)
    found.append(Wrong(shown == "", lambda i: "action: is required; it is missing"))  # noqa: ARG005
    if vectors is not None and listed is None:
        names = tuple(map(str, range(len(vectors[0]))))
    else:
        names = in_order({*seen, *(name for row in listed or () for name in row)} - {""})
    K = len(names)
    if K > MAX_ACTIONS:
        raise UserError(
            f"action: a log must have at most {MAX_ACTIONS:,} different actions; got {K:,}"
        )
    if n * K > MAX_CELLS and (listed is not None or vectors is not None):
        role = "propensities" if listed is None else "candidates"
        raise UserError(f"{role}: rows times actions must be at most {MAX_CELLS:,}; got {n * K:,}")
    if listed is not None or vectors is not None:
        require_memory(9 * n * K, f"a log of {n:,} rows and {K:,} actions", "log fewer rows")
    index = {name: k for k, name in enumerate(names)}
    places: IntArray = np.array([index.get(name, -1) for name in seen], np.int64)[codes]
    if vectors is not None:
        found.append(
            Wrong(
                (places < 0) & (shown != ""),
                lambda i: (
                    f"action: must be its place in propensities, 0 to {K - 1}; got "
                    f"{short(shown[i])}"
                ),
            )
        )
    actions = np.maximum(places, 0)
    available = None
    if listed is not None:
        available = np.zeros((n, K), bool)
        for i, row in enumerate(listed):
            available[i, [index[name] for name in row if name] or slice(None)] = True
    distributions = None if vectors is None else _vectors(vectors, listed, index, found)
    if available is not None and available.all():
        available = None
    return names, actions, available, distributions


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
        cells = len(columns) * table.data.num_rows
        if cells > MAX_CELLS:
            raise UserError(
                f"features: rows times features must be at most {MAX_CELLS:,}; up to '{name}' "
                f"there are {cells:,} with {len(columns):,} features; choose fewer"
            )
        # columns, then a matrix of them
        require_memory(16 * cells, f"a log with {len(columns):,} features", "choose fewer")
    return (np.column_stack(list(columns.values())) if columns else None), tuple(columns)


def _event_ids(ids: TextArray | None, at: RowNames) -> TextArray | None:
    """Give each row without an id one of its own."""
    if ids is None:
        return None
    missing = np.flatnonzero(ids == "").tolist()
    ids[missing] = [at[i] for i in missing]
    return ids


def _visits(names: TextArray | None, found: list[Wrong]) -> IntArray | None:
    """Number the visits; add to ``found`` the rows without one."""
    if names is None:
        return None
    import pandas as pd

    found.append(Wrong(names == "", lambda i: "visit: is required; it is missing"))  # noqa: ARG005
    return pd.factorize(names)[0].astype(np.int64)


def _whole(values: FloatArray | None, found: list[Wrong]) -> IntArray | None:
    """Return whole numbers; add to ``found`` the rows with others."""
    if values is None:
        return None
    wrong = ~(np.isfinite(values) & (values == np.round(values)))
    found.append(Wrong(wrong, lambda i: f"position: must be a whole number; got {values[i]}"))
    return np.where(wrong, 0, values).astype(np.int64)


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
            return [e if isinstance(e, str) else _text(e) for e in json.loads(text)]
        except (ValueError, TypeError, RecursionError):
            # .5 is no number of JSON
            return [part.strip() for part in text.strip("[]").split(",")]
    return [part.strip() for part in text.split("|")]


def _vectors(
    rows: list[list[str]],
    listed: list[list[str]] | None,
    index: Mapping[str, int],
    found: list[Wrong],
) -> FloatArray:
    """Return the vectors of propensities, float64 (n, K); add to ``found`` the wrong rows."""
    n, K = len(rows), len(index)
    values, faults = np.zeros((n, K)), {}
    for i, row in enumerate(rows):
        offered = [name for name in listed[i] if name] if listed else []
        expected = len(offered) or K
        if len(row) != expected:
            whose = "as its row has candidates" if offered else "as the first row has"
            whose = whose if offered or not listed else "one for each action"
            faults[i] = f"propensities: must have {expected} entries {whose}; got {len(row)}"
            continue
        try:
            places = [index[name] for name in offered] or slice(None)
            values[i, places] = [float(entry) for entry in row]
        except ValueError as error:
            faults[i] = f"propensities: entries must be numbers; {error}"
    wrong = np.zeros(n, bool)
    wrong[list(faults)] = True
    found.append(Wrong(wrong, lambda i: faults[i]))
    return values


def _listed(columns: Any) -> str:
    names = [short(str(name), 30) for name in columns]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
