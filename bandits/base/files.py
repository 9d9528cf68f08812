"""Files kept from run to run, named by the content they were made from."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import platformdirs

Arrays = dict[str, np.ndarray]


def home() -> Path:
    """Where the project keeps its files: ``BANDITS_HOME``, or the user's data directory."""
    return Path(os.environ.get("BANDITS_HOME") or platformdirs.user_data_dir("bandit-playground"))


def cached_arrays(folder: str, content: str, make: Callable[[], Arrays]) -> Arrays:
    """Arrays made from ``content``: read back if they were made before, else made and kept.

    A file that cannot be read back whole is made again; a disk that cannot be written only costs the next
    run's time.
    """
    path = home() / folder / f"{hashlib.sha256(content.encode()).hexdigest()}.npz"
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError):
        arrays = make()
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    with suppress(OSError):
        write(path, buffer.getvalue())
    return arrays


def write(path: Path, data: bytes) -> None:
    """All or nothing: staged beside its place, synced, renamed.

    Raises
    ------
    OSError
        The disk is full or cannot be written; what was there before stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, staged = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(staged, path)
    except BaseException:
        Path(staged).unlink(missing_ok=True)
        raise
