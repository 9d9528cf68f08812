"""Check the caches of computed arrays: weights of networks and search indexes."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

from bandits.base.files import damaged_caches, home

from .eviction import Evictable

FOLDERS = {"weights": "network", "indexes": "search index"}


def remove_damaged_caches() -> list[str]:
    """Delete damaged and unfinished files of the caches; return one sentence for each."""
    messages = []
    for folder, what in FOLDERS.items():
        for path in damaged_caches(folder):
            with suppress(OSError):  # in a folder that cannot be written
                path.unlink()
            done = "is damaged" if path.exists() else "was damaged or unfinished and was removed"
            messages.append(f"the cached {what} {path.stem[:12]} {done}; it is computed again when it is needed")
    return messages


def evictable_caches() -> list[Evictable]:
    """List the files of the caches."""
    items = []
    for folder, what in FOLDERS.items():
        for path in (home() / folder).glob("*.npz"):
            with suppress(OSError):  # deleted by another process
                status = path.stat()
                size = status.st_size
                name = f"cached {what} {path.stem[:12]}"
                items.append(Evictable(status.st_mtime, size, name, partial(_drop, path, size), rank=0))
    return items


def _drop(path: Path, size: int) -> int:
    path.unlink(missing_ok=True)
    return size
