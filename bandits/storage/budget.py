"""Keep what can be recomputed within a disk budget: by default a share of the space that would be free without it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from typing import NamedTuple

from bandits.base.errors import UserError

from .caches import evictable_caches
from .eviction import Evictable, budget, evict, evictable_checkpoints, evictable_curves
from .run_store import Store

VARIABLE = "BANDITS_DISK_BUDGET"
SHARE = 0.25


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
