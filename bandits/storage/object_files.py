"""Immutable files named by the SHA-256 of their content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bandits.base.files import move_into_place, pack, stage

STALE_AFTER = 3600.0  # seconds after which no process is still writing a staged file
_DIGEST = re.compile("[0-9a-f]{64}")


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
        self._objects, self.staging, self._quarantine = (folder / n for n in ("objects", "staged", "quarantine"))
        for path in (self._objects, self.staging, self._quarantine):
            path.mkdir(parents=True, exist_ok=True)

    @property
    def quarantine_folder(self) -> Path:
        """Where damaged files are moved."""
        return self._quarantine

    def path(self, content: Any) -> Path:
        """Return the path of the file with this SHA-256; any other value gets a path where no file is."""
        name = content if isinstance(content, str) and _DIGEST.fullmatch(content) else "unreadable"
        return self._objects / name[:2] / name

    def paths(self) -> Iterator[Path]:
        """Iterate over all object files."""
        yield from self._objects.glob("*/*")

    def stage(self, data: bytes) -> Path:
        """Write a temporary file; see `bandits.base.files.stage`."""
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

    def read_intact(self, path: Path) -> bytes | None:
        """Return the bytes of a file, or None if they do not match its name."""
        data = self.read(path) or b""
        return data if is_intact(path, data) else None

    def quarantine(self, path: Path) -> None:
        """Move a damaged file out of the way; its bytes are kept."""
        with suppress(FileNotFoundError):
            os.replace(path, self._quarantine / f"{path.name}-{time.time_ns()}")

    def remove_stale(self) -> None:
        """Delete temporary files of processes that were killed while they wrote them."""
        for path in self.staging.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > STALE_AFTER:
                    path.unlink()


def is_intact(path: Path, data: bytes) -> bool:
    """Whether a file's content matches its name."""
    return digest(data) == path.name


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def pack_run(metadata: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Serialise a run: its arrays, and its row of the index under the name ``about``."""
    return pack({"about": np.frombuffer(json.dumps(metadata).encode(), np.uint8), **arrays})


def metadata_of(arrays: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row of the index that a file carries; None for files of the first versions, which have none."""
    if "about" not in arrays:
        return None
    metadata: dict[str, Any] = json.loads(arrays["about"].tobytes())
    return metadata
