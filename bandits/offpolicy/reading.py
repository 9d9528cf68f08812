"""Read logs from files, and write recorded ones as text for other tools."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bandits.base.errors import UserError
from bandits.base.formatting import short, size
from bandits.base.memory import require_memory
from bandits.base.row_names import IN_TABLE
from bandits.results.export import csv_of
from bandits.tables.csv_reader import HEAD, header, read_csv
from bandits.tables.raw_table import RawTable
from bandits.tables.text import Limits, quoted, utf8

from . import open_bandit, parquet
from .dsjson import lines, read_dsjson
from .log import MAX_ROWS, DecisionLog
from .parquet import MAX_VECTOR
from .user_table import from_table, in_order

MAX_BYTES = 200 * 10**6
# bytes that a byte of dsjson takes as objects of Python: 16 to 22 were measured
PER_BYTE = 25
# rows from which roles of columns are guessed
SHOWN = 1000
# bytes of a Parquet file without compression
MAX_UNPACKED = 4 * 10**9
TABLES = (".csv", ".csv.gz")
ENDINGS = (".parquet", *TABLES, ".dsjson", ".json", ".jsonl")
LIMITS = Limits(MAX_BYTES, rows=MAX_ROWS, columns=10_000, cell=csv.field_size_limit(), lenient=True)


def read_log(
    name: str | Path,
    mapping: Mapping[str, str] | None = None,
    *,
    strict: bool = False,
    skip: bool = False,
    pending: float | None = None,
) -> DecisionLog:
    """Read a log from a file, or a shipped one by its name.

    Parameters
    ----------
    name : str or Path
        A Parquet, CSV or dsjson file, or ``open_bandit/POLICY/CAMPAIGN``.
    mapping : mapping of str to str, optional
        Columns of a user's table, as in `from_table`.
    strict : bool
        Refuse lines of dsjson that are no decisions, as in `read_dsjson`.
    skip : bool
        Leave out rows that hold what is not allowed, and state how many in the notes.
    pending : float, optional
        What a missing reward counts as; by default such rows are left out, and the notes state
        how many.

    Returns
    -------
    DecisionLog
        n rounds.

    Raises
    ------
    UserError
        The file is too large, has another format, or holds values that are not allowed.
    OSError
        The file cannot be read.
    """
    if str(name).startswith(open_bandit.PREFIX):
        return open_bandit.load(str(name))
    path = Path(name)
    kind = ending(path.name)
    if kind not in ENDINGS:
        raise UserError(
            f"'{short(path.name)}': a log must end in {', '.join(ENDINGS)}, or be one of "
            f"{', '.join(open_bandit.NAMES)}"
        )
    length = path.stat().st_size
    if length > MAX_BYTES:
        raise UserError(
            f"'{short(path.name)}': a file must have at most {size(MAX_BYTES)}; it has "
            f"{size(length)}"
        )
    if kind == ".parquet":
        return _parquet(path, mapping, skip=skip, pending=pending)
    if kind in TABLES:
        table = read_csv(path.read_bytes(), LIMITS)
        return from_table(table, mapping, skip=skip, pending=pending)
    require_memory(PER_BYTE * length, f"'{short(path.name)}'", "read a part of its lines")
    try:
        with path.open(encoding="utf-8") as file:
            return read_dsjson(file, strict=strict, skip=skip, pending=pending)
    except UnicodeDecodeError as error:
        raise UserError(f"'{short(path.name)}': must be text in UTF-8; {error.reason}") from error


def ending(name: str) -> str:
    """Return the ending of a file's name: one of `ENDINGS`, or any other."""
    return next(
        (known for known in ENDINGS if name.lower().endswith(known)), Path(name).suffix.lower()
    )


def column_names(path: Path) -> list[str] | None:
    """Return the columns of a table whose roles must be known, None for a file that states them
    itself.

    Raises
    ------
    UserError
        The file is not a table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if ending(path.name) in TABLES:
        with path.open("rb") as file:
            return header(file.read(HEAD), LIMITS)
    if path.suffix.lower() != ".parquet":
        return None
    try:
        schema = pq.read_schema(path)
    except MemoryError:
        # one of Arrow's errors too
        raise
    except (ValueError, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UserError(f"'{short(path.name)}': is not a table, or is damaged") from error
    return None if parquet.METADATA in (schema.metadata or {}) else list(schema.names)


def beginning(path: Path) -> RawTable | None:
    """Return the first rows of a table; None where they cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if ending(path.name) == ".parquet":
            batch = next(pq.ParquetFile(path).iter_batches(batch_size=SHOWN))
            return RawTable(pa.Table.from_batches([batch]), IN_TABLE)
        lines = utf8(path.read_bytes(), LIMITS).splitlines(keepends=True)[: SHOWN + 1]
        return read_csv(b"".join(lines), LIMITS)
    except (UserError, ValueError, StopIteration, pa.ArrowException):
        # what is wrong is reported when the whole file is read
        return None


def _parquet(
    path: Path, mapping: Mapping[str, str] | None, *, skip: bool, pending: float | None
) -> DecisionLog:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.ParquetFile(path).metadata
        if about.num_rows > MAX_ROWS:
            raise UserError(
                f"'{short(path.name)}': a log must have at most {MAX_ROWS:,} rows; got "
                f"{about.num_rows:,}"
            )
        unpacked = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        if unpacked > MAX_UNPACKED:
            raise UserError(
                f"'{short(path.name)}': must have at most {size(MAX_UNPACKED)} unpacked; got "
                f"{size(unpacked)}"
            )
        # as a table and as arrays
        require_memory(2 * unpacked, f"'{short(path.name)}'", "read a part of its rows")
        table = pq.read_table(path)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UserError(f"'{short(path.name)}': is not a Parquet file, or is damaged") from error
    if parquet.is_decision_log(table):
        return parquet.from_table(table)
    return from_table(RawTable(table, IN_TABLE), mapping, skip=skip, pending=pending)


FORMATS = {"Parquet": ".parquet", "CSV": ".csv", "dsjson": ".dsjson"}
# which take some seconds
MAX_TEXT_ROWS = 200_000
# decisions times items that a text lists: about 100 MB
MAX_TEXT_CELLS = 2_000_000


def convert(source: Path, target: Path) -> None:
    """Convert a decision log from Parquet to the format that the ending of the target states.

    Parameters
    ----------
    source : Path
        A Parquet file of `write_parquet`.
    target : Path
        Where the text is written; it ends in one of `FORMATS`.

    Raises
    ------
    UserError
        The log is too long for a text, or has no propensities (dsjson).
    """
    import pyarrow.parquet as pq

    rows = pq.read_metadata(source).num_rows
    if rows > MAX_TEXT_ROWS:
        raise UserError(
            f"as text a log may have {MAX_TEXT_ROWS:,} decisions; this one has {rows:,}: take "
            "Parquet"
        )
    log = parquet.from_table(pq.read_table(source))
    dsjson = ending(target.name) == ".dsjson"
    listed = dsjson or log.available is not None or log.distributions is not None
    width = log.n_actions * listed + (0 if log.features is None else log.features.shape[1])
    if rows * width > MAX_TEXT_CELLS:
        raise UserError(
            f"as text a log may have {MAX_TEXT_CELLS:,} decisions times items and features; this "
            f"one has {rows * width:,}: take Parquet, or record fewer replications"
        )
    with target.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines(log) if dsjson else [csv_text(log)])


def csv_text(log: DecisionLog) -> str:
    """Write one row per decision, with a header whose names *What if?* and `evaluate` recognise.

    Candidates and vectors of propensities are JSON lists, the latter in the order of the candidates
    of their row. Where every item is always a candidate, the first row lists all, and others none.
    Names that would be taken for something else are JSON texts. The experiment of a simulated
    run is not part of it: the true value is not known from a CSV."""
    import pandas as pd

    names, K = log.names, log.n_actions
    texts = {
        name: None if values is None else list(map(quoted, values))
        for name, values in (
            ("event_id", log.event_ids),
            ("segment", log.segments),
            ("time", log.times),
            ("action", [names[a] for a in log.actions]),
            ("version", log.versions),
        )
    }
    order = [names.index(name) for name in in_order(set(names))]
    everything = log.available is None
    offered = (
        [order] * len(log)
        if log.available is None
        else [[k for k in order if row[k]] for row in log.available.tolist()]
    )
    columns: dict[str, Any] = {
        "event_id": texts["event_id"],
        "row": log.rows,
        "step": log.steps,
        "context": log.contexts,
        "time": texts["time"],
        "segment": texts["segment"],
        "action": texts["action"],
        "position": log.positions,
        "propensity": log.propensities,
        "propensity_kind": log.kinds,
        "reward": log.rewards,
        "row_weight": log.row_weights,
        "version": texts["version"],
        "candidates": [
            "" if everything and i else json.dumps([names[k] for k in row])
            for i, row in enumerate(offered)
        ],
    }
    if log.distributions is not None and K <= MAX_VECTOR:
        columns["propensities"] = [
            json.dumps([vector[k] for k in row])
            for vector, row in zip(log.distributions.tolist(), offered, strict=True)
        ]
    if log.features is not None:
        titles = log.feature_names or range(log.features.shape[1])
        columns |= {f"feature_{title}": log.features[:, d] for d, title in enumerate(titles)}
    columns |= dict(log.columns)
    return csv_of(
        pd.DataFrame({name: values for name, values in columns.items() if values is not None})
    )
