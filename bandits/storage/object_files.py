"""Immutable files named by the SHA-256 of their content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.base.files import Arrays, move_into_place, pack, stage, unpack

# seconds after which no process is still writing a staged file
STALE_AFTER = 3600.0
_DIGEST = re.compile("[0-9a-f]{64}")
# what a file carries of its row of the index
_CARRIED: dict[str, Any] = {
    **dict.fromkeys(("id", "experiment", "title", "tags"), str),
    **dict.fromkeys(("created", "seconds", "evicted"), (int, float)),
    "headline": str,
}


class StoredObject(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    arrays : dict of arrays
    row : dict
        The row of the index: what the file carries, its own name and size, and no star or notes.
    """

    arrays: Arrays
    row: dict[str, Any]


class ObjectFiles:
    """The folders ``objects``, ``staged`` and ``quarantine`` of a store.

    Parameters
    ----------
    folder : Path
        The store's folder.

    Raises
    ------
    OSError
        The folders cannot be created.
    """

    def __init__(self, folder: Path) -> None:
        self._objects, self.staging, self._quarantine = (
            folder / n for n in ("objects", "staged", "quarantine")
        )
        folder.mkdir(0o700, parents=True, exist_ok=True)
        # a folder that cannot be written can be read
        with suppress(OSError):
            self.make_folders()

    def make_folders(self) -> None:
        """Create the folders, also after the store's folder was emptied."""
        for path in (self._objects, self.staging, self._quarantine):
            # not the parents: a folder that was removed is an error
            path.mkdir(exist_ok=True)

    def path(self, content: Any) -> Path:
        """Return the path of the file with this SHA-256.

        Any other value gets a path where no file is.
        """
        name = content if isinstance(content, str) and _DIGEST.fullmatch(content) else "unreadable"
        return self._objects / name[:2] / name

    def paths(self) -> Iterator[Path]:
        """Iterate over all object files."""
        yield from self._objects.glob("*/*")

    def stage(self, data: bytes) -> Path:
        """Write a temporary file; see `bandits.base.files.stage`."""
        self.make_folders()
        return stage(data, self.staging)

    def commit(self, staged: Path, content: str) -> None:
        """Rename a staged file to the name of its content."""
        move_into_place(staged, self.path(content))

    def read(self, path: Path) -> bytes | None:
        """Return the bytes of a file, or None if it does not exist."""
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read_intact(self, path: Path) -> StoredObject | None:
        """Return the content of a file.

        None if it does not exist, does not match its name or cannot be decoded.
        """
        data = self.read(path) or b""
        with suppress(ValueError):
            if digest(data) == path.name:
                arrays = unpack(data)
                facts = {"content": path.name, "bytes": len(data), "starred": False, "notes": ""}
                return StoredObject(arrays, {**_carried(arrays), **facts})
        return None

    def quarantine(self, path: Path) -> None:
        """Move a damaged file out of the way; its bytes are kept."""
        self.make_folders()
        with suppress(FileNotFoundError):
            os.replace(path, self._quarantine / f"{path.name}-{time.time_ns()}")

    def remove_stale(self) -> None:
        """Delete temporary files of processes that were killed while they wrote them."""
        for path in self.staging.glob("*"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > STALE_AFTER:
                    path.unlink()


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def pack_run(row: Mapping[str, Any], arrays: dict[str, Any]) -> bytes:
    """Serialise a run: its arrays, and what a file carries of its row of the index under the name
    ``about``.
    """
    about = {name: row[name] for name in _CARRIED}
    return pack({"about": np.frombuffer(json.dumps(about).encode(), np.uint8), **arrays})


def _carried(arrays: Arrays) -> dict[str, Any]:
    """Return what a file carries of its row of the index.

    Raises
    ------
    ValueError
        It carries no such row.
    """
    row = json.loads(arrays["about"].tobytes()) if "about" in arrays else None
    if not isinstance(row, dict) or any(
        not isinstance(row.get(name), kind) for name, kind in _CARRIED.items()
    ):
        raise ValueError("it carries no row of the index")
    return row
