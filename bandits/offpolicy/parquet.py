"""Write a log as Parquet with a checksum, and read it back."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bandits.base.errors import UserError
from bandits.base.files import atomic_write
from bandits.base.formatting import short
from bandits.base.row_names import IN_TABLE

from .log import DecisionLog

METADATA = b"bandits.decision_log"
VERSION = 1
# actions up to which whole vectors of propensities are written
MAX_VECTOR = 200

# column of the file: attribute of the log
COLUMNS = {
    "row": "rows",
    "step": "steps",
    "visit": "visits",
    "event_id": "event_ids",
    "time": "times",
    "segment": "segments",
    "context": "contexts",
    "features": "features",
    "candidates": "available",
    "action": "actions",
    "position": "positions",
    "propensity": "propensities",
    "propensity_kind": "kinds",
    "reward": "rewards",
    "weight": "row_weights",
    "version": "versions",
    "propensities": "distributions",
}
TYPES = {"f": pa.float64(), "i": pa.int64(), "b": pa.bool_(), "O": pa.string()}
PREFIX = "column."


def write_parquet(log: DecisionLog, path: Path) -> None:
    """Write a log to a Parquet file, as `to_parquet` makes it.

    Raises
    ------
    OSError
        The file cannot be written; an earlier one stays.
    """
    atomic_write(path, to_parquet(log))


def to_parquet(log: DecisionLog) -> bytes:
    """Return a log as a Parquet file, compressed with zstd, with a SHA-256 of its content.

    Columns: `COLUMNS`, those that the log has; other columns as ``column.NAME``. Vectors of
    propensities are left out with more than 200 actions."""
    arrays = {name: getattr(log, attribute) for name, attribute in COLUMNS.items()}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    if log.n_actions > MAX_VECTOR:
        arrays.pop("propensities", None)
    arrays |= {PREFIX + name: array for name, array in log.columns.items()}
    table = pa.table({name: _column(array) for name, array in arrays.items()})
    header: dict[str, Any] = {
        "version": VERSION,
        "names": log.names,
        "feature_names": log.feature_names,
    }
    if log.experiment:
        header["experiment"] = log.experiment
    if log.agent:
        header["agent"] = log.agent
    header["sha256"] = _checksum(header, arrays)
    table = table.replace_schema_metadata({METADATA: json.dumps(header).encode()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def is_decision_log(table: pa.Table) -> bool:
    """Return whether a table was written by `write_parquet`."""
    return METADATA in (table.schema.metadata or {})


def from_table(table: pa.Table) -> DecisionLog:
    """Return the log that was given to `write_parquet`.

    Raises
    ------
    UserError
        The version is unknown, or the content does not fit its checksum.
    """
    try:
        header = json.loads(table.schema.metadata[METADATA])
        version, stated = header["version"], header["sha256"]
        names, feature_names = tuple(header["names"]), tuple(header["feature_names"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"the log is damaged: its header cannot be read ({error})") from error
    if version != VERSION:
        raise UserError(f"the log has the unknown version {short(version)}; allowed is {VERSION}")
    try:
        arrays = {name: _array(table.column(name)) for name in table.column_names}
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise UserError(f"the log is damaged: a column cannot be read ({error})") from error
    plain: dict[str, Any] = {"version": version, "names": names, "feature_names": feature_names}
    if experiment := header.get("experiment", ""):
        plain["experiment"] = experiment
    if agent := header.get("agent", ""):
        plain["agent"] = agent
    if _checksum(plain, arrays) != stated or not {"action", "reward"} <= arrays.keys():
        raise UserError("the log is damaged: its content does not fit its checksum")
    columns = {
        name.removeprefix(PREFIX): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(PREFIX)
    }
    if strange := sorted(arrays.keys() - COLUMNS.keys()):
        raise UserError(
            f"the log has the unknown column {short(strange[0])}: it is of a later version"
        )
    known: dict[str, Any] = {COLUMNS[name]: array for name, array in arrays.items()}
    return DecisionLog(
        names=names,
        feature_names=feature_names,
        columns=columns,
        experiment=experiment,
        agent=agent,
        places=IN_TABLE,
        **known,
    )


def _column(array: NDArray[Any]) -> pa.Array:
    """Return an array as a column; a matrix as lists of fixed length."""
    kind = TYPES[array.dtype.kind]
    flat = pa.array(np.ascontiguousarray(array).reshape(-1), type=kind, from_pandas=False)
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as an array; lists of fixed length as a matrix."""
    joined = column.combine_chunks()
    if pa.types.is_fixed_size_list(joined.type):
        values = joined.flatten().to_numpy(zero_copy_only=False)
        matrix: NDArray[Any] = values.reshape(len(joined), joined.type.list_size)
        return matrix
    array: NDArray[Any] = joined.to_numpy(zero_copy_only=False)
    return array


def _checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the header and of all arrays with their names and shapes."""
    sha = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name} {array.shape} {array.dtype.kind}".encode())
        sha.update(json.dumps(array.tolist()).encode() if array.dtype.kind == "O" else array.data)
    return sha.hexdigest()
