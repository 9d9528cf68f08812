"""Free disk space: give up what can be recomputed, oldest first."""

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
    """Something on disk that can be recomputed.

    Attributes
    ----------
    when : float
        Last change, in seconds since 1970.
    bytes : int
        Size of what can be given up.
    name : str
        What it is, in messages.
    drop : callable
        Gives it up and returns the number of bytes freed.
    """

    when: float
    bytes: int
    name: str
    drop: Callable[[], int]


def budget(text: str) -> int:
    """Bytes from text like 500MB.

    Raises
    ------
    UserError
    """
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([KMGT]?B?)", text.upper())
    if found is None or found[2] not in _UNITS:
        raise UserError(f"--budget is {short(text)}; it must be a size like 500MB or 2GB")
    return int(float(found[1]) * _UNITS[found[2]])


def evictable_runs(store: Store) -> list[Evictable]:
    """The curves of stored runs; a run stays listed with its experiment."""
    return [
        Evictable(when, size, f"run {run[:12]}", partial(store.evict, run)) for when, size, run in store.evictable()
    ]


def evict(items: Iterable[Evictable], limit: int) -> list[str]:
    """Give up items, oldest first, until the rest takes at most ``limit`` bytes.

    Returns
    -------
    list of str
        What was done, one sentence each.
    """
    oldest = sorted(items, key=lambda item: item.when)
    total, messages = sum(item.bytes for item in oldest), []
    for item in oldest:
        if total <= limit:
            break
        if freed := item.drop():
            total -= freed
            messages.append(f"{item.name}: {freed / 1e6:,.1f} MB given up")
    return [*messages, f"Files that can be recomputed now take {total / 1e6:,.1f} MB."]
