"""Settings of glibc's malloc; with another C library they change nothing."""

from __future__ import annotations

import ctypes
import os
from typing import Any

# of malloc.h
ARENAS, MMAP_THRESHOLD, TRIM_THRESHOLD = -8, -3, -1


def set_malloc(**options: int) -> None:
    """Set options of malloc for this process.

    Parameters
    ----------
    arenas : int
        Most heaps, which threads share.
    mmap_threshold : int
        Bytes from which an array has pages of its own, which are returned when it is freed.
    trim_threshold : int
        Freed bytes at the end of a heap that are kept.
    """
    numbers = {
        "arenas": ARENAS,
        "mmap_threshold": MMAP_THRESHOLD,
        "trim_threshold": TRIM_THRESHOLD,
    }
    if (mallopt := _function("mallopt")) is not None:
        for name, value in options.items():
            mallopt(numbers[name], value)


def trim() -> None:
    """Return freed memory to the system."""
    if (malloc_trim := _function("malloc_trim")) is not None:
        malloc_trim(0)


def _function(name: str) -> Any:
    return getattr(ctypes.CDLL(None), name, None) if os.name == "posix" else None
