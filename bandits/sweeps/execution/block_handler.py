"""Compute a block of a sweep in a worker process; `bandits.runtime.worker` calls it by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from bandits.base.files import Arrays
from bandits.sweeps.blocks import Block, StoppedError, compute
from bandits.sweeps.sweep import Sweep, read_with_proposals


def handle(header: dict[str, Any], tick: Callable[[int], None], stop: Callable[[], bool]) -> Arrays | None:
    """Compute the block that a message describes; None if ``stop`` became true before it was done."""
    block = Block(tuple((point, replication) for point, replication in header["rows"]))
    try:
        return compute(_sweep(json.dumps(header["sweep"])), block, tick, stop)
    except StoppedError:
        return None


@lru_cache(maxsize=4)
def _sweep(text: str) -> Sweep:
    """Validate the sweep of many blocks once."""
    return read_with_proposals(text)
