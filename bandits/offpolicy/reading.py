"""Read a log: of the playground, of a user, or one that is shipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bandits.base.errors import UserError
from bandits.base.formatting import short, size
from bandits.base.row_names import IN_TABLE, OF_FILE, RECORD, RowNames

from . import open_bandit, parquet
from .dsjson import read_dsjson
from .log import MAX_ROWS, DecisionLog
from .tables import from_frame

MAX_BYTES = 200 * 10**6
MAX_UNPACKED = 4 * 10**9  # bytes of a Parquet file without compression
ENDINGS = (".parquet", ".csv", ".dsjson", ".json", ".jsonl")


def read_log(name: str | Path, mapping: Mapping[str, str] | None = None) -> DecisionLog:
    """Read a log from a file, or a shipped one by its name.

    Parameters
    ----------
    name : str or Path
        A Parquet, CSV or dsjson file, or ``open_bandit/POLICY/CAMPAIGN``.
    mapping : mapping of str to str, optional
        Columns of a user's table, as in `from_frame`.

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
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise UserError(f"'{short(path.name)}': a log must end in {', '.join(ENDINGS)}, or be one of "
                        f"{', '.join(open_bandit.NAMES)}")  # fmt: skip
    length = path.stat().st_size
    if length > MAX_BYTES:
        raise UserError(f"'{short(path.name)}': a file must have at most {size(MAX_BYTES)}; it has {size(length)}")
    if ending == ".parquet":
        return _parquet(path, mapping)
    if ending == ".csv":
        return _csv(path, mapping)
    try:
        with path.open(encoding="utf-8") as file:
            return read_dsjson(file)
    except UnicodeDecodeError as error:
        raise UserError(f"'{short(path.name)}': must be text in UTF-8; {error.reason}") from error


def column_names(path: Path) -> list[str] | None:
    """Return the columns of a table whose roles must be known, None for a file that states them itself.

    Raises
    ------
    UserError
        The file is not a table.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() == ".csv":
            return [str(name) for name in pd.read_csv(path, nrows=0, encoding="utf-8-sig").columns]
        if path.suffix.lower() != ".parquet":
            return None
        schema = pq.read_schema(path)
        return None if parquet.METADATA in (schema.metadata or {}) else list(schema.names)
    except (ValueError, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UserError(f"'{short(path.name)}': is not a table, or is damaged") from error


def _parquet(path: Path, mapping: Mapping[str, str] | None) -> DecisionLog:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.ParquetFile(path).metadata
        if about.num_rows > MAX_ROWS:
            raise UserError(f"'{short(path.name)}': a log must have at most {MAX_ROWS:,} rows; got {about.num_rows:,}")
        unpacked = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        if unpacked > MAX_UNPACKED:
            raise UserError(
                f"'{short(path.name)}': must have at most {size(MAX_UNPACKED)} unpacked; got {size(unpacked)}"
            )
        table = pq.read_table(path)
        if parquet.is_decision_log(table):
            return parquet.from_table(table)
        frame = table.to_pandas()
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UserError(f"'{short(path.name)}': is not a Parquet file, or is damaged") from error
    return from_frame(frame, mapping, places=IN_TABLE)


def _csv(path: Path, mapping: Mapping[str, str] | None) -> DecisionLog:
    import pandas as pd

    try:
        frame = pd.read_csv(path, nrows=MAX_ROWS + 1, encoding="utf-8-sig", low_memory=False)
    except ValueError as error:
        raise UserError(f"'{short(path.name)}': is not a CSV file in UTF-8; {short(str(error), 100)}") from error
    return from_frame(frame, mapping, places=_places(path, len(frame)))


def _places(path: Path, n: int) -> RowNames:
    """Return the lines of the n rows of a CSV file, after its header; empty lines are no rows."""
    with path.open("rb") as file:
        lines = [number for number, line in enumerate(file, start=1) if line.strip()]
    return RowNames(OF_FILE, lines[1:]) if len(lines) == n + 1 else RowNames(RECORD, range(2, n + 2))
