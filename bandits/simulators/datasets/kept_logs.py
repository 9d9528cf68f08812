"""Users' logs of uniformly random decisions, kept for replays: one immutable file each, named by
its content.

As with uploaded data sets (`uploads`), the id ends with the first digits of a hash of the whole
content: an experiment that names it identifies its events exactly, and equal logs of one title are
stored once."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.row_names import ROWS, RowNames
from bandits.base.types import FloatArray, IntArray

from .csv_table import MAX_NUMBER
from .kept_files import KeptFiles, stored_facts
from .uploads import TITLE, content_hash, slug

MAX_LOGS = 50
MAX_EVENTS, MAX_ITEMS, MAX_FEATURES = 500_000, 1000, 200
# events times features
MAX_CELLS = 20_000_000
_ID = re.compile(r"[a-z0-9-]{1,40}-[0-9a-f]{12}")
WHERE = "under Data, What if?"


class LogInfo(NamedTuple):
    """Facts about a kept log, known without loading it; ``binary``: rewards are 0 or 1."""

    id: str
    title: str
    events: int
    features: int
    items: int
    content: str  # SHA-256
    binary: bool = True


class KeptLog(NamedTuple):
    """The events of a kept log in their order.

    Attributes
    ----------
    items : int64 (n,)
        What was shown, from 0.
    rewards : float64 (n,)
        Finite.
    features : float64 (n, d)
    names : tuple of str (K,)
        Of the items.
    feature_names : tuple of str (d,)
    """

    items: IntArray
    rewards: FloatArray
    features: FloatArray
    names: tuple[str, ...]
    feature_names: tuple[str, ...]


def save_log(log: KeptLog, *, title: str, at: RowNames = ROWS) -> str:
    """Store a log; an identical one of the same title is not stored twice.

    Parameters
    ----------
    log : KeptLog
        Chosen uniformly at random among all items: the caller has checked that.
    title : str
        Its name in lists, as of a data set.
    at : RowNames
        Names of the rows, for messages.

    Returns
    -------
    str
        Its id, for `Logged.Params.log`.

    Raises
    ------
    UserError
        The log or its title is not allowed, there are too many logs, or the disk does not take it.
    """
    import pyarrow as pa

    check(log, at=at)
    if not TITLE.fullmatch(title):
        raise UserError(
            f"the name is '{short(title)}'; it must be a text of 1 to 40 letters, digits, spaces, "
            "points, dashes or underscores"
        )
    columns: dict[str, Any] = {
        "item": pa.array([log.names[k] for k in log.items]),
        "reward": pa.array(log.rewards),
    }
    columns |= {
        f"{d} {name}": pa.array(log.features[:, d]) for d, name in enumerate(log.feature_names)
    }
    data = pa.table(columns)
    content = _content(data, log.names)
    info = LogInfo(
        f"{slug(title)}-{content[:12]}",
        title,
        len(log.items),
        len(log.feature_names),
        len(log.names),
        content,
        bool(np.isin(log.rewards, (0.0, 1.0)).all()),
    )
    try:
        stored = find(info.id)
    except UserError:
        # a damaged file is overwritten
        stored = None
    if stored is None and len(listing()) >= MAX_LOGS:
        raise UserError(f"at most {MAX_LOGS} logs can be kept; delete one first")
    # an equal one keeps its title: another visitor may have chosen it
    title = info.title if stored is None else stored.title
    _FILES.write(info.id, data, {**info._asdict(), "title": title, "names": log.names})
    return info.id


def check(log: KeptLog, *, at: RowNames = ROWS) -> None:
    """Check that a log can be kept.

    Raises
    ------
    UserError
        It has too many or too few events, items or features, or rewards that are not finite.
    """
    n, K, d = len(log.items), len(log.names), log.features.shape[1]
    if not 2 <= n <= MAX_EVENTS:
        raise UserError(f"a log for replays must have 2 to {MAX_EVENTS:,} events; got {n:,}")
    if not 2 <= K <= MAX_ITEMS:
        raise UserError(f"a log for replays must have 2 to {MAX_ITEMS:,} items; got {K:,}")
    if not 1 <= d <= MAX_FEATURES or n * d > MAX_CELLS:
        raise UserError(
            f"a log for replays must have at most {MAX_FEATURES} features, and {MAX_CELLS:,} "
            f"events times features; got {d:,} features and {n * d:,}"
        )
    for name in log.names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UserError(
                f"the item {ascii(name)[:60]} has a name that is no text: half a surrogate pair"
            ) from None
    wrong = ~(np.abs(log.rewards) <= MAX_NUMBER)
    if wrong.any():
        i = int(wrong.argmax())
        raise UserError(
            f"{at[i]}, reward: must be between -{MAX_NUMBER:g} and {MAX_NUMBER:g} for a replay; "
            f"got {log.rewards[i]:g}"
        )


def load(name: str) -> KeptLog:
    """Load a log.

    Raises
    ------
    UserError
        The log is not kept, or its file does not match its name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if find(name) is None:
        raise UserError(f"log '{short(name)}' is not kept here")
    info, names = _facts(_FILES.path(name), _FILES.path(name).stat().st_mtime_ns)
    with suppress(OSError, ValueError, KeyError, pa.ArrowException):
        data = pq.ParquetFile(_FILES.path(name)).read()
        if _content(data, names) == info.content and (data.num_rows, len(names)) == (
            info.events,
            info.items,
        ):
            place = {item: k for k, item in enumerate(names)}
            items = np.array([place[item] for item in data.column("item").to_pylist()], np.int64)
            features = np.column_stack([column.to_numpy() for column in data.columns[2:]])
            # without the number that keeps columns apart
            named = tuple(column.partition(" ")[2] for column in data.column_names[2:])
            return KeptLog(items, data.column("reward").to_numpy(), features, names, named)
    raise _damaged(name)


@lru_cache(maxsize=2 * MAX_LOGS)
def _facts(path: Path, changed: int) -> tuple[LogInfo, tuple[str, ...]]:  # noqa: ARG001
    """Read the facts and the names of the items from the metadata of a file, and check them."""
    import pyarrow as pa

    with suppress(OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        facts = stored_facts(path)
        names = tuple(facts.pop("names"))
        info = LogInfo(**facts)
        if (
            info.id == path.stem
            and info.id.endswith(f"-{info.content[:12]}")
            and TITLE.fullmatch(info.title)
            and 2 <= info.events <= MAX_EVENTS
            and 1 <= info.features <= MAX_FEATURES
            and 2 <= info.items == len(names) <= MAX_ITEMS
        ):
            return info, names
    raise _damaged(path.stem)


def _damaged(name: str) -> UserError:
    return UserError(f"the file of log '{name}' is damaged: upload the log again {WHERE}")


_FILES = KeptFiles("logs", "log", _ID, lambda path, changed: _facts(path, changed)[0])
find, listing, delete = _FILES.find, _FILES.listing, _FILES.delete


def _content(data: Any, names: Sequence[str]) -> str:
    """Hash the events and the names of the items (SHA-256)."""
    return hashlib.sha256(json.dumps([content_hash(data), list(names)]).encode()).hexdigest()
