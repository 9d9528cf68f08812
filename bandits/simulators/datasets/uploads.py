"""Data sets that were brought: each one immutable file, named after its content.

The name of a data set ends with the beginning of a hash of everything it says, the choice of the target included.
An experiment that names it therefore names its data exactly, and equal uploads are one.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.files import atomic_write, home
from bandits.base.formatting import short

from .csv_table import MAX_CLASSES, MAX_COLUMNS, MAX_ROWS, Table

if TYPE_CHECKING:
    import pandas as pd

MAX_SETS = 200
TITLE = re.compile(r"[\w.-][\w .-]{0,39}")
_ID = re.compile(r"[a-z0-9_.-]{1,47}-[0-9a-f]{12}")
_KEY = b"bandit-playground"


class DatasetInfo(NamedTuple):
    """A data set that was brought: what is known without loading it."""

    id: str
    title: str
    target: str
    rows: int
    features: int
    classes: int
    content: str  # SHA-256


def save_dataset(table: Table, *, target: str, leave_out: Collection[str] = (), title: str) -> str:
    """Keep a table as a data set; one that is here already is simply kept.

    Parameters
    ----------
    table : Table
    target : str
        The column whose values are the classes.
    leave_out : collection of str
        Columns that are not features.
    title : str
        What people call it: 1 to 40 letters, digits, spaces, points, dashes or underscores.

    Returns
    -------
    str
        Its id, for `Classification.Params.data`.

    Raises
    ------
    UserError
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    check(table, target=target, leave_out=leave_out)
    if not TITLE.fullmatch(title):
        raise UserError(
            f"the name is '{short(title)}'; it must be a text of 1 to 40 letters, digits, spaces, points, dashes or "
            f"underscores"
        )
    features = [c for c in table.columns if c.name != target and c.name not in leave_out]
    values: dict[str, Any] = {c.name: pa.array(c.values) for c in features}
    answer = table.column(target)
    data = pa.table({**values, target: pa.array(answer.texts())})
    content = _content(data)
    name = f"{_slug(title)}-{content[:12]}"
    kept = DatasetInfo(name, title, target, len(table.rows), len(features), answer.distinct, content)
    try:
        here = find(kept.id)
    except UserError:  # a damaged file is written anew
        here = None
    if here is not None and here.content != content:
        raise UserError(f"other data are here under the same id, {kept.id}: choose another name")
    if here is None and len(listing()) >= MAX_SETS:
        raise UserError(f"there are {MAX_SETS} data sets already; delete one first")
    buffer = io.BytesIO()
    facts = {_KEY: json.dumps(kept._asdict())}
    pq.write_table(data.replace_schema_metadata(facts), buffer, compression="zstd")
    try:
        atomic_write(_path(kept.id), buffer.getvalue())
    except OSError as error:
        raise UserError(f"the data could not be kept on disk: {error.strerror or error}") from None
    return kept.id


def check(table: Table, *, target: str, leave_out: Collection[str] = ()) -> None:
    """Whether a table can be a data set.

    Raises
    ------
    UserError
        Why not, in one sentence.
    """
    if target in leave_out:
        raise UserError(f"the target column '{target}' cannot be left out")
    if why := table.unfit(target):
        raise UserError(why)
    for name in leave_out:
        table.column(name)
    features = [c for c in table.columns if c.name != target and c.name not in leave_out]
    if not features:
        raise UserError("no column is left that an agent could learn from")
    if trouble := next((c.trouble for c in features if c.trouble), ""):
        raise UserError(f"{trouble}: mend it, or leave the column out")


def title_from(file: str) -> str:
    """A title that is allowed, made from the name of a file."""
    words = re.sub(r"[^\w.-]+", " ", file.rpartition(".")[0] or file).strip()
    return words[:40].strip() or "My data"


def find(name: str) -> DatasetInfo | None:
    """What is known of a data set, or None if it is not here.

    Raises
    ------
    UserError
        Its file is damaged.
    """
    if not _ID.fullmatch(name):
        return None
    try:
        found = _path(name).stat()
    except FileNotFoundError:
        return None
    return _facts(_path(name), found.st_mtime_ns)


def listing() -> list[DatasetInfo]:
    """All data sets, newest first; damaged ones are left out."""
    found = []
    for path in _folder().glob("*.parquet"):
        with suppress(UserError, FileNotFoundError):
            if kept := find(path.stem):
                found.append((path.stat().st_mtime_ns, kept))
    return [kept for _, kept in sorted(found, reverse=True)]


def load(name: str) -> pd.DataFrame:
    """Features, "?" or NaN where missing, and behind them the class as text.

    Raises
    ------
    UserError
        It is not here, or the file is not what its name says.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (kept := find(name)) is None:
        raise UserError(f"data '{short(name)}' is not here")
    with suppress(OSError, ValueError, pa.ArrowException):
        data = pq.ParquetFile(_path(name)).read()
        sizes = data.num_rows, data.num_columns - 1, len(data.column(-1).unique())
        if _content(data) == kept.content and sizes == (kept.rows, kept.features, kept.classes):
            frame: pd.DataFrame = data.replace_schema_metadata(None).to_pandas()
            return frame
    raise _damaged(name)


def delete(name: str) -> None:
    """Take a data set away; nothing happens if it is not here."""
    if _ID.fullmatch(name):
        _path(name).unlink(missing_ok=True)


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "data"


def _folder() -> Path:
    return home() / "data"


def _path(name: str) -> Path:
    return _folder() / f"{name}.parquet"


@lru_cache(maxsize=2 * MAX_SETS)
def _facts(path: Path, changed: int) -> DatasetInfo:  # noqa: ARG001 - a file that changed is read again
    """What a file says about itself, as far as that can be true."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with suppress(OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        kept = DatasetInfo(**json.loads(pq.ParquetFile(path).schema_arrow.metadata[_KEY]))
        if (
            kept.id == path.stem and kept.id.endswith(f"-{kept.content[:12]}") and TITLE.fullmatch(kept.title)
            and 0 < kept.rows <= MAX_ROWS and 0 < kept.features < MAX_COLUMNS and 1 < kept.classes <= MAX_CLASSES
        ):  # fmt: skip
            return kept
    raise _damaged(path.stem)


def _damaged(name: str) -> UserError:
    return UserError(f"the file of data '{name}' is damaged: bring the CSV again on the page Your data")


def _content(data: Any) -> str:
    """SHA-256 of names, kinds and values in order: of what an Arrow table says, however a file stores it."""
    sha = hashlib.sha256()
    for name, column in zip(data.column_names, data.columns, strict=True):
        number = str(column.type) == "double"
        values = column.to_numpy().astype("<f8").tobytes() if number else json.dumps(column.to_pylist()).encode()
        sha.update(json.dumps([name, number, len(values)]).encode() + values)
    return sha.hexdigest()
