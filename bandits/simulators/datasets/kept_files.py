"""Folders of kept tables: one immutable Parquet file each, named by its content, with facts in its
metadata.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from bandits.base.errors import UserError
from bandits.base.files import atomic_write, home

_KEY, _CHECKSUM = b"bandit-playground", "checksum"
Info = TypeVar("Info")


class KeptFiles(Generic[Info]):
    """The tables of one folder of BANDITS_HOME.

    Parameters
    ----------
    folder, noun : str
        Its name, and that of what it holds, for messages.
    ids : pattern
        What names of files look like.
    facts : callable, (Path, int) -> Info
        Reads and checks the facts about a file, given when it changed; raises UserError where it is
        damaged.
    """

    def __init__(
        self, folder: str, noun: str, ids: re.Pattern[str], facts: Callable[[Path, int], Info]
    ) -> None:
        self._folder, self._noun, self._ids, self._facts = folder, noun, ids, facts

    def path(self, name: str) -> Path:
        """Return where a file of this name lies."""
        return home() / self._folder / f"{name}.parquet"

    def find(self, name: str) -> Info | None:
        """Return the facts about a file, or None if it is not kept.

        Raises
        ------
        UserError
            Its file is damaged.
        """
        if not self._ids.fullmatch(name):
            return None
        try:
            status = self.path(name).stat()
        except FileNotFoundError:
            return None
        return self._facts(self.path(name), status.st_mtime_ns)

    def listing(self) -> list[Info]:
        """Return the facts about all files, newest first; damaged ones are omitted."""
        dated = []
        for path in (home() / self._folder).glob("*.parquet"):
            with suppress(UserError, FileNotFoundError):
                if info := self.find(path.stem):
                    dated.append((path.stat().st_mtime_ns, info))
        return [info for _, info in sorted(dated, reverse=True)]

    def delete(self, name: str) -> None:
        """Delete a file, if it is kept."""
        if self._ids.fullmatch(name):
            self.path(name).unlink(missing_ok=True)

    def write(self, name: str, data: Any, facts: Mapping[str, Any]) -> None:
        """Write an Arrow table with facts, which become JSON.

        Raises
        ------
        UserError
            The disk does not take it.
        """
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        sealed = json.dumps({**facts, _CHECKSUM: _checksum(facts)})
        pq.write_table(data.replace_schema_metadata({_KEY: sealed}), buffer, compression="zstd")
        try:
            atomic_write(self.path(name), buffer.getvalue())
        except OSError as error:
            raise UserError(
                f"the {self._noun} could not be written to disk: {error.strerror or error}"
            ) from None


def stored_facts(path: Path) -> dict[str, Any]:
    """Read the facts of a file; raises what pyarrow and json raise, and ValueError where they do
    not match their checksum. The first files have none.
    """
    import pyarrow.parquet as pq

    facts = dict(json.loads(pq.ParquetFile(path).schema_arrow.metadata[_KEY]))
    checksum = facts.pop(_CHECKSUM, None)
    if checksum is not None and checksum != _checksum(facts):
        raise ValueError("the facts do not match their checksum")
    return facts


def _checksum(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
