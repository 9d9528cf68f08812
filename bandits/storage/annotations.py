"""What users write beside stored runs and sweeps: title, tags, star and notes, one small JSON file
for each.

The indexes hold copies for fast listing. An index that is rebuilt reads these files again, so
nothing written is lost. A file carries a checksum of the run or sweep and the texts."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from bandits.base.files import atomic_write

# any other text must not become a file name
_ID = re.compile("[0-9a-f]{64}")
_TYPES = {"title": str, "tags": str, "notes": str, "starred": bool}


class Annotations:
    """A folder of annotations, by the hash of a run or sweep.

    Parameters
    ----------
    folder : Path
        Created when the first annotation is written.
    staging : Path, optional
        Folder of temporary files; ``folder`` by default.
    """

    def __init__(self, folder: Path, staging: Path | None = None) -> None:
        self._folder, self._staging = folder, staging

    def read(self, item: str) -> dict[str, Any]:
        """Return what is written about a run or sweep.

        Values of an unreadable file or of another type are left out.
        """
        with suppress(OSError, ValueError):
            data = json.loads(self._path(item).read_text(encoding="utf-8"))
            if isinstance(data, dict) and data.get("checksum") == _checksum(item, data):
                return {
                    name: data[name]
                    for name, kind in _TYPES.items()
                    if isinstance(data.get(name), kind)
                }
        return {}

    def write(self, item: str, annotation: dict[str, Any]) -> None:
        """Replace what is written about a run or sweep.

        Raises
        ------
        OSError
            The disk is full or cannot be written; the previous annotation stays.
        """
        sealed = {**annotation, "checksum": _checksum(item, annotation)}
        data = json.dumps(sealed, ensure_ascii=False).encode()
        atomic_write(self._path(item), data, staging=self._staging)

    def is_damaged(self, item: str) -> bool:
        """Whether there is a file for a run or sweep that cannot be read, or was written for
        another one.
        """
        return self._path(item).exists() and not self.read(item)

    def drop(self, item: str) -> None:
        """Delete what is written about a run or sweep."""
        self._path(item).unlink(missing_ok=True)

    def _path(self, item: str) -> Path:
        return self._folder / f"{item if _ID.fullmatch(item) else 'unreadable'}.json"


def _checksum(item: str, annotation: dict[str, Any]) -> str:
    texts = {name: annotation[name] for name in _TYPES if name in annotation}
    return hashlib.sha256(json.dumps([item, texts], sort_keys=True).encode()).hexdigest()
