"""Compute a block of a sweep in a worker process; `bandits.runtime.worker` finds this module by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from bandits.base.files import Arrays
from bandits.sweeps.blocks import Block, StoppedError, compute
from bandits.sweeps.sweep import Sweep, read_with_proposals


def handle(header: dict[str, Any], tick: Callable[[int], None], stop: Callable[[], bool]) -> Arrays | None:
    """Compute the block that a message describes; returns None if ``stop`` returned True before the end."""
    block = Block(tuple((point, replication) for point, replication in header["rows"]))
    try:
        return compute(read_cached(json.dumps(header["sweep"])), block, tick, stop)
    except StoppedError:
        return None


@lru_cache(maxsize=4)
def read_cached(text: str) -> Sweep:
    """Read a sweep; validated once for its many blocks."""
    return read_with_proposals(text)
