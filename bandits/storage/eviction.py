"""Free disk space by deleting files that can be recomputed, oldest first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from bandits.base.errors import UserError
from bandits.base.formatting import short

from .run_store import Store

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
    """List the curves and checkpoints of stored runs; an evicted run stays listed with its experiment."""
    return [
        Evictable(when, size, f"run {run[:12]}", partial(store.evict, run)) for when, size, run in store.evictable()
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
        Evictable(run.created, sizes[run.id], f"checkpoint of run {run.id[:12]}", partial(drop, run.id), rank=0)
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
