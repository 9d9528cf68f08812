"""Uploaded data sets: one immutable file each, named by its content.

The id of a data set ends with the first digits of a hash of its whole content, the target included.
An experiment that names the id therefore identifies its data exactly, and equal uploads are stored
once."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.formatting import short

from .csv_table import MAX_CLASSES, MAX_COLUMNS, MAX_ROWS, Table
from .kept_files import KeptFiles, stored_facts
from .wrong_rows import check_rows

if TYPE_CHECKING:
    import pandas as pd

MAX_SETS = 200
# before the names of stored columns of rewards, so that other roles of columns are other content
REWARD = "reward: "
TITLE = re.compile(r"[\w.-][\w .-]{0,39}")
_ID = re.compile(r"[a-z0-9_.-]{1,47}-[0-9a-f]{12}")


class DatasetInfo(NamedTuple):
    """Facts about an uploaded data set, known without loading it.

    ``target`` is empty where the last columns, as many as ``classes``, are the rewards of arms.
    """

    id: str
    title: str
    target: str
    rows: int
    features: int
    classes: int
    content: str  # SHA-256


def save_dataset(
    table: Table,
    *,
    target: str = "",
    rewards: Sequence[str] = (),
    leave_out: Collection[str] = (),
    title: str,
) -> str:
    """Store a table as a data set; an identical one is not stored twice.

    Parameters
    ----------
    table : Table
    target : str
        The column whose values are the classes.
    rewards : sequence of str
        Instead of a target: the columns with the rewards of the arms.
    leave_out : collection of str
        Columns that are not features.
    title : str
        Its name in lists: 1 to 40 letters, digits, spaces, points, dashes or underscores.

    Returns
    -------
    str
        Its id, for `Classification.Params.data` or `Rewards.Params.data`.
    """
    import pyarrow as pa

    check(table, target=target, rewards=rewards, leave_out=leave_out)
    if not TITLE.fullmatch(title):
        raise UserError(
            f"the name is '{short(title)}'; it must be a text of 1 to 40 letters, digits, spaces, "
            "points, dashes or underscores"
        )
    features = table.features((target, *rewards, *leave_out))
    values: dict[str, Any] = {c.name: pa.array(c.values) for c in features}
    if rewards:
        arms = len(rewards)
        answers = {REWARD + arm: pa.array(table.column(arm).values) for arm in rewards}
    else:
        arms = table.column(target).distinct
        answers = {target: pa.array(table.column(target).texts())}
    data = pa.table({**values, **answers})
    content = content_hash(data)
    name = f"{slug(title)}-{content[:12]}"
    shown = "" if rewards else target
    info = DatasetInfo(name, title, shown, len(table.rows), len(features), arms, content)
    try:
        stored = find(info.id)
    except UserError:
        # a damaged file is overwritten
        stored = None
    if stored is not None and stored.content != content:
        raise UserError(f"other data are stored under the same id, {info.id}: choose another name")
    if stored is None and len(listing()) >= MAX_SETS:
        raise UserError(f"at most {MAX_SETS} data sets can be stored; delete one first")
    # an equal one keeps its title: another visitor may have chosen it
    _FILES.write(info.id, data, (stored or info)._asdict())
    return info.id


def check(
    table: Table,
    *,
    target: str = "",
    rewards: Sequence[str] = (),
    leave_out: Collection[str] = (),
) -> None:
    """Check that a table can be a data set.

    Raises
    ------
    UserError
        One sentence: what is wrong.
    RowsError
        Rows are wrong, see `check_rows`.
    """
    for name in rewards or (target,):
        if name in leave_out:
            what = "reward" if rewards else "target"
            raise UserError(f"the {what} column '{name}' cannot be left out")
    for name in leave_out:
        table.column(name)
    features = table.features((target, *rewards, *leave_out))
    if not features:
        raise UserError("no column is left for the features; at least one feature column is needed")
    check_rows(table, target=target, rewards=rewards, leave_out=leave_out)
    if problem := table.rewards_problem(rewards) if rewards else table.target_problem(target):
        raise UserError(problem)


def title_from(file: str) -> str:
    """Make an allowed title from the name of a file."""
    words = re.sub(r"[^\w.-]+", " ", file.rpartition(".")[0] or file).strip()
    return words[:40].strip() or "My data"


def load(name: str) -> pd.DataFrame:
    """Load the features, "?" or NaN where missing, followed by the class as text, or by the rewards
    of all arms.

    Raises
    ------
    UserError
        The data set is not stored, or its file does not match its name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if (info := find(name)) is None:
        raise UserError(f"data '{short(name)}' is not stored here")
    with suppress(OSError, ValueError, pa.ArrowException):
        data = pq.ParquetFile(_FILES.path(name)).read()
        if info.target:
            sizes = data.num_rows, data.num_columns - 1, len(data.column(-1).unique())
        else:
            arms = sum(column.startswith(REWARD) for column in data.column_names)
            sizes = data.num_rows, data.num_columns - info.classes, arms
        if content_hash(data) == info.content and sizes == (info.rows, info.features, info.classes):
            frame: pd.DataFrame = data.replace_schema_metadata(None).to_pandas()
            return frame if info.target else frame.rename(columns=lambda n: n.removeprefix(REWARD))
    raise _damaged(name)


def slug(title: str) -> str:
    """Return a title as lower-case letters, digits and dashes, at most 40."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "data"


@lru_cache(maxsize=2 * MAX_SETS)
def _facts(path: Path, changed: int) -> DatasetInfo:  # noqa: ARG001
    """Read the facts from the metadata of a file, and check them."""
    import pyarrow as pa

    with suppress(OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        info = DatasetInfo(**stored_facts(path))
        if (
            info.id == path.stem
            and info.id.endswith(f"-{info.content[:12]}")
            and TITLE.fullmatch(info.title)
            and 0 < info.rows <= MAX_ROWS
            and 0 < info.features < MAX_COLUMNS
            and 1 < info.classes <= MAX_CLASSES
        ):
            return info
    raise _damaged(path.stem)


def _damaged(name: str) -> UserError:
    return UserError(f"the file of data '{name}' is damaged: upload the CSV again on the page Data")


_FILES = KeptFiles("data", "data", _ID, _facts)
find, listing, delete = _FILES.find, _FILES.listing, _FILES.delete


def content_hash(data: Any) -> str:
    """Hash the names, types and values of an Arrow table (SHA-256), independent of the file
    format.
    """
    sha = hashlib.sha256()
    for name, column in zip(data.column_names, data.columns, strict=True):
        number = str(column.type) == "double"
        values = (
            column.to_numpy().astype("<f8").tobytes()
            if number
            else json.dumps(column.to_pylist()).encode()
        )
        sha.update(json.dumps([name, number, len(values)]).encode() + values)
    return sha.hexdigest()
