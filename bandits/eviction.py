"""Room on disk: what can be computed again is given up, oldest first; what nobody wrote to its end is cleared away."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .refused import Refused, short
from .store import RUN, Store
from .sweeps.files import Files, kept, sound

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def budget(text: str) -> int:
    """Bytes from text like 500MB.

    Raises
    ------
    Refused
    """
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([KMGT]?B?)", text.upper())
    if found is None or found[2] not in _UNITS:
        raise Refused(f"--budget is {short(text)}; it must be a size like 500MB or 2GB")
    return int(float(found[1]) * _UNITS[found[2]])


def evict(store: Store, sweeps: Path, limit: int) -> list[str]:
    """Give up curves, oldest first, until what can be given up weighs no more than ``limit``.

    A run stays listed with its experiment, a sweep with the numbers of all its points.

    Returns
    -------
    list of str
        What was done, one sentence each.
    """
    items: list[tuple[float, int, str, Callable[[], int]]] = [
        (when, size, f"run {run[:12]}", partial(store.evict, run)) for when, size, run in store.weight()
    ]
    for files in _sweeps(sweeps):
        items.append((files.changed, files.bytes, f"sweep {files.folder.name[:12]}", files.thin))
    total, said = sum(item[1] for item in items), []
    for _, _, name, give_up in sorted(items, key=lambda item: item[0]):
        if total <= limit:
            break
        if freed := give_up():
            total -= freed
            said.append(f"{name}: {freed / 1e6:,.1f} MB given up")
    return [*said, f"What can be computed again weighs {total / 1e6:,.1f} MB now."]


def clear(sweeps: Path) -> list[str]:
    """Remove blocks that are damaged, files that were never finished, folders of nothing; a sentence for each."""
    said = []
    for folder in sorted(sweeps.iterdir()) if sweeps.is_dir() else ():
        if not folder.is_dir() or not RUN.fullmatch(folder.name):
            continue
        if kept(sweeps, folder.name) is None:
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
            said.append(f"sweep {folder.name[:12]} did not say what it is; it was removed")
            continue
        bad = [path for path in folder.iterdir() if path.suffix == ".part" or not sound(path)]
        for path in bad:
            path.unlink()
        if bad:
            said.append(f"sweep {folder.name[:12]}: {len(bad)} damaged or unfinished blocks were removed; run it again")
    return said


def _sweeps(folder: Path) -> list[Files]:
    found = [kept(folder, path.name) for path in folder.iterdir()] if folder.is_dir() else []
    return [Files(sweep, folder) for sweep in found if sweep is not None]
