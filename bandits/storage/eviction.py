"""Keep what can be recomputed within a disk budget: the oldest curves, checkpoints and caches are
deleted first.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bandits.base.errors import UserError
from bandits.base.files import damaged_caches, home
from bandits.base.formatting import short

from .run_store import Store

VARIABLE = "BANDITS_DISK_BUDGET"
# the budget by default, of the space that would be free without what can be recomputed
SHARE = 0.25
# caches of computed arrays
FOLDERS = {"weights": "network", "indexes": "search index"}
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class Evictable(NamedTuple):
    """Files that can be deleted and recomputed.

    Attributes
    ----------
    when : float
        Time of the last change, in seconds since 1970.
    bytes : int
        Size on disk.
    name : str
        Name for messages.
    drop : callable
        Deletes the files and returns the number of bytes freed.
    rank : int
        Items of a lower rank are deleted first, whatever their age.
    """

    when: float
    bytes: int
    name: str
    drop: Callable[[], int]
    rank: int = 1


def budget(text: str) -> int:
    """Parse a size like 500MB or 2GB; return it in bytes.

    Raises
    ------
    UserError
    """
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([KMGT]?B?)", text.upper())
    if match is None or match[2] not in _UNITS:
        raise UserError(f"--budget is {short(text)}; it must be a size like 500MB or 2GB")
    return int(float(match[1]) * _UNITS[match[2]])


def evictable_runs(store: Store) -> list[Evictable]:
    """List the curves and checkpoints of stored runs.

    An evicted run stays listed with its experiment.
    """
    return [
        Evictable(when, size, f"run {run[:12]}", partial(store.evict, run))
        for when, size, run in store.evictable()
    ]


def evictable_curves(store: Store) -> list[Evictable]:
    """List the curves of stored runs that have no star."""
    kept = {run.id for run in store.runs() if run.starred}
    return [
        Evictable(when, size, f"run {run[:12]}", partial(store.evict, run))
        for when, size, run in store.evictable(checkpoints=False)
        if run not in kept
    ]


def evictable_checkpoints(store: Store) -> list[Evictable]:
    """List the checkpoints of finished runs, from which these could be extended."""
    sizes = store.checkpoint_files.sizes()

    def drop(run: str) -> int:
        store.drop_checkpoint(run)
        return sizes[run]

    return [
        Evictable(
            run.created,
            sizes[run.id],
            f"checkpoint of run {run.id[:12]}",
            partial(drop, run.id),
            rank=0,
        )
        for run in store.runs()
        if run.id in sizes
    ]


def evict(items: Iterable[Evictable], limit: int) -> list[str]:
    """Delete items by rank, oldest first, until the rest takes at most ``limit`` bytes.

    Returns
    -------
    list of str
        One sentence for each deleted item, and one for the space still used.
    """
    oldest = sorted(items, key=lambda item: (item.rank, item.when))
    total, messages = sum(item.bytes for item in oldest), []
    for item in oldest:
        if total <= limit:
            break
        if freed := item.drop():
            total -= freed
            messages.append(f"{item.name}: {freed / 1e6:,.1f} MB freed")
    return [*messages, f"Files that can be recomputed now take {total / 1e6:,.1f} MB."]


def remove_damaged_caches() -> list[str]:
    """Delete damaged and unfinished files of the caches; return one sentence for each."""
    messages = []
    for folder, what in FOLDERS.items():
        for path in damaged_caches(folder):
            # in a folder that cannot be written
            with suppress(OSError):
                path.unlink()
            done = "is damaged" if path.exists() else "was damaged or unfinished and was removed"
            messages.append(
                f"the cached {what} {path.stem[:12]} {done}; it is computed again when it is needed"
            )
    return messages


def evictable_caches() -> list[Evictable]:
    """List the files of the caches."""
    items = []
    for folder, what in FOLDERS.items():
        for path in (home() / folder).glob("*.npz"):
            # deleted by another process
            with suppress(OSError):
                status = path.stat()
                size = status.st_size
                name = f"cached {what} {path.stem[:12]}"
                items.append(
                    Evictable(status.st_mtime, size, name, partial(_drop, path, size), rank=0)
                )
    return items


def _drop(path: Path, size: int) -> int:
    path.unlink(missing_ok=True)
    return size


class Usage(NamedTuple):
    """Bytes of files that can be recomputed, and the most that they may take."""

    used: int
    limit: int


def usage(store: Store, more: Iterable[Evictable] = ()) -> Usage:
    """Return the space that files which can be recomputed take and may take.

    Parameters
    ----------
    store : Store
    more : iterable of Evictable
        Files of other packages, as those of sweeps.

    Raises
    ------
    UserError
        The environment variable ``BANDITS_DISK_BUDGET`` is no size.
    """
    used = sum(item.bytes for item in _items(store, more))
    if text := os.environ.get(VARIABLE):
        try:
            return Usage(used, budget(text))
        except UserError as error:
            raise UserError(str(error).replace("--budget", VARIABLE)) from None
    return Usage(used, int(SHARE * (shutil.disk_usage(store.folder).free + used)))


def enforce(store: Store, more: Iterable[Evictable] = ()) -> list[str]:
    """Delete files that can be recomputed until the rest fits the budget; starred runs stay.

    Checkpoints of finished runs and caches are deleted first, then the curves of the oldest runs.

    Returns
    -------
    list of str
        One sentence for each deleted item; empty if all fit.
    """
    more = list(more)
    used, limit = usage(store, more)
    return evict(_items(store, more), limit)[:-1] if used > limit else []


def _items(store: Store, more: Iterable[Evictable]) -> list[Evictable]:
    return [*evictable_checkpoints(store), *evictable_caches(), *evictable_curves(store), *more]
